"""A document's text, laid out in rows and painted only where it is looked at, however long it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from edgerag.types import ParsedDocument, page_unit
from edgerag.ui.tui import shown
from edgerag.ui.tui.passage import TAB_CELLS, Passage, Row, cells, lay_out, row_of

_CONTEXT_ROWS = 2  # rows kept in sight above the passage


class DocumentText(ScrollView, can_focus=True):
    """Line numbers at the left, pages marked, the passage set off and the quote in it brighter."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "document--gutter",
        "document--passage",
        "document--quote",
        "document--page",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._document: ParsedDocument | None = None
        self._text = ""  # as shown: same offsets as the document's text
        self._passage: Passage | None = None
        self._rows: list[Row] = []
        self._laid_out_width = 0

    def show(self, document: ParsedDocument, passage: Passage | None) -> None:
        """Shows ``document``, scrolled so that ``passage`` is in sight."""
        self._text = shown.same_length(document.text)
        self._document = replace(document, text=self._text)  # laid out as it is painted
        self._passage = passage
        self._laid_out_width = 0
        self._lay_out()
        self.scroll_to_passage()

    def scroll_to_passage(self) -> None:
        row = 0
        if (passage := self._passage) and self._rows:
            row, quote = row_of(self._rows, passage.start), row_of(self._rows, passage.quote_start)
            if quote - row > self.size.height - 2 * _CONTEXT_ROWS:
                row = quote  # the passage is longer than the screen: the quote matters
        self.scroll_to(y=max(0, row - _CONTEXT_ROWS), x=0, animate=False, immediate=True)
        self.refresh()

    @property
    def passage_text(self) -> str:
        return self._text[self._passage.start : self._passage.end] if self._passage else ""

    def on_resize(self) -> None:
        top = self._rows[min(self.scroll_offset.y, len(self._rows) - 1)].start if self._rows else 0
        first_layout = self._laid_out_width == 0
        if self._lay_out():
            if first_layout:
                self.scroll_to_passage()
            else:
                self.scroll_to(y=row_of(self._rows, top), animate=False, immediate=True)

    def _lay_out(self) -> bool:
        """Breaks the text anew if the width has changed; False if there is nothing to do yet."""
        width = self.scrollable_content_region.width
        if self._document is None or width <= 0 or width == self._laid_out_width:
            return False
        self._laid_out_width = width
        highest = max(self._document.text.count("\n") + 1, *(page.number for page in self._document.pages), 0)
        self._gutter = max(3, len(str(highest))) + 3
        self._rows = lay_out(self._document, width - self._gutter)
        self.virtual_size = Size(width, len(self._rows))
        return True

    # ------------------------------------------------------------ painting

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[y]
        if row.page_mark:
            return self._page_mark(row, width)
        strip = Strip([self._gutter_segment(row), *self._pieces(row, y)])
        return strip.adjust_cell_length(width, base).apply_offsets(0, y)

    def _gutter_segment(self, row: Row) -> Segment:
        passage = self._passage
        inside = passage is not None and row.start < passage.end and row.end > passage.start
        number = str(row.line_number) if row.line_number else ""
        text = f"{number:>{self._gutter - 3}} {'▌' if inside else ' '} "
        return Segment(text, self.get_component_rich_style("document--gutter"))

    def _page_mark(self, row: Row, width: int) -> Strip:
        style = self.get_component_rich_style("document--page")
        unit = page_unit(self._document.media_type) if self._document is not None else "page"
        text = f" {unit} {row.page_mark} "
        return Strip([Segment(text.center(min(width, 60), "─"), style)]).adjust_cell_length(width, self.rich_style)

    def _pieces(self, row: Row, y: int) -> list[Segment]:
        """The text of a row, cut where its style changes."""
        layers = [(row.start, row.end, self.rich_style)]
        if passage := self._passage:
            layers.append((passage.start, passage.end, self.get_component_rich_style("document--passage")))
            layers.append((passage.quote_start, passage.quote_end, self.get_component_rich_style("document--quote")))
        if selected := self._selected_span(row, y, self.text_selection):
            layers.append((*selected, self.screen.get_component_rich_style("screen--selection")))
        edges = sorted({min(max(edge, row.start), row.end) for start, end, _ in layers for edge in (start, end)})
        segments = []
        for start, end in pairwise(edges):
            style = Style.combine([style for first, last, style in layers if first <= start and end <= last])
            segments.append(Segment(self._text[start:end].replace("\t", " " * TAB_CELLS), style))
        return segments

    # ------------------------------------------------------------ selecting with the mouse

    def _selected_span(self, row: Row, y: int, selection: Selection | None) -> tuple[int, int] | None:
        span = selection.get_span(y) if selection is not None else None
        if span is None:
            return None
        first, last = span
        return self._offset_at(row, first), row.end if last < 0 else self._offset_at(row, last)

    def _offset_at(self, row: Row, column: int) -> int:
        """The offset of the character under a column of the widget."""
        used = self._gutter
        for offset in range(row.start, row.end):
            used += cells(self._text[offset])
            if used > column:
                return offset
        return row.end

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        pieces = []
        for y, row in enumerate(self._rows):
            span = self._selected_span(row, y, selection)
            if span is not None and not row.page_mark:
                line_ends = row.end < len(self._text) and self._text[row.end] == "\n"
                pieces.append(self._text[span[0] : span[1]] + ("\n" if line_ends else ""))
        return "".join(pieces).rstrip("\n"), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - painting asks the screen for it
        self.refresh()
