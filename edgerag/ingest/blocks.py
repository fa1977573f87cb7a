"""The paragraphs, headings, tables and code of a text, found by its blank lines and its marks."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from edgerag.types import Heading

Span = tuple[int, int]
# How a text is marked up. "underlined": titles between lines of marks (reStructuredText, AsciiDoc);
# "lines": every line is a unit (source code, CSV).
Markup = Literal["none", "markdown", "underlined", "lines"]

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_SETEXT = re.compile(r"\n {0,3}(?:=+|-+)[ \t]*(?=\n|$)")
# A title with a line of one mark below it, and perhaps above it.
_UNDERLINED = re.compile(r"(?:([^\w\s])\1+[ \t]*\n)?[^\n]*\n([^\w\s])\2+[ \t]*(?=\n|$)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_ROW_OR_ITEM = re.compile(r"^[ \t]*(?:[|+]|[-*+•][ \t]|\(?\w{1,3}[.)][ \t])|\S[ \t]\|[ \t]|\t", re.MULTILINE)
# A block of more characters is cut at anchors, with at least so many between two; one line in so many is one.
_LONG = 65_536
_LEAST_ANCHORED = 16_384
_ANCHOR_LINES = 64
_ROWS_EXAMINED = 20_000  # characters of a block in which its kind shows


@dataclass(frozen=True, slots=True)
class Block:
    """A span without white space at its ends. ``lines``: its lines are its parts (a table, a list, code)."""

    start: int
    end: int
    heading: Heading | None
    lines: bool


def blocks(text: str, headings: Sequence[Heading], *, markup: Markup) -> Iterator[Block]:
    """All blocks in order; together they hold every character that is not white space.

    ``headings`` in order of their start.
    """
    fences = _fences(text) if markup == "markdown" else []
    structured = markup == "lines"
    position = 0
    for index, heading in enumerate(headings):
        yield from _plain_blocks(text, position, heading.start, fences, structured)
        stop = headings[index + 1].start if index + 1 < len(headings) else len(text)
        position = _heading_end(text, heading.start, stop, markup)
        if span := trimmed(text, heading.start, position):
            yield Block(*span, heading=heading, lines=False)
    yield from _plain_blocks(text, position, len(text), fences, structured)


def trimmed(text: str, start: int, end: int) -> Span | None:
    """The span without white space at its ends; None if nothing is left."""
    body = text[start:end]
    stripped = body.lstrip()
    if not stripped:
        return None
    start += len(body) - len(stripped)
    return start, start + len(stripped.rstrip())


def _heading_end(text: str, start: int, stop: int, markup: Markup) -> int:
    end = text.find("\n", start, stop)
    if end < 0:
        return stop
    if markup == "markdown" and (underline := _SETEXT.match(text, end, stop)):
        return underline.end()
    if markup == "underlined" and (title := _UNDERLINED.match(text, start, stop)):
        return title.end()
    return end


def _plain_blocks(text: str, start: int, end: int, fences: Sequence[Span], structured: bool) -> Iterator[Block]:
    for fence_start, fence_end in fences:
        if start <= fence_start and fence_end <= end:
            yield from _paragraphs(text, start, fence_start, structured)
            if span := trimmed(text, fence_start, fence_end):
                yield Block(*span, heading=None, lines=True)
            start = fence_end
    yield from _paragraphs(text, start, end, structured)


def _paragraphs(text: str, start: int, end: int, structured: bool) -> Iterator[Block]:
    position = start
    while position < end:
        gap = _BLANK_LINE.search(text, position, end)
        stop = gap.start() if gap else end
        if span := trimmed(text, position, stop):
            lines = structured or _made_of_lines(text, *span)
            for piece in _anchored(text, *span):
                yield Block(*piece, heading=None, lines=lines)
        position = gap.end() if gap else end


def _anchored(text: str, start: int, end: int) -> Iterator[Span]:
    """A long block cut before lines whose checksum says so: an edit in it, or a line that a log was given since, then
    moves the chunks up to the next such line, and no others."""
    if end - start > _LONG:
        position = start
        while (position := text.find("\n", max(position, start + _LEAST_ANCHORED), end)) >= 0:
            position += 1
            stop = text.find("\n", position, end)
            line = text[position : stop if stop >= 0 else end]
            if zlib.crc32(line.encode("utf-8", "surrogatepass")) % _ANCHOR_LINES == 0 and stop >= 0:
                if span := trimmed(text, start, position):
                    yield span
                start = position
    if span := trimmed(text, start, end):
        yield span


def _made_of_lines(text: str, start: int, end: int) -> bool:
    """True for a table or a list: at least half of its lines begin like rows or items."""
    body = text[start : min(end, start + _ROWS_EXAMINED)]
    lines = body.count("\n") + 1
    if lines < 2:
        return False
    return 2 * sum(1 for line in body.split("\n") if _ROW_OR_ITEM.search(line)) >= lines


def _fences(text: str) -> list[Span]:
    """Fenced code blocks of Markdown; one that is never closed ends where it begins."""
    found: list[Span] = []
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opening is None:
            if not (line[1][0] == "`" and "`" in line[2]):
                opening = line
        elif line[1].startswith(opening[1]) and not line[2].strip():
            found.append((opening.start(), line.end()))
            opening = None
    return found
