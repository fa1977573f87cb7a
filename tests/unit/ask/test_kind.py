from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.kind import entropy_bits, is_broad_question, kind_of, wanted_sources


@pytest.mark.parametrize(
    "question",
    ["E-1042", "std::io::Read", "KP40-117", "“lid screws”", "What is E0382?", "max_len", "E-1042 是什么？"],
)
def test_an_exact_string_alone_is_an_identifier(question: str) -> None:
    assert kind_of(question) == "identifier"


@pytest.mark.parametrize(
    "question", ["pump lid torque", "Drehmoment Deckel", "水泵 机油", "замена насоса", "vaccine storage"]
)
def test_words_without_grammar_are_keywords(question: str) -> None:
    assert kind_of(question) == "keywords"


@pytest.mark.parametrize(
    "question",
    [
        "Which torque do the lid screws of the pump need?",
        "Welches Drehmoment brauchen die Schrauben?",
        "水泵多久换一次机油？",
        "What does error E-1042 of the pump mean?",
        "The lid screws of the pump need grease",
        "ownership?",
        "Was bedeutet F31?",
    ],
)
def test_a_sentence_is_a_question(question: str) -> None:
    assert kind_of(question) == "question"


def test_what_the_conversation_and_the_wording_showed_counts() -> None:
    assert kind_of("And the big one?", follows=True) == "follow_up"
    assert kind_of("How many documents mention E-1042?", aggregate=True) == "aggregate"
    assert kind_of("E-1042", follows=True) == "identifier"


@pytest.mark.parametrize(
    "question",
    [
        "Compare the two pumps.",
        "What is the difference between ownership and borrowing?",
        "Gib mir einen Überblick über die Verträge",
        "Quelles sont les différences entre A et B ?",
        "比较两种水泵的优缺点",
        "Сравните два насоса",
        "Tell me about the pump",
        "Which of Paris, Rome, Vienna and Berlin lies on a river?",
    ],
)
def test_what_has_several_places_is_broad(question: str) -> None:
    assert is_broad_question(question)


@pytest.mark.parametrize(
    "question",
    ["How is the lid opened?", "Wie alt ist die Pumpe?", "什么是所有权？", "When did Tesla die in New York?"],
)
def test_what_has_one_place_is_not(question: str) -> None:
    assert not is_broad_question(question)


def test_entropy_is_that_of_the_weights() -> None:
    assert entropy_bits([]) == entropy_bits([3.0]) == entropy_bits([0.0, 2.0]) == 0.0
    assert entropy_bits([1.0] * 8) == pytest.approx(3.0)
    assert entropy_bits([9.0, 0.5]) < entropy_bits([1.0, 1.0]) == pytest.approx(1.0)


@given(st.lists(st.just(0.0) | st.floats(1e-6, 20), max_size=40), st.floats(0.1, 10))
def test_entropy_has_bounds_and_knows_no_scale(weights: list[float], scale: float) -> None:
    bits = entropy_bits(weights)
    assert 0.0 <= bits <= math.log2(max(1, len(weights))) + 1e-9
    assert entropy_bits([weight * scale for weight in weights]) == pytest.approx(bits, abs=1e-6)


def test_broad_and_vague_questions_get_more_sources() -> None:
    focused = wanted_sources("question", broad=False, bits=3.0)
    assert (
        focused < wanted_sources("question", broad=False, bits=1.0) < wanted_sources("question", broad=True, bits=3.0)
    )
    assert focused < wanted_sources("keywords", broad=False, bits=3.0)


@given(st.text(max_size=200))
def test_any_text_has_a_kind(text: str) -> None:
    assert kind_of(text) in ("identifier", "keywords", "question")
    is_broad_question(text)
