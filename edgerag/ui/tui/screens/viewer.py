"""A source in its place: the document's text or the picture of its page, scrolled to the passage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Footer, Static

from edgerag.types import ParsedDocument, Source
from edgerag.ui.place import full_place, headings_below, in_library, short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.passage import locate
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.pictured import PicturedScreen
from edgerag.ui.tui.widgets.document_text import DocumentText


class ViewerScreen(PicturedScreen):
    """Walks through the sources of one answer."""

    KEYS_TITLE = "Document of a source"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("n,right", "step(1)", "Next source"),
        Binding("h", "home", "Passage", tooltip="Back to the passage"),
        Binding("p,left", "step(-1)", "Prev source", tooltip="Previous source"),
        Binding("c", "copy", "Copy", tooltip="Copy the passage"),
    ]
    AUTO_FOCUS = "DocumentText"

    def __init__(self, sources: Sequence[Source], number: int) -> None:
        super().__init__()
        self._sources = list(sources)
        self._at = next(index for index, source in enumerate(sources) if source.number == number)
        self._title = Static(classes="title")
        self._notice = Static(classes="notice")
        self._text = DocumentText()

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._notice
        yield self._text
        yield self._about_page
        yield self._page
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._load()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "step":
                return len(self._sources) > 1
            case "copy" | "home":
                return bool(self._text.passage_text)
            case _:
                return super().check_action(action, parameters)

    @property
    def source(self) -> Source:
        return self._sources[self._at]

    def action_step(self, step: int) -> None:
        self._at = (self._at + step) % len(self._sources)
        self._load()

    def action_home(self) -> None:
        if self.is_pictured:
            self.go_to_passage()
        else:
            self._text.scroll_to_passage()

    def show_text(self) -> None:
        self._text.display = True
        self._text.focus()

    def hide_text(self) -> None:
        self._text.display = False

    def action_copy(self) -> None:
        if self._text.passage_text:
            self.app.copy_to_clipboard(self._text.passage_text)
            self.notify("Passage copied.", markup=False)

    def _load(self) -> None:
        source = self.source
        self._title.update(self.heading(source, len(self._sources)))
        self.say(Content())
        self.start(self._show(source), failed=self._refuse)

    async def _show(self, source: Source) -> None:
        document = await asyncio.to_thread(self.session.source_document, source)
        if source is not self.source:
            return  # the user has gone on meanwhile
        if document is None:
            self._text.show(_quote_alone(source), None)
            self.show_no_pages()
            self.say(
                Content.styled("The document is no longer in the library; these are the words it had.", "$text-warning")
            )
            return
        passage = locate(document, source)
        if passage is None:
            self.say(Content.styled("The document has changed; these words are no longer in it.", "$text-warning"))
        elif passage.moved:
            self.say(
                Content.styled("The document has changed since; the passage stands elsewhere now.", "$text-warning")
            )
        self._text.show(document, passage)
        self.show_pages_of(document, passage)

    def heading(self, source: Source, count: int) -> Content:
        """What is open, and where it stands: two rows."""
        chunk = source.hit.chunk
        where = [full_place(chunk), *headings_below(chunk)]
        first = Content.assemble(
            (f"[{source.number}]", "bold $text-accent"),
            f" of {count}  ",
            shown.line(chunk.title or short_path(chunk.path), 200, "bold"),
            ("  cited", "$text-success") if source.cited else "",
        )
        path = shown.line(in_library(chunk) + short_path(chunk.path), 300)
        second = Content.assemble(path, "  ", shown.line(" › ".join(where), 300, "$foreground 75%"))
        return Content("\n").join([first, second])

    def _refuse(self, problem: Problem) -> None:
        self.say(problem.content())

    def say(self, content: Content) -> None:
        self._notice.update(content)
        self._notice.display = bool(content.plain)


def _quote_alone(source: Source) -> ParsedDocument:
    stored = source.hit.chunk
    text = stored.chunk.text or source.quote
    return ParsedDocument(text=text, title=stored.title, media_type="text/plain", first_line=stored.chunk.line_first)
