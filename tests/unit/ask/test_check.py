from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.check import check_answer
from edgerag.types import AnswerSentence, Source

Sources = Callable[..., tuple[Source, ...]]

PUMP = (
    "The Kestrel P-40 is a diaphragm pump for brine and mild acids. It weighs 11.5 kg and moves 1,200 litres an hour. "
    "The lid screws are tightened to 9 Nm. The gasket was designed by Ada Lovelace in May 2015."
)
COLD = "Vaccines are stored between two and eight degrees. “Shake well” stands on every dose. Part KP40-117 is spare."


@pytest.fixture
def check(sources: Sources) -> Callable[..., list[AnswerSentence]]:
    def run(answer: str, *texts: str, question: str = "", **options: object) -> list[AnswerSentence]:
        checked = check_answer(answer, sources=sources(*(texts or (PUMP, COLD))), question=question, **options)  # type: ignore[arg-type]
        for sentence in checked:
            assert answer[sentence.start : sentence.end].strip()
        return list(checked)

    return run


Check = Callable[..., list[AnswerSentence]]


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("The lid screws are tightened to 9 Nm.", (1,)),
        ("The Kestrel P-40 pump weighs 11.5 kg.", (1,)),
        ("Its weight is 11,5 kg.", (1,)),
        ("It moves 1200 litres per hour.", (1,)),
        ("It moves 1 200 litres per hour.", (1,)),
        ("It moves 1.200 litres per hour.", (1,)),
        ("Tighten the screws of the lid to nine Nm.", (1,)),
        ("Ada Lovelace designed the gasket on 05/2015.", (1,)),
        ("The gasket is Ada Lovelace's design of 2015.", (1,)),
        ("Vaccines are kept between 2 and 8 degrees.", (2,)),
        ("Vaccines are kept between 2 °C and 8 °C.", (2,)),
        ("Every dose says “shake well”.", (2,)),
        ("The spare part is KP40-117.", (2,)),
        ("The spare part is KP40 117.", (2,)),
        ("**11.5 kg** [1]", (1,)),
        ("9 Nm.", (1,)),
        ("The pump weighs 11.5 kg and vaccines are stored between two and eight degrees.", (1, 2)),
    ],
)
def test_what_the_sources_say_in_whatever_form_is_supported(
    check: Check, sentence: str, numbers: tuple[int, ...]
) -> None:
    (checked,) = check(sentence, question="What about the pump?")
    assert (checked.support, checked.reason) == ("supported", "")
    assert set(checked.sources) == set(numbers)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The lid screws are tightened to 12 Nm [1].", "the number 12"),
        ("The lid screws are tightened to twelve Nm.", "the number twelve"),
        ("The pump weighs 9 kg.", "the number 9"),  # a number of the source, of something else
        ("The pump weighs 115 kg.", "the number 115"),
        ("The gasket was designed by Grace Hopper in May 2015.", "the name Grace"),
        ("The gasket was designed by Ada Lovelace in June 2015.", "the name June"),
        ("Every dose says “stir slowly”.", "the words “stir slowly”"),
        ("The spare part is KP40-118.", "“KP40-118”"),
        ("The spare part is KP40-1178.", "“KP40-1178”"),
        ("Whales sing at night.", "says this"),
    ],
)
def test_what_stands_in_no_source_is_named(check: Check, sentence: str, reason: str) -> None:
    (checked,) = check(sentence, question="What about the pump?")
    assert checked.support == "unsupported" and checked.sources == ()
    assert reason in checked.reason


@pytest.mark.parametrize(
    ("sentence", "support"),
    [
        ("水泵每六个月更换机油。", "supported"),
        ("水泵每 6 个月更换机油。", "supported"),
        ("水泵每八十个月更换机油。", "unsupported"),
        ("托马斯·戴维斯发明了水泵。", "unsupported"),
        ("天空是蓝色的。", "unsupported"),
    ],
)
def test_scripts_without_spaces(check: Check, sentence: str, support: str) -> None:
    (checked,) = check(sentence, "水泵每六个月需要更换一次机油。更换之前必须切断电源。")
    assert checked.support == support


def test_german_nouns_are_no_names_when_the_question_has_them(check: Check) -> None:
    text = "Die Pumpe wiegt 11,5 kg. Am 12. Mai 2015 wurde sie von Siemens gebaut."
    question = "Wie hoch ist das Gewicht der Pumpe?"
    assert check("Das Gewicht der Pumpe ist 11,5 kg.", text, question=question)[0].support == "supported"
    assert check("Die Pumpe wurde am 12. Mai 2015 gebaut.", text, question=question)[0].support == "supported"
    assert check("Die Pumpe wurde von Bosch gebaut.", text, question=question)[0].support == "unsupported"


@pytest.mark.parametrize(
    "text", ["Yes.", "## The lid", "They are:", "```\nx = 12\n```", "- ", "| Part | Number |\n|---|---|\n"]
)
def test_what_states_nothing_is_not_checked(check: Check, text: str) -> None:
    assert {sentence.support for sentence in check(text)} <= {"not_checked"}


def test_the_sentences_of_an_answer_are_told_apart(check: Check) -> None:
    answer = (
        "The lid screws take 9 Nm [1]. It weighs 11.5 kg.[1] They are:\n"
        "1. Ada Lovelace designed\nthe gasket [1]\n"
        "2. Whales sing\n\n"
        "```\n12 Nm\n```\n"
        "| Part | Number |\n|---|---|\n| Spare | KP40-117 |\n| Spare | KP40-999 |\n"
    )
    shown = [(answer[s.start : s.end], s.support) for s in check(answer)]
    assert shown == [
        ("The lid screws take 9 Nm [1].", "supported"),
        ("It weighs 11.5 kg.[1]", "supported"),
        ("They are:", "not_checked"),
        ("Ada Lovelace designed", "supported"),
        ("the gasket [1]", "supported"),
        ("Whales sing", "unsupported"),
        ("```\n12 Nm\n```", "not_checked"),
        ("Spare | KP40-117 |", "supported"),
        ("Spare | KP40-999 |", "unsupported"),
    ]


@pytest.mark.parametrize(
    ("answer", "support"),
    [
        ("Die Schrauben des Deckels werden mit 9 Nm angezogen.", "not_checked"),
        ("Die Schrauben des Deckels werden mit 77 Nm angezogen.", "unsupported"),
        ("盖子的螺丝要拧紧到 9 牛米。", "not_checked"),
        ("盖子的螺丝要拧紧到 77 牛米。", "unsupported"),
        ("9 Nm.", "supported"),
    ],
)
def test_of_an_answer_in_another_language_only_numbers_are_looked_up(check: Check, answer: str, support: str) -> None:
    (checked,) = check(answer)
    assert checked.support == support
    assert ("another language" in checked.reason) == (support == "not_checked")


def test_a_false_premise_of_the_question_is_not_taken_over(check: Check) -> None:
    (checked,) = check("Yes, Grace Hopper designed the gasket.", question="Did Grace Hopper design the gasket?")
    assert checked.support == "unsupported"


def test_other_words_are_left_to_the_embedder_and_numbers_are_not(check: Check) -> None:
    asked: list[Sequence[str]] = []

    def embed(texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
        """Says that everything means the same."""
        asked.append(texts)
        return np.ones((len(texts), 1), dtype=np.float32)

    paraphrase, invented = check("One needs very little force there [1]. It needs 77 hammers.", embed=embed)
    assert (paraphrase.support, len(paraphrase.sources)) == ("supported", 1)
    assert invented.support == "unsupported"
    assert asked[0][0] == "One needs very little force there ."
    assert check("The lid screws are tightened to 9 Nm.", embed=embed)[0].support == "supported"
    assert len(asked) == 1, "only in doubt"


def test_a_long_answer_asks_the_embedder_about_a_few_sentences(check: Check) -> None:
    counts: list[int] = []

    def embed(texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
        counts.append(len(texts))
        return np.eye(len(texts), dtype=np.float32)

    checked = check(" ".join(f"Whales sing song{letter} loudly." for letter in "abcdefghijk"), embed=embed)
    assert len(checked) == 11 and {sentence.support for sentence in checked} == {"unsupported"}
    assert counts == [6]  # four of the sentences and the words of two sources


def test_without_sources_nothing_is_checked() -> None:
    assert [s.support for s in check_answer("It is so.", sources=(), question="")] == ["not_checked"]


@given(st.text(alphabet="aB9 .!?。\n#|-*`[1]:“”中·,é", max_size=200))
def test_sentences_lie_in_the_text_one_behind_the_other(text: str) -> None:
    at = 0
    for sentence in check_answer(text, sources=(), question=""):
        assert at <= sentence.start < sentence.end <= len(text)
        at = sentence.end
