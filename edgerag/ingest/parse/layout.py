"""Paragraphs, headings, rows and items, as a parser finds them, laid out as one text with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgerag.ingest.parse.source import clean_text, clean_title
from edgerag.types import Heading

CELL_SEPARATOR = " | "
# A cell longer than this is prose in a layout table, not a value.
_LONGEST_VALUE = 400
_NO_WORDS = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a document. Rows of the same ``table`` and neighbouring items stand on lines of one block."""

    kind: Literal["paragraph", "heading", "row", "item"]
    text: str
    level: int = 0  # of a heading
    table: int = 0  # of a row


def lay_out(parts: Iterable[Part]) -> tuple[str, tuple[Heading, ...]]:
    """The text of all parts, blank lines between blocks, and where its headings stand."""
    pieces: list[str] = []
    headings: list[Heading] = []
    length = 0
    before: Part | None = None
    for part in parts:
        text = clean_text(part.text).strip("\n").rstrip()
        if not text.strip():
            continue
        if before is not None:
            joined = part.kind == before.kind and part.kind in ("row", "item") and part.table == before.table
            separator = "\n" if joined else "\n\n"
            pieces.append(separator)
            length += len(separator)
        if part.kind == "heading":
            text = " ".join(text.split())
            headings.append(Heading(level=part.level, title=clean_title(text), start=length))
        pieces.append(text)
        length += len(text)
        before = part
    return "".join(pieces), tuple(headings)


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
