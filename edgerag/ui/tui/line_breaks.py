"""Where a line is broken into rows: between words where there are some, within a word that is wider than a row.

What a break takes away is known, so that a line can be put together again exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.cells import cell_len, get_character_cell_size
from textual.content import Content

_WORD = re.compile(r"(\s*)(\S+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A row's part of a line. ``joint``: the blanks of the line between the piece before and this one."""

    content: Content
    joint: str


def broken(line: Content, width: int) -> list[Piece]:
    """``line`` in pieces of at most ``width`` cells, or of one character; one piece at least."""
    if line.cell_length <= width:
        return [Piece(line, "")]
    text = line.plain
    spans = _spans(text, max(1, width))
    starts = sorted({0, len(text), *(place for span in spans for place in span)})
    parts = dict(zip(starts, line.divide(starts[1:-1]), strict=False))
    pieces = []
    for number, (start, end) in enumerate(spans):
        joint = text[spans[number - 1][1] : start] if number else ""
        pieces.append(Piece(parts[start] if start < end else Content(""), joint))
    return pieces


def _spans(text: str, width: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = end = used = 0  # of the row at work
    for match in _WORD.finditer(text):
        blank, word = cell_len(match[1]), cell_len(match[2])
        first, last = match.span(2)
        if used + blank + word <= width:
            used, end = used + blank + word, last
            continue
        if end > start:
            spans.append((start, end))
            start, used = first, 0
        elif blank < width:  # what a line of code is set in by
            used = blank
        else:
            spans.append((start, min(first, start + width)))
            start, used = first, 0
        while used + word > width:
            cut = _fitting(text, first, last, width - used)
            spans.append((start, cut))
            start = first = cut
            word, used = cell_len(text[cut:last]), 0
        used, end = used + word, last
    if end > start or not spans:
        spans.append((start, max(start, end)))
    return spans


def _fitting(text: str, start: int, end: int, room: int) -> int:
    """How far the text goes in so many cells; one character at least, with its accents."""
    at, used = start, 0
    while at < end:
        used += get_character_cell_size(text[at])
        if used > room and at > start:
            break
        at += 1
    while at - start > 1 and cell_len(text[start:at]) > room:  # signs that make the one before wider
        at -= 1
    return at
