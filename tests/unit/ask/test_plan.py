from __future__ import annotations

import pytest

from edgerag.ask.plan import QUESTION_CHARACTERS, make_plan, read_question
from edgerag.config import RetrievalSettings
from edgerag.errors import UsageError
from edgerag.types import Plan


def plan(
    question: str, *, languages: tuple[str, ...] = ("en",), room: int | None = None, source_count: int = 4
) -> Plan:
    return make_plan(
        question,
        settings=RetrievalSettings(source_count=source_count),
        languages=languages,
        terms=lambda text: tuple(text.split()),
        room_tokens=room,
    )


@pytest.mark.parametrize("question", ["", "   ", "\n\t", "\x00\x1b", "\ufeff"])
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        read_question(question)


def test_a_very_long_question_is_cut_between_words() -> None:
    question = read_question("word " * 10_000)
    assert question.cut
    assert len(question.text) <= QUESTION_CHARACTERS
    assert set(question.text.split()) == {"word"}


def test_a_very_long_question_without_spaces_is_cut_too() -> None:
    assert len(read_question("问" * 50_000).text) == QUESTION_CHARACTERS


def test_what_cannot_be_asked_is_left_out() -> None:
    assert read_question("what\x00 is\ud800 this?").text == "what  is  this?"


def test_an_english_embedder_does_not_judge_other_scripts() -> None:
    assert plan("什么是所有权？").vector_weight == 0
    assert plan("什么是所有权？", languages=("*",)).vector_weight == plan("What is it?").vector_weight


def test_an_english_embedder_counts_less_in_other_languages_of_its_script() -> None:
    english, german = plan("Where is the key?"), plan("Wo ist der Schlüssel?")
    assert german.vector_weight < english.vector_weight
    assert german.keyword_weight == english.keyword_weight


def test_no_embedder_means_no_vector_leg() -> None:
    assert plan("What is it?", languages=()).vector_weight == 0


def test_a_small_context_gets_fewer_sources() -> None:
    assert plan("What?", room=10_000).source_count == 4
    assert plan("What?", room=450).source_count == 2
    assert plan("What?", room=0).source_count == 1


def test_how_many_sources_depends_on_the_question() -> None:
    focused = plan("How many bolts hold the lid of the big pump at the inlet down?", source_count=50)
    vague = plan("pump lid", source_count=50)
    broad = plan("What is the difference between the big pump and the small one?", source_count=50)
    assert focused.source_count < vague.source_count < broad.source_count
    assert (focused.kind, vague.kind, broad.broad) == ("question", "keywords", True)
    assert plan("Compare the big pump with the small one.", source_count=3).source_count == 3


def test_a_follow_up_is_searched_with_the_words_it_was_lent() -> None:
    made = make_plan(
        "And the big one?",
        settings=RetrievalSettings(),
        languages=("en",),
        terms=lambda text: tuple(text.split()),
        added=("torque", "lid"),
    )
    assert made.question == "And the big one? torque lid"
    assert made.kind == "follow_up" and made.added_words == ("torque", "lid") and "torque" in made.terms


def test_there_are_never_fewer_candidates_than_sources() -> None:
    made = make_plan(
        "What?",
        settings=RetrievalSettings(source_count=30, candidate_count=2, ef_search=1),
        languages=("en",),
        terms=lambda _: (),
    )
    assert made.candidate_count >= made.source_count > 2
    assert made.ef_search >= made.candidate_count


@pytest.mark.parametrize("text", ["\udcff\udcfe", " \udcff\n"])
def test_bytes_that_are_no_text_are_not_told_as_an_empty_question(text: str) -> None:
    with pytest.raises(UsageError, match="not UTF-8") as raised:
        read_question(text)
    assert raised.value.remedy
    assert read_question("caf\udce9 hours?").text == "caf  hours?", "what can be read of it is asked"
