"""Stop strings: the same answer however the text is cut, and nothing lost that is not behind a stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.chat import PLAIN_TEMPLATE, ChatFormat
from edgerag.engine.stops import StopStrings, turn_stops

ALPHABET = "ab\n#"


def passed(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stop = StopStrings(stops)
    text = "".join(stop.feed(piece) for piece in pieces)
    return text + stop.finish(), stop.reached


def first_complete(text: str, stops: list[str]) -> tuple[str, bool]:
    """The definition: the stop that is complete first, the longest of those."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))], True
    return text, False


@given(
    pieces=st.lists(st.text(ALPHABET, max_size=6), max_size=12),
    stops=st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=4),
)
def test_the_answer_ends_before_the_first_stop_however_it_is_cut(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    assert passed(pieces, stops) == passed([text], stops) == passed(list(text), stops) == first_complete(text, stops)


def test_what_cannot_become_a_stop_is_shown_at_once() -> None:
    stop = StopStrings(["\n### User:"])
    assert stop.feed("The torque is 12 Nm.") == "The torque is 12 Nm."
    assert stop.feed("\n##") == ""
    assert stop.feed("# Note") == "\n### Note"
    assert stop.feed("\n### User") == ""
    assert stop.finish() == "\n### User"


def test_nothing_is_passed_behind_a_stop() -> None:
    stop = StopStrings(["STOP"])
    assert stop.feed("aSTO") + stop.feed("Pb") + stop.feed("c") + stop.finish() == "a"
    assert stop.reached


@pytest.mark.parametrize(
    ("next_turn", "stops"),
    [
        ("\n\n### User:\n", ("\n### User:",)),
        ("\nUSER: ", ("\nUSER:",)),
        (" USER: ", (" USER:",)),
        ("<|user|>\n", ("<|user|>",)),
        ("\n\n", ()),
        ("][", ()),
        ("\nand\n", ()),  # a word alone names no speaker: any answer may hold it
        ("", ()),
    ],
)
def test_stops_are_the_words_that_name_the_next_speaker(next_turn: str, stops: tuple[str, ...]) -> None:
    assert turn_stops(next_turn) == stops


def test_a_model_without_a_template_is_stopped_when_it_asks_itself() -> None:
    chat_format = ChatFormat("", model_name="test", special_texts={})
    stop = StopStrings(turn_stops(chat_format.next_turn()))
    said = "12 Nm [1].\n\n### User:\nAnd the bolts?"
    assert "".join(map(stop.feed, said)) + stop.finish() == "12 Nm [1].\n"
    assert "### User" not in PLAIN_TEMPLATE  # it comes from the role, so it is found by rendering only
