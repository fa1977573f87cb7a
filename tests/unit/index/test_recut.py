"""Passages that are cut anew: all that is in none of those that are known, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.index.recut import recut
from edgerag.types import Chunk, Heading, Page, ParsedDocument

WORDS = st.text(alphabet="ab \n\t\u3000", max_size=3000)


def parsed_of(text: str) -> ParsedDocument:
    middle = len(text) // 2
    return ParsedDocument(
        text=text,
        title="A title",
        media_type="text/plain",
        pages=(Page(1, 0, middle), Page(2, middle, len(text))),
        headings=(Heading(1, "Top", 0), Heading(2, "Inner", middle)),
        warnings=(),
    )


def chunk_of(text: str, start: int, end: int, ordinal: int) -> Chunk:
    return Chunk(ordinal, start, end, text[start:end], ("Top",), 1, 1, 1, 1, 3, "A title")


@given(text=WORDS, cuts=st.lists(st.integers(0, 3000), max_size=6))
def test_every_character_is_in_exactly_one_passage(text: str, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    spans = list(zip(places[::2], places[1::2], strict=False))
    known = [chunk_of(text, start, end, 2 * number) for number, (start, end) in enumerate(spans) if start < end]
    found = recut(parsed_of(text), known)
    assert [chunk.ordinal for chunk in found] == list(range(len(found)))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    assert {(chunk.start, chunk.end) for chunk in known} <= {(chunk.start, chunk.end) for chunk in found}
    covered = set().union(*(range(chunk.start, chunk.end) for chunk in found)) if found else set()
    assert all(place in covered for place, letter in enumerate(text) if letter.strip())


def test_paragraphs_that_are_as_many_as_are_missing_are_those_that_were() -> None:
    text = "one paragraph\n\ntwo\n\nthree\n\nfour"
    known = [chunk_of(text, 0, 13, 0), chunk_of(text, text.index("four"), len(text), 3)]
    assert [chunk.text for chunk in recut(parsed_of(text), known)] == ["one paragraph", "two", "three", "four"]
    known[1] = replace(known[1], ordinal=2)
    assert [chunk.text for chunk in recut(parsed_of(text), known)] == ["one paragraph", "two\n\nthree", "four"]


def test_where_they_stand_is_known_from_the_document() -> None:
    text = "first\n\nsecond paragraph"
    parsed = replace(parsed_of(text), pages=(Page(1, 0, 7), Page(2, 7, len(text))), headings=(Heading(1, "Top", 7),))
    first, second = recut(parsed, [chunk_of(text, 0, 5, 0)])
    assert (second.page_first, second.page_last, second.line_first, second.line_last) == (2, 2, 3, 3)
    assert second.heading_path == ("Top",)
    assert (first.hidden, second.hidden) == (False, False)


@pytest.mark.parametrize("how", ["a passage", "a warning"])
def test_where_something_is_hidden_it_is_not_known_that_it_is_not_here(how: str) -> None:
    text = "first\n\nsecond"
    parsed = replace(parsed_of(text), warnings=("Page 1 has hidden text.",) if how == "a warning" else ())
    known = replace(chunk_of(text, 0, 5, 0), hidden=how == "a passage")
    assert recut(parsed, [known])[1].hidden


@pytest.mark.parametrize(
    "warning",
    [
        "Hidden and read all the same: notes.",
        "Hidden characters stand in 3 more places.",
        'Page 2 has hidden text (20 characters): "ignore".',
        "There is hidden text in 4 more places.",
    ],
)
def test_where_the_document_says_that_something_is_hidden_what_is_cut_anew_is_marked(warning: str) -> None:
    text = "one\n\ntwo"
    assert all(chunk.hidden for chunk in recut(replace(parsed_of(text), warnings=(warning,)), []))
    assert not any(chunk.hidden for chunk in recut(replace(parsed_of(text), warnings=("Page 2 is damaged.",)), []))
