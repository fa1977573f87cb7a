"""The documents of a library, a row each, painted only where they are looked at: 100,000 cost what ten do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from edgerag.types import Document, page_unit
from edgerag.ui.place import shown_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed

_LONGEST_NAME = 1000
# Mark, state, pages, chunks; the name takes what is left.
_HEADINGS = f"   {'State':<9}  {'Pages':>5}  {'Chunks':>6}  Document"


class DocumentList(Keyed, ScrollView, can_focus=True):
    """One of them is under the cursor, some may be marked."""

    KEYS_TITLE = "List of documents"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Document before", show=False),
        Binding("down", "move(1)", "Document after", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "First document", show=False),
        Binding("end", "edge(1)", "Last document", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"documents--cursor", "documents--odd"}

    class Highlighted(Message):
        """Another document is under the cursor, or none."""

    class Chosen(Message):
        """The document under the cursor is wanted, by a double click."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._documents: Sequence[Document] = ()
        self._marked: frozenset[int] = frozenset()
        self.cursor = 0

    @staticmethod
    def headings() -> Content:
        return Content.styled(_HEADINGS, "bold")

    def __len__(self) -> int:
        return len(self._documents)

    @property
    def at_cursor(self) -> Document | None:
        return self._documents[self.cursor] if self._documents else None

    def show(self, documents: Sequence[Document]) -> None:
        """These; the cursor stays on its document, or in its row where that is gone."""
        before = self.at_cursor
        self._documents = documents
        place = next((n for n, each in enumerate(documents) if before is not None and each.id == before.id), None)
        self.virtual_size = Size(self.scrollable_content_region.width, len(documents))
        self._go(self.cursor if place is None else place)

    def show_marks(self, marked: frozenset[int]) -> None:
        self._marked = marked
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return self.at_cursor is not None if action in ("move", "page", "edge") else True

    # ------------------------------------------------------------ moving

    def action_move(self, step: int) -> None:
        self._go(self.cursor + step)

    def action_page(self, direction: int) -> None:
        self._go(self.cursor + direction * max(1, self.size.height - 1))

    def action_edge(self, direction: int) -> None:
        self._go(0 if direction < 0 else len(self._documents))

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if place < len(self._documents):
            self._go(place)
            if event.chain == 2:
                self.post_message(self.Chosen())

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _go(self, place: int) -> None:
        self.cursor = max(0, min(place, len(self._documents) - 1))
        width = self.scrollable_content_region.width
        self.scroll_to_region(Region(0, self.cursor, width, 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Highlighted())

    # ------------------------------------------------------------ painting

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        place = y + self.scroll_offset.y
        if place >= len(self._documents):
            return Strip.blank(width, self.rich_style)
        style = self.visual_style
        if place == self.cursor:
            style = self.get_visual_style("documents--cursor")
        elif place % 2:
            style = self.get_visual_style("documents--odd")
        content = self._row(self._documents[place]).truncate(width, ellipsis=True)
        return Visual.to_strips(self, content, width, 1, style)[0].adjust_cell_length(width, style.rich_style)

    def _row(self, document: Document) -> Content:
        in_rows = page_unit(document.media_type) == "row"  # which are no pages
        pages = f"{document.page_count:,}" if document.page_count and not in_rows else ""
        mark = "●" if document.id in self._marked else " "
        figures = f" {mark} {_state(document):<9}  {pages:>5}  {document.chunk_count:>6,}  "
        return Content.assemble(figures, shown.line(document_name(document), _LONGEST_NAME))


def document_name(document: Document) -> str:
    """The path from the folder that was named on ingest."""
    folder = document.root.rstrip("/").rpartition("/")[0]
    inside = document.path.removeprefix(f"{folder}/") if document.root else document.path
    return shown_path(inside or document.path)


def _state(document: Document) -> str:
    if document.pending_count:
        return "pending"
    return "warning" if document.warnings else "ready"
