from __future__ import annotations

import pytest

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.rst import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def rst(text: str) -> ParsedDocument:
    return parse(Source(text.encode(), "manual.rst"))


def headings(text: str) -> list[tuple[int, str]]:
    parsed = rst(text)
    for heading in parsed.headings:
        first, second = parsed.text[heading.start :].split("\n")[:2]
        assert heading.title.split()[0] in first + second, "a heading stands where it says, or below its line"
        assert heading.start == 0 or parsed.text[heading.start - 1] == "\n"
    return [(heading.level, heading.title) for heading in parsed.headings]


def test_the_text_is_the_file() -> None:
    assert rst("A\r\n=\r\n\r\ntext\r\n").text == "A\n=\n\ntext\n"


def test_levels_follow_from_the_order_of_appearance() -> None:
    text = "Book\n~~~~\n\nPart\n####\n\nPiece\n----\n\nx\n\nOther part\n##########\n"
    assert headings(text) == [(1, "Book"), (2, "Part"), (3, "Piece"), (2, "Other part")]


def test_a_line_above_makes_another_kind_of_title() -> None:
    text = "======\n Book\n======\n\nChapter\n=======\n\n----\nDeep\n----\n\nChapter two\n===========\n"
    assert headings(text) == [(1, "Book"), (2, "Chapter"), (3, "Deep"), (2, "Chapter two")]


@pytest.mark.parametrize(
    "text",
    [
        "Example::\n\n    Not a title\n    ===========\n",
        ".. code-block:: rst\n\n   Title\n   =====\n\n   text\n",
        ".. comment\n   Title\n   =====\n",
        "words\n\n----------\n\nmore words\n",  # a transition
        "first line of a paragraph\nsecond line\n-----------\n",
        "- item\n------\n",
        ":Author: Ann\n------------\n",
        "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n",
        "+---+---+\n| a | b |\n+---+---+\n",
        "A long title\n--\n",
        "=====\nTitle\n---\n",
        "=====\n",
    ],
)
def test_no_heading_where_there_is_none(text: str) -> None:
    assert headings(text) == []


def test_an_underline_may_be_short_but_not_very() -> None:
    assert headings("A title that is longer\n====\n") == [(1, "A title that is longer")]
    assert headings("API\n===\n") == [(1, "API")]
    assert headings("電池\n====\n") == [(1, "電池")]
    assert headings("電池\n==\n") == []


def test_a_target_may_touch_the_title() -> None:
    assert headings(".. _here:\nTitle\n=====\n") == [(1, "Title")]


def test_marks_are_no_part_of_a_title() -> None:
    title = r":mod:`pump` --- the ``start`` of *all* **pumps** `site <http://x>`_ \*"
    assert headings(f"{title}\n{'=' * 80}\n") == [(1, "pump --- the start of all pumps site *")]
    assert headings("``__init__``\n------------\n") == [(1, "__init__")]
    assert headings("python_requires_\n----------------\n") == [(1, "python_requires")]


def test_the_only_title_of_the_first_level_is_that_of_the_document() -> None:
    assert rst("Manual\n======\n\nOne\n---\n").title == "Manual"
    assert rst("One\n---\n\nTwo\n---\n").title == "manual.rst"


def test_a_very_long_line_is_no_title() -> None:
    assert headings("x" * 5000 + "\n====\n") == []


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_nothing_is_a_finding(data: bytes) -> None:
    with pytest.raises(DocumentEmpty):
        parse(Source(data, "x.rst"))
