"""One stream of RTF text (the body, a footnote, a text box): its paragraphs and tables as they close."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from edgerag.ingest.parse.layout import Part, table_row

_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST_ITEM = 8
_DEEPEST_TABLE = 16
# A bullet or a number at a tab, written out by programs that know no lists.
_TYPED = re.compile(r"([•·▪◦‣–]|\(?\w{1,3}[.)])[ \t]*\t")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a paragraph is set. ``heading`` is its level, 0 for the title of the document, None for text."""

    heading: int | None = None
    table: int = 0  # how many tables it stands in
    listed: bool = False
    depth: int = 0  # of its list


@dataclass(slots=True)
class _Row:
    """A row that is still open."""

    number: int  # of its table
    cells: list[list[Part]] = field(default_factory=list)
    cell: list[Part] = field(default_factory=list)


class Story:
    """Collects text, ends paragraphs, cells and rows, and gives the parts."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.marker = ""  # the number or bullet of the paragraph that begins
        self.title = ""
        self._parts: list[Part] = []
        self._pieces: list[str] = []
        self._layout: Layout | None = None  # as it was when the paragraph began
        self._boxes: list[Part] = []
        self._rows: list[_Row] = []  # of the open tables, the outermost first
        self._table = 0
        self._between = True  # something stands after the last table

    def add(self, text: str, layout: Layout) -> None:
        if self._layout is None and text.strip():
            self._layout = layout
        self._pieces.append(text)

    def add_box(self, parts: list[Part]) -> None:
        """Text beside the paragraph is read after it."""
        self._boxes.extend(parts)

    def words(self) -> str:
        """The text that is not yet in a part, on one line; for short destinations."""
        return " ".join(_joined(self._pieces).split())

    def end_paragraph(self, layout: Layout) -> None:
        parts = self._paragraph(layout)
        set_as = self._layout or layout
        level = min(set_as.table, _DEEPEST_TABLE)
        self._layout = None
        if level:
            self._open_rows(level)
            self._rows[level - 1].cell.extend(parts)
        else:
            self._close_rows(0)
            self._between = True
            self._parts.extend(parts)

    def end_cell(self, layout: Layout, level: int) -> None:
        level = min(level, _DEEPEST_TABLE)
        parts = self._paragraph(layout)
        self._layout = None
        self._open_rows(level)
        row = self._rows[level - 1]
        row.cells.append(row.cell + parts)
        row.cell = []

    def end_row(self, layout: Layout, level: int) -> None:
        level = min(level, _DEEPEST_TABLE)
        parts = self._paragraph(layout)
        self._layout = None
        if len(self._rows) >= level:
            self._rows[level - 1].cell.extend(parts)
            self._close_rows(level - 1)
        else:
            self._parts.extend(parts)

    def parts(self, layout: Layout) -> list[Part]:
        """Everything, what was left open included."""
        if self._layout is not None or self._boxes:
            self.end_paragraph(layout)
        self._close_rows(0)
        return self._parts

    def _paragraph(self, layout: Layout) -> list[Part]:
        text = _joined(self._pieces).strip()
        layout = self._layout or layout
        marker, self.marker = self.marker, ""
        self._pieces.clear()
        boxes, self._boxes = self._boxes, []
        return [*self._shown(text, marker, layout), *boxes]

    def _shown(self, text: str, marker: str, layout: Layout) -> list[Part]:
        if not text:
            return []
        if not marker and (typed := _TYPED.match(text)):
            marker, text = typed[1], text[typed.end() :].lstrip()
        numbered = any(character.isalnum() for character in marker)
        if layout.heading is not None:
            if layout.heading == 0:
                self.title = self.title or text
            return [Part("heading", f"{marker} {text}" if numbered else text, level=max(layout.heading, 1))]
        if marker or layout.listed:
            indent = "  " * min(layout.depth, _DEEPEST_ITEM)
            return [Part("item", f"{indent}{marker if numbered else '-'} {text}")]
        return [Part("paragraph", text)]

    def _open_rows(self, level: int) -> None:
        self._close_rows(level)
        while len(self._rows) < level:
            if self._rows or self._between:
                self._table += 1
            if not self._rows:
                self._between = False
            self._rows.append(_Row(self._table))

    def _close_rows(self, level: int) -> None:
        """Ends the open rows of tables deeper than ``level``."""
        while len(self._rows) > level:
            row = self._rows.pop()
            if row.cell:
                row.cells.append(row.cell)
            parts = table_row(row.cells, row.number)
            (self._rows[-1].cell if self._rows else self._parts).extend(parts)


def _joined(pieces: list[str]) -> str:
    text = "".join(pieces)
    if _SURROGATE.search(text):  # a pair that came as two numbers
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
