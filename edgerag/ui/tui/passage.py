"""Where a source stands in its document, and how the document's text is laid out in rows.

Pure functions over strings: the viewer only paints what is computed here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import get_character_cell_size

from edgerag.types import PageWanted, ParsedDocument, Source, page_unit

TAB_CELLS = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """The chunk behind a source and the quote in it, as offsets into the document's text."""

    start: int
    end: int
    quote_start: int
    quote_end: int
    moved: bool  # the document has changed since; the quote was looked up anew


def locate(document: ParsedDocument, source: Source) -> Passage | None:
    """The passage of ``source``; None when its words are no longer in the document."""
    chunk, quote = source.hit.chunk.chunk, source.quote
    text = document.text
    # Of a kept source only the quote is known where the passage has changed.
    if chunk.text in ("", text[chunk.start : chunk.end]) and text.startswith(quote, source.quote_start):
        return Passage(chunk.start, chunk.end, source.quote_start, source.quote_start + len(quote), moved=False)
    at = text.find(chunk.text) if chunk.text else -1
    if at >= 0:
        quote_start = at + source.quote_start - chunk.start
        return Passage(at, at + len(chunk.text), quote_start, quote_start + len(quote), moved=True)
    at = text.find(quote) if quote else -1
    return Passage(at, at + len(quote), at, at + len(quote), moved=True) if at >= 0 else None


def wanted_page(document: ParsedDocument, passage: Passage | None, number: int, width: int) -> PageWanted:
    """That page, with what of the passage and its quote stands on it."""
    page = next((page for page in document.pages if page.number == number), None)
    if passage is None or page is None:
        return PageWanted(number, width)

    def part(start: int, end: int) -> str:
        return document.text[max(start, page.start) : max(start, page.start, min(end, page.end))]

    return PageWanted(number, width, part(passage.start, passage.end), part(passage.quote_start, passage.quote_end))


def page_of(document: ParsedDocument, passage: Passage | None) -> int:
    """The page on which the quote begins; the first where there is none."""
    if passage is None or not document.pages:
        return 1
    at = bisect_right(document.pages, passage.quote_start, key=lambda page: page.start) - 1
    return document.pages[max(0, at)].number


def home_words(document: ParsedDocument, passage: Passage) -> str:
    """``the passage is on page 7``, or on pages 7–9 and its quote on page 8."""

    def page_at(offset: int) -> int:
        at = bisect_right(document.pages, offset, key=lambda page: page.start) - 1
        return document.pages[max(0, at)].number

    first, last, quoted = (
        page_at(passage.start),
        page_at(max(passage.start, passage.end - 1)),
        page_of(document, passage),
    )
    if first == last:
        return f"the passage is on page {quoted}"
    return f"the passage is on pages {first}–{last}, its quote on page {quoted}"


@dataclass(frozen=True, slots=True)
class Row:
    """One row on the screen: a piece of a line, or the mark where a page begins."""

    start: int
    end: int
    line_number: int  # of the line that begins here, in a spreadsheet of its row; 0 on its further rows and on marks
    page_mark: int = 0  # page number on a mark


def lay_out(document: ParsedDocument, width: int) -> list[Row]:
    """The document in rows of at most ``width`` cells, broken between words where there are some.

    The rows of a spreadsheet have no marks: their numbers stand where those of lines stand elsewhere.
    """
    text = document.text
    in_rows = page_unit(document.media_type) == "row"
    numbers = {page.end - 1: page.number for page in document.pages} if in_rows else {}  # by the end of the line
    marks = [(page.start, page.number) for page in document.pages if not in_rows]
    rows: list[Row] = []
    next_mark = 0
    start = 0
    number = document.first_line - 1
    while start <= len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while next_mark < len(marks) and marks[next_mark][0] <= end:
            rows.append(Row(marks[next_mark][0], marks[next_mark][0], 0, marks[next_mark][1]))
            next_mark += 1
        if start < len(text) or start == 0:  # text that ends in a line end has no line after it
            _break_line(rows, text, start, end, numbers.get(end, 0) if in_rows else number, max(1, width))
        start = end + 1
    return rows


def row_of(rows: Sequence[Row], offset: int) -> int:
    """Index of the row that holds ``offset``."""
    found = bisect_right(rows, offset, key=lambda row: row.start) - 1
    return max(0, found)


def cells(character: str) -> int:
    return TAB_CELLS if character == "\t" else get_character_cell_size(character)


def _break_line(rows: list[Row], text: str, start: int, end: int, number: int, width: int) -> None:
    line = text[start:end]
    if line.isascii() and "\t" not in line:
        if len(line) <= width:
            rows.append(Row(start, end, number))
            return
        one_cell_each = True
    else:
        one_cell_each = False
    while True:
        stop = min(start + width, end) if one_cell_each else _fitting(text, start, end, width)
        if stop < end:
            space = text.rfind(" ", start, stop + 1)
            if space > start:
                stop = space + 1  # the space stays at the end of its row, where it may hang over
        rows.append(Row(start, stop, number))
        number = 0
        start = stop
        if start >= end:
            return


def _fitting(text: str, start: int, end: int, width: int) -> int:
    """The furthest offset up to which the text fits; at least one character on."""
    used = 0
    for offset in range(start, end):
        used += cells(text[offset])
        if used > width:
            return max(offset, start + 1)
    return end
