"""Where questions are asked and answers read: the screen that is always there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Footer

from edgerag.types import (
    AnswerDelta,
    AnswerDone,
    AskEvent,
    HitsFound,
    InstantAnswer,
    PlanMade,
    PromptReady,
    ThoughtDelta,
    Turn,
)
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.ingest_view import IngestView
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SessionScreen
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import Exchange
from edgerag.ui.tui.widgets.ingest_bar import IngestBar
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.sources import SourcesPane
from edgerag.ui.tui.widgets.status_line import StatusLine
from edgerag.ui.tui.work import Run, RunEnded, RunEvent, RunFailed, consume

_SIDE_BY_SIDE_FROM = 100  # columns; below, the sources lie under the conversation


class AskScreen(SessionScreen[None]):
    """Question box, conversation, sources, status. One answer at a time: a question sent while one
    is being answered stays in the box, with a hint."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", show=True, tooltip="Stop; back to the question"),
        Binding("tab", "to_sources", "Sources", show=True, tooltip="To sources, answers"),
        Binding("ctrl+o", "open_first", "Open the first cited source", show=False),
        Binding("ctrl+n", "new", "New conversation", show=False),
    ]
    AUTO_FOCUS = "QuestionBox"

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None
        self._answering: Exchange | None = None
        self._conversation = Conversation(id="conversation")
        self._sources = SourcesPane(id="sources")
        self._question = QuestionBox(id="question")
        self._ingest_bar = IngestBar()
        self._status = StatusLine()

    def compose(self) -> ComposeResult:
        with Container(id="body"):
            yield self._conversation
            yield self._sources
        yield self._ingest_bar
        yield self._question
        yield self._status
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self.edgerag.ingest_changed.subscribe(self, self._show_ingest)
        self._show_facts(self.edgerag.facts)
        self._show_sources(())

    def on_resize(self, event: events.Resize) -> None:
        stacked = event.size.width < _SIDE_BY_SIDE_FROM
        self.set_class(stacked, "-stacked")
        self.set_class(event.size.height < 30, "-short")
        self._sources.set_stacked(stacked)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "stop":
                return self._run is not None or self.focused is not self._question
            case "to_sources":
                return bool(self._sources.sources)
            case _:
                return True

    # ------------------------------------------------------------ one question

    @property
    def busy(self) -> bool:
        """An answer is on its way."""
        return self._run is not None

    async def on_question_box_sent(self, message: QuestionBox.Sent) -> None:
        if self._run is not None:
            self.notify("An answer is being written. Esc stops it; your question stays here.", markup=False)
        elif not message.text:
            self.notify("Type a question first.", markup=False)
        else:
            await self._ask(message.text)

    async def _ask(self, question: str) -> None:
        history = self._conversation.history()
        self._question.accept()
        run = self._run = Run()
        self._answering = await self._conversation.begin(question)
        self._answering.show_phase("Searching …")
        self.edgerag.track(run)
        self.run_worker(lambda: consume(self, run, lambda: self._events(question, history, run)), thread=True)
        self.refresh_bindings()

    def _events(self, question: str, history: tuple[Turn, ...], run: Run) -> Iterator[AskEvent]:
        """In the worker's thread."""
        return self.session.ask(question, history=history, cancelled=run.stopped)

    async def on_run_event(self, message: RunEvent) -> None:
        exchange = self._answering
        if message.run is not self._run or exchange is None:
            return
        event: Any = message.event
        match event:
            case PlanMade():
                exchange.show_phase("Counting …" if event.plan.kind == "aggregate" else "Searching …")
            case HitsFound():
                exchange.show_phase(f"Found {len(event.hits)} passages …")
            case InstantAnswer():
                exchange.show_evidence(event.sentences)
                exchange.show_sources(event.sources)
                exchange.show_phase("Loading the model …" if self.edgerag.facts.answers == "model" else "")
                self._show_sources_of(exchange)
            case PromptReady():
                exchange.show_sources(event.prompt.sources)
                count = len(event.prompt.sources)
                exchange.show_phase(f"Reading {count} {'source' if count == 1 else 'sources'} … (Esc stops)")
                self._show_sources_of(exchange)
            case ThoughtDelta():
                exchange.add_thought(event.text)
            case AnswerDelta():
                exchange.add_text(event.text)
            case AnswerDone():
                await exchange.finish(event.answer)
                self._show_sources_of(exchange)
                self.edgerag.answered(event.answer)

    async def on_run_failed(self, message: RunFailed) -> None:
        if message.run is self._run and self._answering is not None:
            await self._answering.fail(message.problem)

    async def on_run_ended(self, message: RunEnded) -> None:
        self.edgerag.forget(message.run)
        if message.run is not self._run:
            return
        exchange, self._answering, self._run = self._answering, None, None
        if exchange is not None and exchange.answer is None and not exchange.has_class("-failed"):
            await exchange.fail(Problem("The answer ended without a result.", ""))
        self.refresh_bindings()

    # ------------------------------------------------------------ keys

    def action_stop(self) -> None:
        """Stops the answer that is being written; without one, goes back to the question."""
        if self._run is not None:
            self._run.stop()
            if self._answering is not None:
                self._answering.show_phase("Stopping …")
        else:
            self._question.focus()

    def action_to_sources(self) -> None:
        """To the sources, on to the answers, back to the question."""
        ring = [self._question, self._sources, self._conversation]
        here = next((place for place, widget in enumerate(ring) if widget is self.focused), 0)
        ring[(here + 1) % len(ring)].focus(scroll_visible=False)

    async def action_new(self) -> None:
        if self._run is not None:
            self.notify("An answer is being written. Esc stops it.", markup=False)
            return
        await self._conversation.clear()
        self._show_sources(())
        self._question.focus()

    def action_open_first(self) -> None:
        if self._sources.sources:
            cited = [source for source in self._sources.sources if source.cited]
            self._open((cited or list(self._sources.sources))[0].number)

    def on_question_box_log_scrolled(self, message: QuestionBox.LogScrolled) -> None:
        if message.direction < 0:
            self._conversation.scroll_page_up(animate=False)
        else:
            self._conversation.scroll_page_down(animate=False)

    # ------------------------------------------------------------ sources

    def on_conversation_current_changed(self, message: Conversation.CurrentChanged) -> None:
        self._show_sources_of(message.exchange)

    def on_sources_pane_opened(self, message: SourcesPane.Opened) -> None:
        self._open(message.source.number)

    def on_exchange_source_wanted(self, message: Exchange.SourceWanted) -> None:
        self._conversation.make_current(message.exchange)
        self._show_sources_of(message.exchange)
        self._open(message.number)

    def _show_sources_of(self, exchange: Exchange) -> None:
        if exchange is self._conversation.current:
            self._show_sources(exchange.sources)

    def _show_sources(self, sources: tuple[Any, ...]) -> None:
        self._sources.show(sources)
        self._sources.display = bool(sources)
        self.refresh_bindings()

    def _open(self, number: int) -> None:
        sources = self._sources.sources
        if any(source.number == number for source in sources):
            self.edgerag.open_screen(ViewerScreen(sources, number))
        else:
            self.notify(f"This answer has no source {number}.", severity="warning", markup=False)

    # ------------------------------------------------------------ the world around

    def _show_facts(self, facts: Facts) -> None:
        self._status.show(facts)
        self._conversation.show_facts(facts)

    def _show_ingest(self, view: IngestView) -> None:
        self._ingest_bar.show(view)
