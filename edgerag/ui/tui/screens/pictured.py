"""A document whose pages can be looked at as they look, beside its text."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from edgerag.types import PICTURED, PageWanted, ParsedDocument, Source
from edgerag.ui.tui import kitty, page_look, shown
from edgerag.ui.tui.page_look import PreparedPage, Sizing
from edgerag.ui.tui.passage import Passage, home_words, page_of, wanted_page
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.widgets.page_view import PageView
from edgerag.ui.tui.work import Run

if TYPE_CHECKING:
    from edgerag.ingest.page_pictures import PagePictures

_SAY_AFTER_S = 0.3  # a page that comes sooner is not announced


class PicturedScreen(SideScreen):
    """Draws one page at a time, in a thread; another page, another size and the end of the screen stop that."""

    KEYS_TITLE = "Document as it looks"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "switch", "Picture/text", tooltip="The page as it looks, or the text"),
        Binding("right_square_bracket", "turn(1)", "Next page", key_display="]"),
        Binding("left_square_bracket", "turn(-1)", "Previous page", show=False, key_display="["),
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", key_display="+", tooltip="Make the page larger"),
        Binding("minus", "zoom(-1)", "Zoom out", show=False, key_display="-", tooltip="Make the page smaller"),
        Binding("0", "zoom(0)", "As wide as the window", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._page = PageView()
        self._about_page = Static(classes="detail")
        self._opening = asyncio.Lock()  # of who opens or leaves pages: two pages wanted at once share one process
        self._pages: PagePictures | None = None
        self._of: Source | None = None  # whose pages those are
        self._shown: tuple[ParsedDocument, Passage | None] | None = None
        self._number = 1
        self._drawing: Run | None = None
        self._identity = 0  # of the picture that the terminal keeps
        self._is_refused = False  # the sentence above is that there is no picture
        self._page.display = self._about_page.display = False

    async def on_unmount(self) -> None:
        self._stop_drawing()
        await self._leave_pages()
        self._forget_picture(self._identity)

    def on_screen_suspend(self) -> None:
        self._page.refresh()  # under a dialog a page is text, which can be shaded

    def on_screen_resume(self) -> None:
        self._page.refresh()

    @property
    def page_view(self) -> PageView | None:
        return self._page if self.is_pictured else None

    def terminal_resized(self) -> None:
        """Its cells may be of another size, though there are as many."""
        if self.is_pictured and self._page.is_of_other_cells(self._sizing()):
            self._draw()

    @property
    def is_pictured(self) -> bool:
        """Whether the page is on the screen, and not the text."""
        return bool(self._page.display)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "turn" | "zoom":
                return self.is_pictured
            case "switch":
                return self._shown is not None and self._shown[0].media_type == PICTURED
            case _:
                return True

    # ------------------------------------------------------------ what the screen above does

    def show_text(self) -> None:
        raise NotImplementedError

    def hide_text(self) -> None:
        raise NotImplementedError

    def say(self, content: Content) -> None:
        """A sentence above the document."""
        raise NotImplementedError

    @property
    def source(self) -> Source:
        raise NotImplementedError

    # ------------------------------------------------------------ to the picture, and back

    def show_pages_of(self, document: ParsedDocument, passage: Passage | None) -> None:
        """The document that is open is another, or another passage of it: its picture, if that is how it is read."""
        self._shown = document, passage
        self._number = page_of(document, passage)
        self.refresh_bindings()
        if self.edgerag.document_view == "picture":
            self._draw(at_passage=True)
        else:
            self._to_text()

    def show_no_pages(self) -> None:
        """The document is not there any more."""
        self._shown = None
        self._to_text()

    def go_to_passage(self) -> None:
        """Back to the page of the passage, and on it to its place."""
        if self._shown is not None:
            number, self._number = self._number, page_of(*self._shown)
            if number == self._number and self._drawing is None:
                self._page.scroll_to_passage()
            else:
                self._draw(at_passage=True)

    def action_switch(self) -> None:
        if self._shown is None:
            self.notify("There is no document to show.", markup=False)
        elif self.is_pictured:
            self.edgerag.keep_document_view("text")
            self._to_text()
        else:
            self.edgerag.keep_document_view("picture")
            self._number = page_of(*self._shown)
            self._draw(at_passage=True)

    def _to_text(self) -> None:
        self._stop_drawing()
        self._page.display = self._about_page.display = False
        self.show_text()
        self.refresh_bindings()

    def action_turn(self, step: int) -> None:
        number = min(max(1, self._number + step), self._page_count)
        if number != self._number:
            self._number = number
            self._draw()

    def action_zoom(self, step: int) -> None:
        self._page.zoom(step)

    def on_page_view_turn_wanted(self, message: PageView.TurnWanted) -> None:
        self.action_turn(message.step)

    def on_page_view_size_wanted(self) -> None:
        if self.is_pictured:
            self._draw()

    # ------------------------------------------------------------ drawing

    def _stop_drawing(self) -> None:
        if self._drawing is not None:
            self._drawing.stop()
            self._drawing = None

    def _draw(self, *, at_passage: bool = False) -> None:
        self._stop_drawing()
        run = self._drawing = Run()
        self.edgerag.track(run)
        if not self.is_pictured:
            self._page.display = self._about_page.display = True
            self.hide_text()
            self._page.focus()
            self.refresh_bindings()
        if self._of is not self.source:
            self._page.clear()
        self._about_page.update(Content(f"Page {self._number} of {self._page_count}"))
        self.set_timer(_SAY_AFTER_S, lambda: self._say_drawing(run))
        self.call_after_refresh(self._begin, run, at_passage)  # only then the pane has its size

    @property
    def _page_count(self) -> int:
        return len(self._shown[0].pages) if self._shown is not None else 0

    def _say_drawing(self, run: Run) -> None:
        if run is self._drawing:
            self._about_page.update(Content(f"Page {self._number} of {self._page_count} is being drawn …"))

    def _begin(self, run: Run, at_passage: bool) -> None:
        if not run.stopped():
            self.start(self._make(run, at_passage), failed=lambda problem: self._fail(run, problem))

    async def _make(self, run: Run, at_passage: bool) -> None:
        assert self._shown is not None, "a page is drawn of a document that is open"
        document, passage = self._shown
        sizing = self._sizing()
        columns = self._page.columns(sizing)
        wanted = wanted_page(document, passage, self._number, sizing.pixels_across(columns))
        try:
            pages = await self._pages_of(self.source)
            drawn = await asyncio.to_thread(_draw, pages, wanted, run, sizing, columns)
        finally:
            self.edgerag.forget(run)
        if drawn is not None and not run.stopped():
            self._drawing = None
            self._show_page(drawn, at_passage=at_passage)

    async def _pages_of(self, source: Source) -> PagePictures:
        async with self._opening:
            if self._pages is None or self._of is not source:
                await self._close_pages()
                self._pages, self._of = await asyncio.to_thread(self.session.source_pages, source), source
            return self._pages

    async def _leave_pages(self) -> None:
        async with self._opening:
            await self._close_pages()

    async def _close_pages(self) -> None:
        pages, self._pages, self._of = self._pages, None, None
        if pages is not None:
            await asyncio.to_thread(pages.close)

    def _fail(self, run: Run, problem: Problem) -> None:
        """Back to the text, with the reason; but not for a page that nobody waits for any more."""
        if run.stopped():
            return
        self._to_text()
        self.say(Content.styled("No picture; this is the text. ", "$text-warning").append(problem.content()))
        self._is_refused = True

    def _show_page(self, drawn: PreparedPage, *, at_passage: bool) -> None:
        if drawn.escape:
            self.edgerag.write_to_terminal(drawn.escape)
        self._page.show(drawn, at_passage=at_passage)
        if self._is_refused:
            self._is_refused = False
            self.say(Content())
        before, self._identity = self._identity, drawn.identity
        self.call_after_refresh(self._forget_picture, before)  # not while its cells are on the screen still
        self._about_page.update(self._about(drawn))

    def _forget_picture(self, identity: int) -> None:
        if identity:
            self.edgerag.write_to_terminal(kitty.forgotten(identity, in_tmux="TMUX" in os.environ))

    def _about(self, drawn: PreparedPage) -> Content:
        picture = drawn.picture
        parts = [f"Page {picture.number} of {picture.page_count}", self._page.zoom_words]
        assert self._shown is not None
        document, passage = self._shown
        if passage is not None:
            home = page_of(document, passage)
            if home != picture.number and not picture.passage:
                parts.append(home_words(document, passage))
            elif not picture.passage:
                parts.append("the passage was not found on this page")
        if lack := self._sizing().lack:
            parts.append(lack)
        return shown.line(" · ".join(parts), 200)

    def _sizing(self) -> Sizing:
        console = self.app.console
        return page_look.sizing(
            self.session.settings.ui.page_graphics,
            os.environ,
            in_colour=not self.app.no_color,
            true_colour=console.color_system == "truecolor",
        )


def _draw(pages: PagePictures, wanted: PageWanted, run: Run, sizing: Sizing, columns: int) -> PreparedPage | None:
    """In a thread."""
    picture = pages.draw(wanted, stopped=run.stopped)
    if picture is None or run.stopped():
        return None
    return page_look.made_ready(picture, sizing, columns, in_tmux="TMUX" in os.environ)
