"""Where questions are asked and answers read: the screen that is always there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical

from edgerag.errors import EdgeragError, UsageError
from edgerag.machine.courtesy import run_apart
from edgerag.safe_text import can_be_seen
from edgerag.types import AnswerDone, AskEvent, Exchange, Filter, FilterText, NotKept, Unfinished
from edgerag.ui.filtering import read_filter
from edgerag.ui.plain import plain
from edgerag.ui.tui import answering
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.ingest_view import IngestView
from edgerag.ui.tui.inspecting import inspect
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.threaded import ThreadedScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.ingest_bar import IngestBar
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.status_line import StatusLine
from edgerag.ui.tui.widgets.steady_footer import SteadyFooter
from edgerag.ui.tui.work import Run, RunEnded, RunEvent, RunFailed, consume

if TYPE_CHECKING:
    from edgerag.ui.tui.screens.inspector import Section

_SIDE_BY_SIDE_FROM = 100  # columns; below, the sources lie under the conversation
_ANSWER_NICENESS = 9  # a key goes before the computing of an answer, and that before an ingest (docs/decisions/119)
_EARLIER_QUESTIONS = 200


class AskScreen(ThreadedScreen):
    """Threads, conversation, sources, question box, status. One answer at a time: a question sent while one
    is being answered stays in the box, with a hint."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop/back", show=True, tooltip="Stop; back to the question"),
        Binding("tab", "to_sources", "Sources", show=True, tooltip="To sources, answers"),
        Binding(
            "ctrl+t",
            "threads",
            "Threads",
            show=True,
            priority=True,
            tooltip="Threads: the list of conversations, and away with it",
        ),
        Binding("ctrl+l", "filter", "Filter", show=True, priority=True, tooltip="Filter: ask only of some documents"),
        Binding("ctrl+n", "new", "New", show=False, priority=True, tooltip="New conversation"),
        Binding("ctrl+r", "regenerate", "Ask again", show=False, tooltip="Ask the question again"),
        Binding("ctrl+g", "go_on", "Go on", show=False, tooltip="Go on with an answer that stopped"),
        Binding("ctrl+o", "open_first", "Open the first cited source", show=False),
        Binding("f12", "why", "Why", show=False, tooltip="Why this answer: plan, hits, prompt, cache, time"),
    ]
    AUTO_FOCUS = "QuestionBox"

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None
        self._starting = False  # a question is being kept, its answer not yet begun
        self._answering: ExchangeView | None = None
        self._ingest_bar = IngestBar()
        self._status = StatusLine()

    def compose(self) -> ComposeResult:
        with Container(id="body"):
            yield self._threads
            with Vertical(id="talk"):
                yield self._conversation
                yield self._peek
            yield self._sources
        yield self._ingest_bar
        yield self._filter_line
        yield self._question
        yield self._status
        yield SteadyFooter()

    def on_mount(self) -> None:
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self.edgerag.ingest_changed.subscribe(self, self._show_ingest)
        self._show_facts(self.edgerag.facts)
        self._show_sources()
        self._show_title()
        self.start(self._begin())

    async def _begin(self) -> None:
        store = await self._desk.store()
        earlier = await asyncio.to_thread(store.questions, library=self._desk.library, limit=_EARLIER_QUESTIONS)
        self._question.set_earlier(earlier)
        await self._take_draft()
        await self._list_threads()

    def on_unmount(self) -> None:
        store = self._desk.opened_store
        draft = self._draft_now()
        if store is not None and draft is not None:
            try:
                draft.keep(store)
            except EdgeragError as error:
                self.log.error(type(error).__name__)  # the screen is gone; no word of what was typed goes to a log

    def on_resize(self, event: events.Resize) -> None:
        stacked = event.size.width < _SIDE_BY_SIDE_FROM
        self.set_class(stacked, "-stacked")
        self.set_class(event.size.height < 30, "-short")
        self._sources.set_stacked(stacked)
        self._place_threads()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "stop":
                return self.busy or self.focused is not self._question or self._editing is not None
            case "to_sources":
                return bool(self._sources.sources or self._conversation.exchanges)
            case "open_first":
                return bool(self._sources.sources)
            case "go_on":
                return self._conversation.can_go_on
            case "regenerate":
                return self._conversation.current is not None
            case "why":
                return self._has_answer
            case _:
                return True

    @property
    def _has_answer(self) -> bool:
        current = self._conversation.current
        return current is not None and current.answer is not None

    def commands(self) -> Iterable[SystemCommand]:
        """What can be done here now and has no key on every part of the screen, for the palette."""
        current = self._conversation.current
        if current is not None:
            yield from self._answer_commands(current)
        if self._desk.thread_id is not None:
            yield SystemCommand("Rename conversation", "The one that is open", lambda: self._do_to_open("rename"))
            yield SystemCommand(
                "Delete conversation", "The one that is open; asks first", lambda: self._do_to_open("delete")
            )
            yield SystemCommand("Export conversation", "Markdown, HTML or JSON", lambda: self._do_to_open("export"))

    def _answer_commands(self, current: ExchangeView) -> Iterable[SystemCommand]:
        yield SystemCommand("Edit and ask again", "Change the question", self.action_edit)
        if current.has_text:
            yield SystemCommand("Copy answer", "As Markdown", self._conversation.action_copy)
            yield SystemCommand(
                "Copy with sources", "The answer and its sources", self._conversation.action_copy_with_sources
            )
        if current.answer is not None:
            yield SystemCommand(
                "Where the time went", "Stages, tokens, the last answers", lambda: self.action_why("time")
            )
        if current.kept.versions > 1:
            yield SystemCommand("Version before", "Of this question", lambda: self._conversation.action_version(-1))
            yield SystemCommand("Version after", "Of this question", lambda: self._conversation.action_version(1))

    # ------------------------------------------------------------ one question

    @property
    def busy(self) -> bool:
        """An answer is on its way."""
        return self._run is not None or self._starting

    def on_question_box_sent(self, message: QuestionBox.Sent) -> None:
        if self._refuse_while_busy("Esc stops it; your question stays here."):
            return
        if not can_be_seen(message.text):
            self.notify("Type a question first.", markup=False)
            return
        edited = self._editing
        parent_id = self._desk.leaf_id if edited is None else edited.kept.parent_id
        self._ask(message.text, parent_id=parent_id, where=self._filter, in_place_of=edited, typed=True)

    def _ask(
        self,
        question: str,
        *,
        parent_id: int | None,
        where: FilterText,
        in_place_of: ExchangeView | None = None,
        typed: bool = False,
    ) -> None:
        """Begins an answer. ``typed``: the question is the one in the box."""
        self._starting = True
        self.start(self._begin_answer(question, parent_id, where, in_place_of, typed), failed=self._not_begun)

    async def _begin_answer(
        self, question: str, parent_id: int | None, where: FilterText, in_place_of: ExchangeView | None, typed: bool
    ) -> None:
        chosen = read_filter(where)
        kept = await self._desk.ask(question, parent_id=parent_id, where=where)
        if typed:
            self._question.accept(question)
            self._leave_edit()
            self._draft_typed()
        if in_place_of is not None:
            await self._conversation.drop_from(in_place_of)
        self._peek.hide()
        exchange = await self._conversation.begin(kept)
        exchange.show_phase("Searching …")
        self._show_title()
        self._answer(exchange, chosen)

    def _not_begun(self, problem: Problem) -> None:
        self._starting = False
        self.edgerag.show_problem(problem)

    def _answer(self, exchange: ExchangeView, where: Filter | None, unfinished: Unfinished | None = None) -> None:
        run = self._run = Run()
        self._answering, self._starting = exchange, False
        self.edgerag.track(run)
        kept = exchange.kept

        def answer() -> None:
            consume(self, run, lambda: self._events(kept, where, unfinished, run))

        self.run_worker(lambda: run_apart(answer, niceness=_ANSWER_NICENESS), thread=True)
        self.refresh_bindings()
        self.start(self._list_threads())

    def _events(
        self, kept: Exchange, where: Filter | None, unfinished: Unfinished | None, run: Run
    ) -> Iterator[AskEvent | NotKept]:
        """In the worker's thread."""
        from edgerag.threads import keeping

        store = self._desk.opened_store
        assert store is not None, "the question is kept in it"
        history = store.history(kept.parent_id)
        events = self.session.ask(
            kept.question, history=history, where=where, unfinished=unfinished, cancelled=run.stopped
        )
        return keeping.kept(events, store, kept.id)

    async def on_run_event(self, message: RunEvent) -> None:
        exchange = self._answering
        if message.run is not self._run or exchange is None:
            return
        if isinstance(message.event, NotKept):
            self.notify(plain(message.event.reason), title="Not kept", severity="warning", markup=False)
            return
        if await answering.show(exchange, message.event, loads_model=self.edgerag.facts.answers == "model"):
            self._show_sources_of(exchange)
        if isinstance(message.event, AnswerDone):
            self.edgerag.answered(message.event.answer)

    async def on_run_failed(self, message: RunFailed) -> None:
        if message.run is self._run and self._answering is not None:
            self.edgerag.problem_log.note(message.problem)
            await self._answering.fail(message.problem)

    async def on_run_ended(self, message: RunEnded) -> None:
        self.edgerag.forget(message.run)
        if message.run is not self._run:
            return
        exchange, self._answering, self._run = self._answering, None, None
        if exchange is not None and exchange.answer is None and not exchange.has_class("-failed"):
            await exchange.fail(Problem("The answer ended without a result.", ""))
        self.refresh_bindings()
        self.start(self._list_threads())

    # ------------------------------------------------------------ again, otherwise, further

    def on_conversation_wanted(self, message: Conversation.Wanted) -> None:
        {
            "edit": self.action_edit,
            "regenerate": self.action_regenerate,
            "go_on": self.action_go_on,
            "why": self.action_why,
        }[message.what]()

    def _at_hand(self) -> ExchangeView | None:
        """The current exchange, where something can be done about it."""
        exchange = self._conversation.current
        if exchange is None:
            self.notify("There is no answer yet.", markup=False)
            return None
        return None if self._refuse_while_busy() else exchange

    def action_why(self, section: Section = "plan") -> None:
        """Opens the inspector of the current answer."""
        inspect(self.edgerag, self._conversation, section=section)

    def action_regenerate(self) -> None:
        """Asks the current question again; the answer of before stays as a version."""
        if (exchange := self._at_hand()) is not None:
            kept = exchange.kept
            self._ask(kept.question, parent_id=kept.parent_id, where=kept.where, in_place_of=exchange)

    def action_edit(self) -> None:
        """Puts the current question into the box; sent, it becomes another version of it."""
        if (exchange := self._at_hand()) is not None:
            self._begin_edit(exchange)
            self._question.put(exchange.question)
            self._set_filter(exchange.kept.where)
            self._question.focus()
            self._show_title()
            self.refresh_bindings()

    def action_go_on(self) -> None:
        """The current answer, which stopped, goes on where it ended."""
        exchange = self._at_hand()
        if exchange is not None and exchange.stopped_before_words:
            self.action_regenerate()
        elif exchange is not None and not exchange.can_go_on:
            self.notify("This answer is at its end. Ctrl+R asks again.", markup=False)
        elif exchange is not None:
            self._starting = True
            self.start(self._go_on(exchange), failed=self._not_begun)

    async def _go_on(self, exchange: ExchangeView) -> None:
        store = await self._desk.store()
        if exchange.kept.thread_id != self._desk.thread_id:
            raise UsageError("This conversation is no longer kept where it was.", remedy="Ask again.")
        answer = await asyncio.to_thread(store.unfinished, exchange.kept.id)
        await asyncio.to_thread(store.resume, exchange.kept.id)
        exchange.go_on()
        if exchange is self._conversation.exchanges[-1]:
            self._conversation.follow()
        self._answer(exchange, None, answer.unfinished)

    def on_conversation_version_wanted(self, message: Conversation.VersionWanted) -> None:
        if (exchange := self._at_hand()) is not None:
            self.start(self._show_version(exchange.kept.id, message.step))

    async def _show_version(self, exchange_id: int, step: int) -> None:
        store = await self._desk.store()
        version = await asyncio.to_thread(store.version_of, exchange_id, step=step)
        if version != exchange_id and self._desk.thread_id is not None:
            await asyncio.to_thread(store.choose, version)
            await self._open_thread(self._desk.thread_id, at=version)

    # ------------------------------------------------------------ keys

    def action_stop(self) -> None:
        """Stops the answer that is being written; without one, goes back to the question."""
        if self._run is not None:
            self._run.stop()
            if self._answering is not None:
                self._answering.show_phase("Stopping …")
        elif self._peek.number is not None:
            self._peek.hide()
        elif self._editing is not None and self.focused is self._question:
            self._leave_edit()
            self._question.put(self._aside[0])
            self._set_filter(self._aside[1])
        else:
            self._question.focus()

    def action_to_sources(self) -> None:
        """To the sources, on to the answers, back to the question."""
        ring = [self._question, self._sources, self._conversation]
        ring = [widget for widget in ring if widget.display]
        here = next((place for place, widget in enumerate(ring) if widget is self.focused), 0)
        ring[(here + 1) % len(ring)].focus(scroll_visible=False)

    def on_question_box_log_scrolled(self, message: QuestionBox.LogScrolled) -> None:
        if message.direction < 0:
            self._conversation.scroll_page_up(animate=False)
        else:
            self._conversation.scroll_page_down(animate=False)

    # ------------------------------------------------------------ the world around

    def _show_facts(self, facts: Facts) -> None:
        self._status.show(facts)
        self._conversation.show_facts(facts)

    def _show_ingest(self, view: IngestView) -> None:
        self._ingest_bar.show(view)
