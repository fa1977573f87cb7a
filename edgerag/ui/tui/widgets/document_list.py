"""The documents of a library, a row each, below the rows of their folders or as a list; painted only where they are
looked at: 100,000 cost what ten do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from edgerag.types import UNKNOWN_LANGUAGE, Document
from edgerag.ui.place import short_path, shown_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.document_tree import DocumentTree, Folder, Node, NodeKey, key_of, own_name, pages_of
from edgerag.ui.tui.keys import Keyed

_LONGEST_NAME = 1000
# Mark, state, pages, chunks; the name takes what is left.
_HEADINGS = f"   {'State':<9}  {'Pages':>5}  {'Chunks':>6}  "
_MORE_HEADINGS = f"{'Lang.':<5}  {'Problems':>8}  "
_ROOM_FOR_MORE = 100  # cells: in less the names would be cut
_INDENT = 2  # cells, for each folder around
_FOLD = 2  # cells of the sign of a folder
_UNFOLDED, _FOLDED = "▾ ", "▸ "
_ALL, _SOME, _NONE = "●", "○", " "  # of what is below is marked


class DocumentList(Keyed, ScrollView, can_focus=True):
    """One row is under the cursor, documents may be marked, folders folded."""

    KEYS_TITLE = "List of documents"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Row above", show=False),
        Binding("down", "move(1)", "Row below", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "First row", show=False),
        Binding("end", "edge(1)", "Last row", show=False),
        Binding("left", "fold", "Fold the folder, or go to the one around", show=False),
        Binding("right", "unfold", "Unfold the folder, or go to what is first in it", show=False),
        Binding("f", "fold_all", "Fold all folders, or unfold them", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"documents--cursor", "documents--odd"}

    class Highlighted(Message):
        """Another row is under the cursor, or none."""

    class Chosen(Message):
        """The document under the cursor is wanted, by a double click."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._tree = DocumentTree()
        self._folded: set[str] = set()
        self._rows: Sequence[int] = ()  # the places in the tree that are in sight
        self._marks: Sequence[int] = ()  # the places in the tree that are marked
        self._marked: frozenset[int] = frozenset()
        self.cursor = 0

    @staticmethod
    def headings(width: int) -> Content:
        more = _MORE_HEADINGS if width >= _ROOM_FOR_MORE else ""
        return Content.styled(f"{_HEADINGS}{more}Document", "bold")

    def __len__(self) -> int:
        """Of the rows."""
        return len(self._rows)

    @property
    def node_at_cursor(self) -> Node | None:
        return self._tree.nodes[self._rows[self.cursor]] if self._rows else None

    @property
    def at_cursor(self) -> Document | None:
        node = self.node_at_cursor
        return node if isinstance(node, Document) else None

    @property
    def folder_at_cursor(self) -> Folder | None:
        node = self.node_at_cursor
        return node if isinstance(node, Folder) else None

    def documents_at_cursor(self) -> list[Document]:
        """The one under the cursor, or all that are below the folder there."""
        return list(self._tree.documents(self._rows[self.cursor])) if self._rows else []

    def show(self, tree: DocumentTree, folded: set[str]) -> None:
        """These; the cursor stays on its document or folder. Where a folder is gone it goes to the first document that
        was in it, and where that is gone, too, to the document that is nearest to its row. ``folded``: the keys of
        folders that are; kept up to date as the user folds."""
        before = self._keys_at_cursor()
        self._tree, self._folded = tree, folded
        self._rows = tree.rows(folded)
        self._marks = tree.marks(self._marked)
        place = next((tree.places[key] for key in before if key in tree.places), None)
        self._see_rows(self._nearest_document() if place is None else tree.in_sight(place, self._rows))

    def show_marks(self, marked: frozenset[int]) -> None:
        """``marked``: ids of documents."""
        self._marked = marked
        self._marks = self._tree.marks(marked)
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "move" | "page" | "edge":
                return bool(self._rows)
            case "fold":
                return self._can_fold or self._parent_at_cursor is not None
            case "unfold":
                return self.folder_at_cursor is not None
            case "fold_all":
                return self._has_folders
            case _:
                return True

    # ------------------------------------------------------------ folding

    @property
    def _has_folders(self) -> bool:
        return len(self._tree.nodes) > self._tree.document_count

    @property
    def _can_fold(self) -> bool:
        folder = self.folder_at_cursor
        return folder is not None and folder.key not in self._folded

    @property
    def _parent_at_cursor(self) -> int | None:
        parent = self._tree.parents[self._rows[self.cursor]] if self._rows else -1
        return parent if parent >= 0 else None

    def action_fold(self) -> None:
        if self._can_fold:
            self.toggle()
        elif (parent := self._parent_at_cursor) is not None:
            self._go(self._tree.in_sight(parent, self._rows))

    def action_unfold(self) -> None:
        if self._can_fold:
            self._go(self.cursor + 1)  # no folder is empty
        else:
            self.toggle()

    def action_fold_all(self) -> None:
        """Unfolds all where no row but those of the highest folders is in sight."""
        keys = self._tree.folder_keys()
        if keys <= self._folded:
            self._fold(lost=keys, more=())
        else:
            self._fold(lost=(), more=keys)

    def toggle(self) -> None:
        """Folds the folder under the cursor, or unfolds it."""
        folder = self.folder_at_cursor
        if folder is None:
            return
        if folder.key in self._folded:
            self._fold(lost=(folder.key,), more=())
        else:
            self._fold(lost=(), more=(folder.key,))

    def _fold(self, *, lost: Iterable[str], more: Iterable[str]) -> None:
        if not self._rows:
            return
        place = self._rows[self.cursor]
        self._folded.difference_update(lost)
        self._folded.update(more)
        self._rows = self._tree.rows(self._folded)
        self._see_rows(self._tree.in_sight(place, self._rows))

    def _keys_at_cursor(self) -> list[NodeKey]:
        """Of what is under the cursor, and of the first document in it."""
        node = self.node_at_cursor
        if node is None:
            return []
        first = next(self._tree.documents(self._rows[self.cursor]))
        return [key_of(node), first.id]

    def _nearest_document(self) -> int:
        """The row of the document at the cursor's row or behind it, or of the last before it."""
        rows, nodes = self._rows, self._tree.nodes
        behind = (row for row in range(self.cursor, len(rows)) if isinstance(nodes[rows[row]], Document))
        before = (
            row for row in range(min(self.cursor, len(rows)) - 1, -1, -1) if isinstance(nodes[rows[row]], Document)
        )
        found = next(behind, None)
        return next(before, self.cursor) if found is None else found

    # ------------------------------------------------------------ moving

    def action_move(self, step: int) -> None:
        self._go(self.cursor + step)

    def action_page(self, direction: int) -> None:
        self._go(self.cursor + direction * max(1, self.size.height - 1))

    def action_edge(self, direction: int) -> None:
        self._go(0 if direction < 0 else len(self._rows))

    def go_behind(self) -> None:
        """To the row behind what is under the cursor: behind all that is below a folder."""
        folder = self.folder_at_cursor
        end = folder.end if folder else self._rows[self.cursor] + 1 if self._rows else 0
        if end < len(self._tree.nodes):
            self._go(self._tree.in_sight(end, self._rows))

    def on_click(self, event: events.Click) -> None:
        """A click on a folder folds it or unfolds it; of a double click the second does so on its sign alone."""
        row = event.y + self.scroll_offset.y
        if row >= len(self._rows):
            return
        self._go(row)
        if self.folder_at_cursor is not None:
            sign = self._name_column + self._indent(self._rows[row])
            if event.chain != 2 or sign <= event.x < sign + _FOLD:
                self.toggle()
        elif event.chain == 2:
            self.post_message(self.Chosen())

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _see_rows(self, row: int) -> None:
        """There are other rows; the cursor goes to this one."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows))
        self._go(row)

    def _go(self, row: int) -> None:
        self.cursor = max(0, min(row, len(self._rows) - 1))
        width = self.scrollable_content_region.width
        self.scroll_to_region(Region(0, self.cursor, width, 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Highlighted())

    # ------------------------------------------------------------ painting

    @property
    def _has_more(self) -> bool:
        return self.outer_size.width >= _ROOM_FOR_MORE

    @property
    def _name_column(self) -> int:
        return len(_HEADINGS) + (len(_MORE_HEADINGS) if self._has_more else 0)

    def _indent(self, place: int) -> int:
        """Cells; in folders in folders in folders some are left for the name."""
        room = max(0, self.outer_size.width - self._name_column)
        return min(_INDENT * self._tree.depth(place), room // 2)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        style = self.visual_style
        if row == self.cursor:
            style = self.get_visual_style("documents--cursor")
        elif row % 2:
            style = self.get_visual_style("documents--odd")
        content = self._row(self._rows[row]).truncate(width, ellipsis=True)
        return Visual.to_strips(self, content, width, 1, style)[0].adjust_cell_length(width, style.rich_style)

    def _row(self, place: int) -> Content:
        node = self._tree.nodes[place]
        indent = " " * self._indent(place)
        if isinstance(node, Folder):
            sign = _FOLDED if node.key in self._folded else _UNFOLDED
            name = Content.assemble(
                f"{indent}{sign}",
                shown.line(folder_name(node), _LONGEST_NAME, "bold"),
                Content.styled(f"  {node.document_count:,}", "$foreground 70%"),
            )
            pages, problems = node.page_count, node.problem_count
        else:
            in_a_folder = self._tree.parents[place] >= 0
            label = own_name(node) if in_a_folder else document_name(node)
            beside_signs = " " * _FOLD if self._has_folders else ""
            name = Content.assemble(f"{indent}{beside_signs}", shown.line(label, _LONGEST_NAME))
            pages, problems = pages_of(node), len(node.warnings)
        figures = f" {self._mark(place)} {state_of(node):<9}  {_figure(pages):>5}  {node.chunk_count:>6,}  "
        if self._has_more:
            language = "" if node.language == UNKNOWN_LANGUAGE else node.language
            figures += f"{shown.fitted(language, 5):<5}  {_figure(problems):>8}  "
        return Content.assemble(figures, name)

    def _mark(self, place: int) -> str:
        node = self._tree.nodes[place]
        marked = self._tree.marked_count(place, self._marks)
        if not marked:
            return _NONE
        return _ALL if isinstance(node, Document) or marked == node.document_count else _SOME


def document_name(document: Document) -> str:
    """The path from the folder that was named on ingest."""
    folder = document.root.rstrip("/").rpartition("/")[0]
    inside = document.path.removeprefix(f"{folder}/") if document.root else document.path
    return shown_path(inside or document.path)


def folder_name(folder: Folder) -> str:
    """One that is in no other: its path from the working folder where that is shorter."""
    if folder.depth:
        return folder.name
    short = short_path(folder.name)
    return folder.name if short == "." else short


def state_of(node: Node) -> str:
    """Of a folder: the worst of those below it."""
    if node.pending_count:
        return "pending"
    return "warning" if (node.problem_count if isinstance(node, Folder) else node.warnings) else "ready"


def _figure(count: int) -> str:
    return f"{count:,}" if count else ""
