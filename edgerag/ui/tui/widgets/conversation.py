"""The log of questions and answers: follows the answer that streams, until the user scrolls up."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message

from edgerag.types import Turn
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.widgets.exchange import Exchange
from edgerag.ui.tui.widgets.welcome import Welcome


class Conversation(VerticalScroll):
    """Holds the exchanges; one of them is current, and its sources are shown beside."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Answer before", show=False),
        Binding("right", "choose(1)", "Answer after", show=False),
        Binding("c", "copy", "Copy answer", show=True),
        Binding("t", "thought", "Show what the model thought", show=False),
    ]

    class CurrentChanged(Message):
        """Another exchange is current."""

        def __init__(self, exchange: Exchange) -> None:
            super().__init__()
            self.exchange = exchange

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._welcome = Welcome()
        self._current: Exchange | None = None
        self._following = False

    def on_mount(self) -> None:
        self.watch(self, "virtual_size", self._follow_soon, init=False)

    def on_resize(self) -> None:
        self._follow_soon()

    def compose(self) -> ComposeResult:
        yield self._welcome

    @property
    def exchanges(self) -> list[Exchange]:
        return list(self.query_children(Exchange))

    @property
    def current(self) -> Exchange | None:
        return self._current

    def show_facts(self, facts: Facts) -> None:
        self._welcome.show(facts)

    async def begin(self, question: str) -> Exchange:
        """A new exchange at the end, made current and kept in sight."""
        self._welcome.display = False
        exchange = Exchange(question)
        await self.mount(exchange)
        self.make_current(exchange)
        self._following = True
        self._follow_soon()
        return exchange

    def _follow_soon(self) -> None:
        self.call_after_refresh(self._follow)  # only then the sizes of pane and content fit each other

    def _follow(self) -> None:
        """Keeps the end in sight once there is more than fits. (Textual's anchor would push a short
        conversation to the bottom of its pane.)"""
        overflows = self.max_scroll_y > 0
        if self._following and overflows:
            self._following = False
            self.anchor()
        elif self.is_anchored and not overflows:
            self._following = True
            self.anchor(False)
            self.scroll_home(animate=False, immediate=True)

    async def clear(self) -> None:
        """Forgets all exchanges."""
        self._current = None
        self._following = False
        self.anchor(False)
        await self.remove_children(Exchange)
        self._welcome.display = True

    def make_current(self, exchange: Exchange) -> None:
        for other in self.exchanges:
            other.set_class(other is exchange, "-current")
        self._current = exchange
        self.post_message(self.CurrentChanged(exchange))

    def history(self) -> tuple[Turn, ...]:
        """The answered exchanges, oldest first."""
        turns = (exchange.turn() for exchange in self.exchanges)
        return tuple(turn for turn in turns if turn is not None)

    def action_choose(self, step: int) -> None:
        exchanges = self.exchanges
        if self._current in exchanges:
            position = exchanges.index(self._current) + step
            if 0 <= position < len(exchanges):
                self.make_current(exchanges[position])
                exchanges[position].scroll_visible(top=True, animate=False)

    def action_copy(self) -> None:
        if self._current is not None and self._current.text:
            self.app.copy_to_clipboard(self._current.text)
            self.notify("Answer copied.", markup=False)

    def action_thought(self) -> None:
        if self._current is not None:
            self._current.toggle_thought()

    def on_exchange_chosen(self, message: Exchange.Chosen) -> None:
        message.stop()
        self.make_current(message.exchange)
