from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.stitch import AROUND, cut_off, stitched
from edgerag.types import Hit

DOCUMENT = (
    "The hall is large. Before the lid of the pump is opened, the pressure must have fallen\n"
    "below two bar, as the gauge shows. Then the lamp is green."
)


def part(make: Callable[..., Hit], start: int, end: int, *, chunk_id: int = 1, ordinal: int = 1) -> Hit:
    made = make(DOCUMENT[start:end], chunk_id=chunk_id, start=start)
    chunk = dataclasses.replace(made.chunk.chunk, ordinal=ordinal)
    return dataclasses.replace(made, chunk=dataclasses.replace(made.chunk, chunk=chunk, document_id=7, kv_key="k"))


def around_of(spans: dict[int, tuple[int, int]]) -> Callable[[int, int], tuple[str, str]]:
    def around(chunk_id: int, characters: int) -> tuple[str, str]:
        start, end = spans[chunk_id]
        return DOCUMENT[max(0, start - characters) : start], DOCUMENT[end : end + characters]

    return around


CUT = DOCUMENT.index("below")


def test_a_sentence_that_a_border_cuts_is_whole_again(hit: Callable[..., Hit]) -> None:
    (first,) = stitched([part(hit, 0, CUT - 1, ordinal=0)], around=around_of({1: (0, CUT - 1)}))
    assert first.chunk.chunk.text.endswith("below two bar, as the gauge shows.")
    (second,) = stitched([part(hit, CUT, len(DOCUMENT))], around=around_of({1: (CUT, len(DOCUMENT))}))
    assert second.chunk.chunk.text.startswith("Before the lid of the pump is opened")
    for each in (first, second):
        chunk = each.chunk.chunk
        assert DOCUMENT[chunk.start : chunk.end] == chunk.text
        assert each.chunk.kv_key == "", "no state was kept of what is longer now"


def test_where_the_rest_is_a_source_too_nothing_stands_twice(hit: Callable[..., Hit]) -> None:
    hits = [part(hit, 0, CUT - 1, ordinal=0), part(hit, CUT, len(DOCUMENT), chunk_id=2, ordinal=1)]
    spans = {1: (0, CUT - 1), 2: (CUT, len(DOCUMENT))}
    assert stitched(hits, around=around_of(spans)) == tuple(hits)


def test_whole_sentences_are_left_alone_without_reading_the_document(hit: Callable[..., Hit]) -> None:
    def around(chunk_id: int, characters: int) -> tuple[str, str]:
        raise AssertionError("nothing is cut")

    whole = part(hit, 0, DOCUMENT.index("Before") - 1, ordinal=0)
    assert stitched([whole], around=around) == (whole,)


@pytest.mark.parametrize(
    ("before", "text", "behind"),
    [
        ("", "| code | meaning |", "\n| E-1 | blocked |"),  # a table has no sentences
        ("", "def run():", "\n    return 1\n"),
        ("", "A sentence that goes on", " and on" * AROUND),  # its end is too far away
        ("on and " * AROUND, "on it goes.", ""),
        ("Kept. ", "A heading", "\n\nIts text begins here."),
    ],
)
def test_what_is_no_sentence_or_too_long_stays_as_it_is(before: str, text: str, behind: str) -> None:
    assert cut_off(before, text, behind) == ("", "")


@given(*[st.text(alphabet="ab .!\n|A", max_size=60)] * 3)
def test_what_is_put_back_stands_next_to_the_text(before: str, text: str, behind: str) -> None:
    head, tail = cut_off(before, text, behind)
    assert before.endswith(head) and behind.startswith(tail)
