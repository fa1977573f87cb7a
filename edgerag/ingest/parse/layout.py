"""Paragraphs, headings, rows and items, as a parser finds them, laid out as one text with offsets.

What a person does not see stands between two marks in the text of a part, so that it is known wherever the part goes;
laying out takes the marks away and says which spans they held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgerag.ingest.parse.hidden_text import merged
from edgerag.ingest.parse.source import clean_text, clean_title
from edgerag.types import Heading

CELL_SEPARATOR = " | "
# A cell longer than this is prose in a layout table, not a value.
_LONGEST_VALUE = 400
_NO_WORDS = re.compile(r"[\W\d_]+")
# Control characters that XML cannot hold, and that are taken out of what else a file says.
_HIDDEN_FROM, _HIDDEN_TO = "\x0e", "\x0f"
_MARK = re.compile("([\x0e\x0f])")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a document. Rows of the same ``table`` and neighbouring items stand on lines of one block."""

    kind: Literal["paragraph", "heading", "row", "item"]
    text: str
    level: int = 0  # of a heading
    table: int = 0  # of a row


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A text, where its headings stand, and the spans of it that a person does not see."""

    text: str
    headings: tuple[Heading, ...]
    hidden: tuple[tuple[int, int], ...]


def lay_out(parts: Iterable[Part]) -> LaidOut:
    """The text of all parts, with blank lines between blocks."""
    pieces: list[str] = []
    headings: list[Heading] = []
    hidden: list[tuple[int, int]] = []
    length = 0
    before: Part | None = None
    for part in parts:
        text = _cleaned(part.text).strip("\n").rstrip()
        if not text.strip():
            continue
        if before is not None:
            joined = part.kind == before.kind and part.kind in ("row", "item") and part.table == before.table
            separator = "\n" if joined else "\n\n"
            pieces.append(separator)
            length += len(separator)
        if part.kind == "heading":
            text = " ".join(text.split())
        text, spans = unmarked(text)
        if part.kind == "heading":
            headings.append(Heading(level=part.level, title=clean_title(text), start=length))
        hidden.extend((length + start, length + end) for start, end in spans)
        pieces.append(text)
        length += len(text)
        before = part
    text = "".join(pieces)
    return LaidOut(text, tuple(headings), merged(hidden, text))


def hide(text: str) -> str:
    """The text, marked as one that a person does not see. Blanks and signs alone say nothing, seen or not."""
    plain = bare(text)
    words = plain.strip()
    if not any(character.isalnum() for character in words):
        return plain
    start = plain.index(words)
    return f"{plain[:start]}{_HIDDEN_FROM}{words}{_HIDDEN_TO}{plain[start + len(words) :]}"


def bare(text: str) -> str:
    """The text without any marks."""
    return _MARK.sub("", text)


def unmarked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and the spans that stood between them."""
    if _HIDDEN_FROM not in text:
        return bare(text), []
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length, start = 0, -1
    for piece in _MARK.split(text):
        if piece == _HIDDEN_FROM:
            start = length
        elif piece == _HIDDEN_TO:
            if 0 <= start < length:
                spans.append((start, length))
            start = -1
        else:
            pieces.append(piece)
            length += len(piece)
    return "".join(pieces), spans


def _cleaned(text: str) -> str:
    if _HIDDEN_FROM not in text:
        return clean_text(text)
    return "".join(piece if _MARK.fullmatch(piece) else clean_text(piece) for piece in _MARK.split(text))


def table_row(cells: list[list[Part]], table: int) -> list[Part]:
    """The parts of one row of a table: one line, or the cells one after the other in a table made for layout."""
    filled = [cell for cell in cells if any(part.text.strip() for part in cell)]
    prose = any(part.kind in ("heading", "row") or len(part.text) > _LONGEST_VALUE for cell in filled for part in cell)
    if len(filled) == 1 or prose:
        return [part for cell in filled for part in cell]
    values = [" ".join(" ".join(part.text for part in cell).split()) for cell in filled]
    return [Part("row", CELL_SEPARATOR.join(values), table=table)] if values else []


def sole_title(headings: Iterable[Heading]) -> str:
    """The only heading of the first level, which then is the title; "" if there are none or several."""
    first = [heading.title for heading in headings if heading.level == 1]
    return first[0] if len(first) == 1 else ""


def unseen(parts: Iterable[Part], seen: set[str]) -> Iterator[Part]:
    """Those parts of headers and footers whose words were not seen yet: page numbers differ from section to section."""
    for part in parts:
        words = _NO_WORDS.sub(" ", part.text).strip()
        if words and words not in seen:
            seen.add(words)
            yield Part("paragraph", part.text)
