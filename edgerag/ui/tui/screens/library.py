"""The documents of the library."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Footer, Input, Static

from edgerag.types import UNKNOWN_LANGUAGE, Document
from edgerag.ui.output import size
from edgerag.ui.place import short_path, shown_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.document_tree import SEVERAL_LANGUAGES, DocumentTree, Folder, list_of, tree_of
from edgerag.ui.tui.facts import Facts, counted, library_figure
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.confirm import ConfirmDialog
from edgerag.ui.tui.widgets.document_list import DocumentList, document_name, folder_name
from edgerag.ui.tui.widgets.line_input import LineInput

_NAMED_IN_QUESTION = 5


class LibraryScreen(SideScreen):
    """The documents in their folders, or as a list: search with /, mark with Space, remove with Delete."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("slash", "search", "Search", tooltip="Show only documents with these words in path or title"),
        Binding("enter", "read", "Open", tooltip="Read the document, chunk by chunk; fold or unfold the folder"),
        Binding("space", "mark", "Mark", tooltip="Mark the document, or all in the folder"),
        Binding(
            "delete,d", "remove", "Remove", key_display="Del", tooltip="Remove what is marked, or what is at the cursor"
        ),
        Binding("t", "tree", "Tree / list", tooltip="Documents in their folders, or one list of all"),
        Binding("r", "reload", "Reload", show=False),
    ]
    AUTO_FOCUS = "DocumentList"

    def __init__(self) -> None:
        super().__init__()
        self._documents: Sequence[Document] = ()
        self._words: Sequence[str] | None = None  # path and title of each, folded; made when somebody searches
        self._whole: DocumentTree | None = None  # of all documents, as they are looked at; made when it is shown
        self._shown: Sequence[Document] = ()
        self._marked: set[int] = set()
        self._title = Static(classes="title")
        self._search = LineInput(placeholder="Words of path or title", classes="search")
        self._notice = Static(classes="notice")
        self._folded_in_search: set[str] = set()
        self._headings = Static(classes="headings")
        self._list = DocumentList()
        self._detail = Static(classes="detail")
        self._search.display = False

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._search
        yield self._notice
        yield self._headings
        yield self._list
        yield self._detail
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self._show_facts(self.edgerag.facts)
        self._say(Content("Loading …"))
        self.action_reload()

    def on_resize(self, event: events.Resize) -> None:
        self._headings.update(DocumentList.headings(event.size.width))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "mark" | "read":
                return len(self._list) > 0
            case "remove":
                return bool(self._marked) or len(self._list) > 0
            case "search" | "tree":
                return bool(self._documents)
            case _:
                return True

    @property
    def count(self) -> int:
        """Of the documents that are shown, in folded folders too."""
        return len(self._shown)

    @property
    def row_count(self) -> int:
        """Of folders and documents, those in folded folders left out."""
        return len(self._list)

    @property
    def cursor(self) -> int:
        return self._list.cursor

    def action_reload(self) -> None:
        self.start(self._load(), failed=self._fail)

    async def _load(self) -> None:
        self._documents = await asyncio.to_thread(self.session.documents)
        self._words = self._whole = None
        self._marked &= {document.id for document in self._documents} if self._marked else set()
        self._list.show_marks(frozenset(self._marked))
        await self._show()

    async def _show(self) -> None:
        """Those that have all the words that are searched for."""
        typed = self._search.value
        wanted = typed.casefold().split()
        documents, view = self._documents, self.edgerag.library_view
        found, tree, arrange = documents, self._whole, tree_of if view.as_tree else list_of
        if wanted:
            if self._words is None:
                self._words = await asyncio.to_thread(lambda: [_words(each) for each in documents])
            found = await asyncio.to_thread(_having, documents, self._words, wanted)
            tree = None
        if tree is None:
            tree = await asyncio.to_thread(arrange, found)
        as_wanted = arrange is (tree_of if view.as_tree else list_of)
        if typed != self._search.value or documents is not self._documents or not as_wanted:
            return  # something else is wanted meanwhile
        if wanted:
            self._folded_in_search = set()  # what was found is in sight
        else:
            self._whole = tree
        self._shown = found
        self._list.show(tree, self._folded_in_search if wanted else view.folded)
        self.refresh_bindings()
        if not documents:
            self._say(
                Content.assemble("No documents yet. Press ", ("F2", "$text-accent"), " to add a file or a folder.")
            )
        elif wanted:
            self._say(Content(f"{len(found):,} of {len(documents):,} documents; Esc shows all."))
        else:
            self._say(Content())

    def action_tree(self) -> None:
        """A tree instead of a list, or a list instead of a tree, from now on."""
        view = self.edgerag.library_view
        view.as_tree = not view.as_tree
        self._whole = None
        self.start(self._show(), failed=self._fail)

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
        node = self._list.node_at_cursor
        if node is None:
            self._detail.update(Content())
        else:
            self._detail.update(_detail(node) if isinstance(node, Document) else _folder_detail(node))

    def action_mark(self) -> None:
        """All in a folder, or none of them where all are marked."""
        chosen = {document.id for document in self._list.documents_at_cursor()}
        self._marked = self._marked - chosen if chosen <= self._marked else self._marked | chosen
        self._list.show_marks(frozenset(self._marked))
        self._list.go_behind()

    def on_document_list_chosen(self) -> None:
        self.action_read()

    def action_read(self) -> None:
        document = self._list.at_cursor
        if document is not None:
            self.start(self._read(document), failed=self._fail, opens=True)
        else:
            self._list.toggle()

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
        chosen = [each for each in self._documents if each.id in self._marked]
        folder = None if chosen else self._list.folder_at_cursor
        chosen = chosen or self._list.documents_at_cursor()
        if chosen:
            self.start(self._confirm_and_remove(chosen, folder), failed=self._fail, opens=True)

    async def _confirm_and_remove(self, chosen: Sequence[Document], folder: Folder | None) -> None:
        """``folder``: the one under the cursor, of which all that is shown is chosen."""
        question = _question(chosen, folder_name(folder) if folder else "")
        if not await self.app.push_screen_wait(ConfirmDialog(question, agree="Remove")):
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
        facts += f", {counted(document.pending_count, 'chunk')} not yet searchable by meaning"
    lines = [
        Content.assemble(shown.line(document.title, 200, "bold"), "  ", shown.line(facts, 200, "$foreground 70%")),
        shown.line(shown_path(short_path(document.path)), 300),
    ]
    lines += [shown.line(warning, 300, "$text-warning") for warning in document.warnings]
    return Content("\n").join(lines)


def _folder_detail(folder: Folder) -> Content:
    facts = counted(folder.document_count, "document")
    if folder.language not in (UNKNOWN_LANGUAGE, SEVERAL_LANGUAGES):
        facts += f", language {folder.language}"
    if folder.pending_count:
        facts += f", {counted(folder.pending_count, 'chunk')} not yet searchable by meaning"
    lines = [Content.assemble(shown.line(folder_name(folder), 200, "bold"), "  ", (facts, "$foreground 70%"))]
    if folder.problem_count:
        warnings = f"{counted(folder.problem_count, 'warning')} in it"
        lines.append(Content.styled(warnings, "$text-warning"))
    return Content("\n").join(lines)


def _question(chosen: Sequence[Document], folder: str) -> Content:
    """``folder``: the name of the one that they are in; "" where they were chosen one by one."""
    named = [
        Content.assemble("  ", shown.line(shown_path(short_path(d.path)), 200)) for d in chosen[:_NAMED_IN_QUESTION]
    ]
    if len(chosen) > _NAMED_IN_QUESTION:
        named.append(Content(f"  and {len(chosen) - _NAMED_IN_QUESTION:,} more"))
    count = "this document" if len(chosen) == 1 else f"these {len(chosen):,} documents"
    if folder:
        s = "" if len(chosen) == 1 else "s"
        count = f"{len(chosen):,} document{s} in {shown.fitted(folder, 100)}"
    first = Content.styled(f"Remove {count} from the library?", "bold")
    return Content("\n").join([first, *named, Content.styled("The files themselves stay.", "$foreground 70%")])
