"""The documents of the library."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Footer, Input, Static

from edgerag.types import Document
from edgerag.ui.output import size
from edgerag.ui.place import short_path, shown_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts, library_figure
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.confirm import ConfirmDialog
from edgerag.ui.tui.widgets.document_list import DocumentList, document_name
from edgerag.ui.tui.widgets.line_input import LineInput

_NAMED_IN_QUESTION = 5


class LibraryScreen(SideScreen):
    """A list of documents: search with /, mark with Space, remove with Delete."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("slash", "search", "Search", tooltip="Show only documents with these words in path or title"),
        Binding("enter", "read", "Read", tooltip="Read the document, chunk by chunk"),
        Binding("space", "mark", "Mark"),
        Binding("delete,d", "remove", "Remove", key_display="Del"),
        Binding("r", "reload", "Reload", show=False),
    ]
    AUTO_FOCUS = "DocumentList"

    def __init__(self) -> None:
        super().__init__()
        self._documents: Sequence[Document] = ()
        self._words: Sequence[str] | None = None  # path and title of each, folded; made when somebody searches
        self._shown: Sequence[Document] = ()
        self._marked: set[int] = set()
        self._title = Static(classes="title")
        self._search = LineInput(placeholder="Words of path or title", classes="search")
        self._notice = Static(classes="notice")
        self._list = DocumentList()
        self._detail = Static(classes="detail")
        self._search.display = False

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._search
        yield self._notice
        yield Static(DocumentList.headings(), classes="headings")
        yield self._list
        yield self._detail
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self._show_facts(self.edgerag.facts)
        self._say(Content("Loading …"))
        self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "mark" | "read":
                return self._list.at_cursor is not None
            case "remove":
                return bool(self._marked) or self._list.at_cursor is not None
            case "search":
                return bool(self._documents)
            case _:
                return True

    @property
    def count(self) -> int:
        """Of the documents that are shown."""
        return len(self._shown)

    @property
    def cursor(self) -> int:
        return self._list.cursor

    def action_reload(self) -> None:
        self.start(self._load(), failed=self._fail)

    async def _load(self) -> None:
        self._documents = await asyncio.to_thread(self.session.documents)
        self._words = None
        self._marked &= {document.id for document in self._documents} if self._marked else set()
        self._list.show_marks(frozenset(self._marked))
        await self._show()

    async def _show(self) -> None:
        """Those that have all the words that are searched for."""
        typed = self._search.value
        wanted = typed.casefold().split()
        documents = self._documents
        found = documents
        if wanted:
            if self._words is None:
                self._words = await asyncio.to_thread(lambda: [_words(each) for each in documents])
            found = await asyncio.to_thread(_having, documents, self._words, wanted)
        if typed != self._search.value or documents is not self._documents:
            return  # something else is wanted meanwhile
        self._shown = found
        self._list.show(found)
        self.refresh_bindings()
        if not documents:
            self._say(
                Content.assemble("No documents yet. Press ", ("F2", "$text-accent"), " to add a file or a folder.")
            )
        elif wanted:
            self._say(Content(f"{len(found):,} of {len(documents):,} documents; Esc shows all."))
        else:
            self._say(Content())

    def action_search(self) -> None:
        self._search.display = True
        self._search.focus()

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self.start(self._show(), failed=self._fail)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._list.focus()

    def action_back(self) -> None:
        """Out of the search; without one, out of here."""
        if self._search.display:
            self._list.focus()
            self._search.display = False
            self._search.value = ""
        else:
            self.app.pop_screen()

    def _show_facts(self, facts: Facts) -> None:
        known = facts.library
        if known is None:
            self._title.update(shown.text(f"Library {facts.library_name}", "bold"))
            return
        name = Content.assemble(("Library ", "bold"), shown.text(library_figure(facts), "bold"))
        more = f"{size(known.size_bytes)} on disk, embedder {known.embedder}, {known.folder}"
        self._title.update(Content("\n").join([name, shown.line(more, 300, "$foreground 70%")]))

    def on_document_list_highlighted(self) -> None:
        document = self._list.at_cursor
        self._detail.update(_detail(document) if document else Content())

    def action_mark(self) -> None:
        document = self._list.at_cursor
        if document is None:
            return
        self._marked ^= {document.id}
        self._list.show_marks(frozenset(self._marked))
        self._list.action_move(1)

    def on_document_list_chosen(self) -> None:
        self.action_read()

    def action_read(self) -> None:
        document = self._list.at_cursor
        if document is not None:
            self.start(self._read(document), failed=self._fail, opens=True)

    async def _read(self, document: Document) -> None:
        from edgerag.ui.tui.screens.chunks import ChunksScreen

        chunks = await asyncio.to_thread(self.session.document_chunks, document.id)
        if self.app.screen is not self:
            return  # the user has gone on meanwhile
        if chunks:
            self.app.push_screen(ChunksScreen(chunks))
        else:
            self.notify("It has no text to read. (r reads the list anew.)", severity="warning", markup=False)

    def action_remove(self) -> None:
        at_cursor = self._list.at_cursor
        marked = [each for each in self._documents if each.id in self._marked]
        chosen = marked or ([at_cursor] if at_cursor else [])
        if chosen:
            self.start(self._confirm_and_remove(chosen), failed=self._fail, opens=True)

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


def _having(documents: Sequence[Document], words: Sequence[str], wanted: Sequence[str]) -> list[Document]:
    return [each for each, its in zip(documents, words, strict=True) if all(word in its for word in wanted)]


def _words(document: Document) -> str:
    return f"{document_name(document)} {document.title}".casefold()


def _detail(document: Document) -> Content:
    facts = f"#{document.id}, {document.media_type}, {size(document.size_bytes)}, language {document.language}"
    if document.pending_count:
        facts += f", {document.pending_count:,} chunks not yet searchable by meaning"
    lines = [
        Content.assemble(shown.line(document.title, 200, "bold"), "  ", shown.line(facts, 200, "$foreground 70%")),
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
    return Content("\n").join([first, *named, Content.styled("The files themselves stay.", "$foreground 70%")])
