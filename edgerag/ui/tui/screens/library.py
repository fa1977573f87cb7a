"""The documents of the library."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import DataTable, Footer, Static

from edgerag.types import Document, page_unit
from edgerag.ui.output import size
from edgerag.ui.place import short_path, shown_path
from edgerag.ui.plain import one_line
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts, library_figure
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.confirm import ConfirmDialog

_NAMED_IN_QUESTION = 5


class LibraryScreen(SideScreen):
    """A table of documents: mark with Space, remove with Delete."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("space", "mark", "Mark"),
        Binding("delete,d", "remove", "Remove", key_display="Del"),
        Binding("r", "reload", "Reload", show=False),
    ]
    AUTO_FOCUS = "DataTable"

    def __init__(self) -> None:
        super().__init__()
        self._documents: dict[int, Document] = {}
        self._marked: set[int] = set()
        self._title = Static(classes="title")
        self._notice = Static(classes="notice")
        self._table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        self._detail = Static(classes="detail")

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._notice
        yield self._table
        yield self._detail
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._table.add_column(" ", key="mark", width=1)
        self._table.add_column("State", key="state", width=9)
        self._table.add_column("Pages", key="pages", width=5)
        self._table.add_column("Chunks", key="chunks", width=6)
        self._table.add_column("Document", key="document")
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self._show_facts(self.edgerag.facts)
        self._say(Content("Loading …"))
        self.action_reload()

    def action_reload(self) -> None:
        self.start(self._load(), failed=self._fail)

    async def _load(self) -> None:
        self._show(await asyncio.to_thread(self.session.documents))

    def _show(self, documents: Sequence[Document]) -> None:
        cursor = self._table.cursor_row
        self._documents = {document.id: document for document in documents}
        self._marked &= self._documents.keys()
        self._table.clear()
        for document in documents:
            self._table.add_row(*_cells(document, marked=document.id in self._marked), key=str(document.id))
        if documents:
            self._table.move_cursor(row=min(cursor, len(documents) - 1), animate=False)
            self._say(Content())
        else:
            self._detail.update()
            self._say(
                Content.assemble("No documents yet. Press ", ("F2", "$text-accent"), " to add a file or a folder.")
            )

    def _show_facts(self, facts: Facts) -> None:
        known = facts.library
        if known is None:
            self._title.update(shown.text(f"Library {facts.library_name}", "bold"))
            return
        name = Content.assemble(("Library ", "bold"), shown.text(library_figure(facts), "bold"))
        more = f"{size(known.size_bytes)} on disk, embedder {known.embedder}, {known.folder}"
        self._title.update(Content("\n").join([name, shown.line(more, 300, "$foreground 60%")]))

    def on_data_table_row_highlighted(self) -> None:
        document = self._at_cursor()
        self._detail.update(_detail(document) if document else Content())

    def _at_cursor(self) -> Document | None:
        if not self._table.is_valid_row_index(self._table.cursor_row):
            return None
        key = self._table.coordinate_to_cell_key(self._table.cursor_coordinate).row_key.value
        return self._documents.get(int(key)) if key else None

    def action_mark(self) -> None:
        document = self._at_cursor()
        if document is None:
            return
        self._marked ^= {document.id}
        self._table.update_cell(str(document.id), "mark", _mark_cell(document.id in self._marked))
        self._table.action_cursor_down()

    def action_remove(self) -> None:
        at_cursor = self._at_cursor()
        chosen = [self._documents[i] for i in sorted(self._marked)] or ([at_cursor] if at_cursor else [])
        if chosen:
            self.start(self._confirm_and_remove(chosen), failed=self._fail)

    async def _confirm_and_remove(self, chosen: Sequence[Document]) -> None:
        if not await self.app.push_screen_wait(ConfirmDialog(_question(chosen), agree="Remove")):
            return
        self._say(Content("Removing …"))
        removed = await asyncio.to_thread(self.session.remove, [f"#{document.id}" for document in chosen])
        self._marked.clear()
        self.notify(f"{len(removed)} removed from the library.", markup=False)
        self.edgerag.look_again()
        await self._load()

    def _fail(self, problem: Problem) -> None:
        self._say(problem.content())

    def _say(self, content: Content) -> None:
        self._notice.update(content)
        self._notice.display = bool(content.plain)


def _cells(document: Document, *, marked: bool) -> list[Text]:
    in_rows = page_unit(document.media_type) == "row"  # which are no pages
    return [
        _mark_cell(marked),
        Text(_state(document)),
        Text(f"{document.page_count:,}" if document.page_count and not in_rows else "", justify="right"),
        Text(f"{document.chunk_count:,}", justify="right"),
        Text(one_line(_name(document), 1000)),
    ]


def _name(document: Document) -> str:
    """The path from the folder that was named on ingest; the full one stands below the table."""
    try:
        return shown_path(str(PurePath(document.path).relative_to(PurePath(document.root).parent)))
    except ValueError:
        return shown_path(document.path)


def _mark_cell(marked: bool) -> Text:
    return Text("●" if marked else " ")


def _state(document: Document) -> str:
    if document.pending_count:
        return "pending"
    return "warning" if document.warnings else "ready"


def _detail(document: Document) -> Content:
    facts = f"#{document.id}, {document.media_type}, {size(document.size_bytes)}, language {document.language}"
    if document.pending_count:
        facts += f", {document.pending_count:,} chunks not yet searchable by meaning"
    lines = [
        Content.assemble(shown.line(document.title, 200, "bold"), "  ", shown.line(facts, 200, "$foreground 60%")),
        shown.line(shown_path(short_path(document.path)), 300),
    ]
    lines += [shown.line(warning, 300, "$text-warning") for warning in document.warnings]
    return Content("\n").join(lines)


def _question(chosen: Sequence[Document]) -> Content:
    named = [
        Content.assemble("  ", shown.line(shown_path(short_path(d.path)), 200)) for d in chosen[:_NAMED_IN_QUESTION]
    ]
    if len(chosen) > _NAMED_IN_QUESTION:
        named.append(Content(f"  and {len(chosen) - _NAMED_IN_QUESTION} more"))
    count = "this document" if len(chosen) == 1 else f"these {len(chosen)} documents"
    first = Content.styled(f"Remove {count} from the library?", "bold")
    return Content("\n").join([first, *named, Content.styled("The files themselves stay.", "$foreground 60%")])
