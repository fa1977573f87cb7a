"""A conversation with the sources of its answers: marks pointed at, passages shown, documents opened."""

from __future__ import annotations

import asyncio

from edgerag.ui.tui.screens.base import SessionScreen
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.peek import Peek
from edgerag.ui.tui.widgets.sources import SourcesPane


class SourcedScreen(SessionScreen[None]):
    """What a mark leads to."""

    def __init__(self) -> None:
        super().__init__()
        self._conversation = Conversation(id="conversation")
        self._peek = Peek(id="peek")
        self._sources = SourcesPane(id="sources")

    def on_conversation_current_changed(self, message: Conversation.CurrentChanged) -> None:
        self._peek.hide()
        self._show_sources_of(message.exchange)
        if message.exchange.needs_check:
            self.start(self._check_sources(message.exchange))

    async def _check_sources(self, exchange: ExchangeView) -> None:
        """Looks what became of the sources of an answer that was kept."""
        hashes = exchange.kept.passage_hashes
        exchange.found(await asyncio.to_thread(self.session.find_sources, exchange.sources, hashes))
        self._show_sources_of(exchange)

    def on_sources_pane_opened(self, message: SourcesPane.Opened) -> None:
        self._open(message.source.number)

    def on_sources_pane_pointed(self, message: SourcesPane.Pointed) -> None:
        if self.has_class("-stacked"):  # beside the conversation the pane shows enough by itself
            self._show_peek(message.source.number)

    def on_exchange_view_source_wanted(self, message: ExchangeView.SourceWanted) -> None:
        self._conversation.make_current(message.exchange)
        self._show_sources_of(message.exchange)
        self._open(message.number)

    def on_exchange_view_mark_pointed(self, message: ExchangeView.MarkPointed) -> None:
        if message.number is None:
            self._peek.hide()
            return
        if message.exchange is not self._conversation.current:
            self._conversation.make_current(message.exchange)
            self._show_sources_of(message.exchange)
        place = self._conversation.region
        self._show_peek(message.number, at_top=message.row >= place.y + place.height // 2)

    def on_peek_chosen(self, message: Peek.Chosen) -> None:
        self._open(message.number)

    def on_conversation_peek_wanted(self, message: Conversation.PeekWanted) -> None:
        numbers = [source.number for source in self._sources.sources]
        if message.number:
            self._show_peek(message.number)
        elif numbers:
            here = numbers.index(self._peek.number) if self._peek.number in numbers else -min(message.step, 0) - 1
            self._show_peek(numbers[(here + message.step) % len(numbers)])

    def on_conversation_peeked_wanted(self) -> None:
        if self._peek.number is not None:
            self._open(self._peek.number)
        else:
            self.action_open_first()

    def _show_peek(self, number: int, *, at_top: bool = False) -> None:
        source = next((source for source in self._sources.sources if source.number == number), None)
        exchange = self._conversation.current
        if source is None or exchange is None:
            self.notify(f"This answer has no source {number}.", severity="warning", markup=False)
            return
        self._peek.show(source, exchange.source_states.get(number, "current"), at_top=at_top)
        self._sources.point_at(number)

    def _show_sources_of(self, exchange: ExchangeView) -> None:
        if exchange is self._conversation.current:
            self._show_sources(exchange)

    def _show_sources(self, exchange: ExchangeView | None = None) -> None:
        self._sources.show(
            exchange.sources if exchange is not None else (), exchange.source_states if exchange is not None else {}
        )
        self._sources.display = bool(self._sources.sources)
        self.refresh_bindings()

    def _open(self, number: int) -> None:
        sources = self._sources.sources
        if any(source.number == number for source in sources):
            self._peek.hide()
            self.edgerag.open_screen(ViewerScreen(sources, number))
        else:
            self.notify(f"This answer has no source {number}.", severity="warning", markup=False)

    def action_open_first(self) -> None:
        if self._sources.sources:
            cited = [source for source in self._sources.sources if source.cited]
            self._open((cited or list(self._sources.sources))[0].number)
