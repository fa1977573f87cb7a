"""Threads beside the conversation: listed, searched, opened; what is typed in each of them and its filter."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Literal

from textual.content import Content

from edgerag.types import FilterText, ThreadMatch
from edgerag.ui.tui import shown, thread_work
from edgerag.ui.tui.screens.filter import FilterDialog
from edgerag.ui.tui.screens.sourced import SourcedScreen
from edgerag.ui.tui.thread_desk import Draft, ThreadDesk
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.filter_line import FilterLine
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.thread_list import ThreadList
from edgerag.ui.tui.widgets.threads_pane import ThreadsPane

_THREADS_FROM = 140  # columns; from here on the list of threads is there unless it is sent away
_FIRST = 3  # exchanges of a long thread that are there at once: more than a screen of them
_PAGE = 6  # that come when the user scrolls up to them
_KEEP_DRAFT_AFTER_S = 0.5  # of no key press
_TITLE_WIDTH = 60


class ThreadedScreen(SourcedScreen):
    """One thread is open, or none yet."""

    def __init__(self) -> None:
        super().__init__()
        self._editing: ExchangeView | None = None  # its question is in the box
        self._filter = FilterText()
        self._aside = ("", FilterText())  # draft and filter of before a question was edited
        self._shows_threads: bool | None = None  # None: as the width has it
        self._draft_number = 0
        self._threads = ThreadsPane(id="threads")
        self._filter_line = FilterLine(id="filter")
        self._question = QuestionBox(id="question")

        self._threads.display = False

    @cached_property
    def _desk(self) -> ThreadDesk:
        return ThreadDesk(self.session, warn=self.edgerag.show_problem)

    @property
    def busy(self) -> bool:
        """An answer is on its way."""
        raise NotImplementedError

    def _refuse_while_busy(self, hint: str = "Esc stops it.") -> bool:
        if self.busy:
            self.notify(f"An answer is being written. {hint}", markup=False)
        return self.busy

    def _place_threads(self) -> None:
        wide = self.size.width >= _THREADS_FROM
        self.set_class(not wide, "-threads-over")
        self._threads.display = wide if self._shows_threads is None else self._shows_threads

    def action_threads(self) -> None:
        """Into the list of threads; from there, away with it."""
        if self._threads.display and self._threads.has_focus_within:
            self._leave_threads()
            return
        self._shows_threads = True
        self._place_threads()
        self._threads.enter()
        self.start(self._list_threads())

    def _leave_threads(self) -> None:
        # Where it lies over the conversation it is away by itself; a wider window has room for it again.
        self._shows_threads = None if self.has_class("-threads-over") else False
        self._place_threads()
        self._question.focus()

    def on_threads_pane_left(self) -> None:
        if self.has_class("-threads-over"):
            self._leave_threads()
        else:
            self._question.focus()

    def on_threads_pane_search_wanted(self) -> None:
        self.start(self._list_threads())

    async def _list_threads(self) -> None:
        store = await self._desk.store()
        words = self._threads.words
        if words:
            matches = await asyncio.to_thread(store.search, words, library=self._desk.library)
        else:
            heads = await asyncio.to_thread(store.heads, library=self._desk.library)
            matches = [ThreadMatch(head, None, "") for head in heads]
        if words == self._threads.words:
            self._threads.show(matches, open_id=self._desk.thread_id)

    def on_thread_list_opened(self, message: ThreadList.Opened) -> None:
        if not self._refuse_while_busy():
            self.start(self._open_from_list(message.match, self._put_away()))

    async def _open_from_list(self, match: ThreadMatch, draft: Draft | None) -> None:
        await self._keep_draft(draft)
        # Of a search: where its words are.
        chosen = match.exchange_id is not None and await self._desk.choose(match.exchange_id)
        await self._open_thread(match.head.id, at=match.exchange_id if chosen else None)
        await self._take_draft()
        if self.has_class("-threads-over"):
            self._leave_threads()
        else:
            self._question.focus()

    async def _open_thread(self, thread_id: int, *, at: int | None = None) -> None:
        """Its end, or as much of it as has the exchange ``at``, which is then the current one."""
        count = _FIRST
        exchanges = await self._desk.open(thread_id, count=count + 1)
        while at is not None and len(exchanges) > count and at not in {each.id for each in exchanges}:
            count *= 4
            exchanges = await self._desk.open(thread_id, count=count + 1)
        self._leave_edit()
        self._peek.hide()
        self._show_sources()
        await self._conversation.show(exchanges[-count:], more=len(exchanges) > count)
        self._threads.show_open(thread_id)
        self._show_title()
        wanted = next((view for view in self._conversation.exchanges if view.kept.id == at), None)
        if wanted is not None:
            self._conversation.make_current(wanted)
            self._conversation.leave_end()
            self.call_after_refresh(wanted.scroll_visible, top=True, animate=False)

    def on_conversation_earlier_wanted(self) -> None:
        self.start(self._show_earlier())

    async def _show_earlier(self) -> None:
        views = self._conversation.exchanges
        if views and self._desk.thread_id is not None:
            store = await self._desk.store()
            first = views[0].kept.id
            earlier = await asyncio.to_thread(store.last, self._desk.thread_id, count=_PAGE + 1, before=first)
            await self._conversation.prepend(earlier[-_PAGE:], more=len(earlier) > _PAGE)

    def _do_to_open(self, what: Literal["rename", "delete", "export"]) -> None:
        if self._desk.thread_id is None:
            self.notify("This conversation has no question yet.", markup=False)
        else:
            self.start(self._do(what, self._desk.thread_id), opens=True)

    def on_threads_pane_wanted(self, message: ThreadsPane.Wanted) -> None:
        self.start(self._do(message.what, message.head.id), opens=True)

    async def _do(self, what: str, thread_id: int) -> None:
        store = await self._desk.store()
        head = await asyncio.to_thread(store.head, thread_id)
        is_open = thread_id == self._desk.thread_id
        match what:
            case "export":
                await thread_work.export(self.edgerag, store, head)
            case "rename":
                renamed = await thread_work.rename(self.edgerag, store, head)
                if renamed is not None and is_open:
                    self._desk.title = renamed.title
                    self._show_title()
            case "delete" if not (is_open and self._refuse_while_busy()):
                if await thread_work.delete(self.edgerag, store, head) and is_open:
                    self._question.put("")
                    await self._new(None)
        await self._list_threads()

    def action_new(self) -> None:
        if not self._refuse_while_busy():
            self.start(self._new(self._put_away()))

    async def _new(self, draft: Draft | None) -> None:
        await self._keep_draft(draft)
        self._desk.close()
        self._leave_edit()
        await self._conversation.clear()
        self._peek.hide()
        self._show_sources()
        await self._take_draft()
        self._threads.show_open(None)
        self._question.focus()

    # ------------------------------------------------------------ filter, draft

    def on_filter_line_chosen(self) -> None:
        self.action_filter()

    def action_filter(self) -> None:
        def take(typed: FilterText | None) -> None:
            if typed is not None:
                self._set_filter(typed)
                self._draft_typed()

        self.edgerag.push_screen(FilterDialog(self._filter), take)

    def _set_filter(self, typed: FilterText) -> None:
        self._filter = typed
        self._filter_line.show(typed)

    def on_text_area_changed(self) -> None:
        self._draft_typed()

    def _draft_typed(self) -> None:
        self._draft_number += 1
        self.set_timer(_KEEP_DRAFT_AFTER_S, lambda number=self._draft_number: self._draft_rests(number))

    def _draft_rests(self, number: int) -> None:
        if number == self._draft_number:
            self.start(self._keep_draft(self._draft_now()))

    async def _keep_draft(self, draft: Draft | None) -> None:
        if draft is not None:
            await self._desk.keep_draft(draft)

    def _draft_now(self) -> Draft | None:
        """The draft as it is, whatever is typed meanwhile; None while a question is edited, which is kept already."""
        if self._editing is not None:
            return None
        return Draft(self._desk.thread_id, self._desk.library, self._question.draft, self._filter)

    def _put_away(self) -> Draft | None:
        """Empties the box at once, so that what is typed from now on belongs to the thread that comes; gives the draft
        of before."""
        draft = self._draft_now()
        self._editing = None
        self._question.put("")
        return draft

    async def _take_draft(self) -> None:
        """What was typed in this thread and not sent, unless the user is already typing something else."""
        text, where = await self._desk.draft()
        if not self._question.text:
            self._question.put(text)
        self._set_filter(where)
        self._show_title()

    def _show_title(self) -> None:
        if self._editing is not None:
            self._question.border_title = Content("Ask otherwise: Enter sends it as another version, Esc leaves it")
        else:
            self._question.border_title = shown.line(self._desk.title, _TITLE_WIDTH) if self._desk.title else None

    def _begin_edit(self, exchange: ExchangeView) -> None:
        """The box is for its question now; what was typed is laid aside."""
        if self._editing is None:
            self._aside = (self._question.draft, self._filter)
            self.start(self._keep_draft(self._draft_now()))
        self._editing = exchange

    def _leave_edit(self) -> None:
        self._editing = None
        self._show_title()
        self.refresh_bindings()
