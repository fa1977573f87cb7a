"""The log of questions and answers: follows the answer that streams, until the user scrolls up.

Of a long thread only the end is there at first; what is before it comes as the user scrolls up to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from edgerag.types import Exchange
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.one_layout import OneLayout
from edgerag.ui.tui.widgets.welcome import Welcome

_EARLIER = "▲ Earlier questions of this conversation: scroll up or press Home"


class Conversation(Keyed, OneLayout, VerticalScroll):
    """Holds the exchanges; one of them is current, and its sources are shown beside."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Answer before", show=False),
        Binding("right", "choose(1)", "Answer after", show=False),
        Binding("c", "copy", "Copy", show=True, tooltip="Copy the answer"),
        Binding("C", "copy_with_sources", "Copy with sources", show=False),
        Binding("e", "do('edit')", "Edit", show=True, tooltip="Change the question and ask it again"),
        Binding("r", "do('regenerate')", "Again", show=True, tooltip="Ask the question again"),
        Binding("w", "do('why')", "Why", show=True, tooltip="Why this answer, and where its time went"),
        Binding("g", "do('go_on')", "Go on", show=True, tooltip="Go on with an answer that stopped"),
        Binding("left_square_bracket", "version(-1)", "Version before", show=False, key_display="["),
        Binding("right_square_bracket", "version(1)", "Version after", show=False, key_display="]"),
        *(Binding(f"{n}", f"peek({n})", f"Passage of source {n}", show=False) for n in range(1, 10)),
        Binding("n", "next_mark(1)", "Next source of the answer", show=False),
        Binding("p", "next_mark(-1)", "Previous source of the answer", show=False),
        Binding("enter", "open_peeked", "Open the passage in its document", show=False),
        Binding("t", "thought", "Show what the model thought", show=False),
    ]

    class CurrentChanged(Message):
        """Another exchange is current."""

        def __init__(self, exchange: ExchangeView) -> None:
            super().__init__()
            self.exchange = exchange

    class Wanted(Message):
        """The user wants something done about the current exchange: "edit", "regenerate", "go_on" or "why"."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    class VersionWanted(Message):
        """Another version of the current exchange is wanted."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class EarlierWanted(Message):
        """What is before the first exchange on the screen is wanted."""

    class PeekWanted(Message):
        """The passage of a source is wanted: number ``number``, or the one that is ``step`` further."""

        def __init__(self, *, number: int = 0, step: int = 0) -> None:
            super().__init__()
            self.number = number
            self.step = step

    class PeekedWanted(Message):
        """The passage that is shown is wanted in its document."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._welcome = Welcome()
        self._earlier = Static(Content.styled(_EARLIER, "$text-muted"), classes="earlier")
        self._current: ExchangeView | None = None
        self._following = False
        self._asked_earlier = False

    def on_mount(self) -> None:
        self._earlier.display = False
        self.watch(self, "scroll_y", self._look_up, init=False)

    def on_resize(self) -> None:
        self._follow_soon()

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        grown = virtual_size != self.virtual_size
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if grown:
            self._follow_soon()
        return changed

    def compose(self) -> ComposeResult:
        yield self._welcome
        yield self._earlier

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        current = self._current
        match action, parameters:
            case "choose" | "do" | "copy" | "copy_with_sources" | "version" | "thought", _ if current is None:
                return False
            case "do", ("go_on",):
                return self.can_go_on
            case "do", ("why",):
                return current is not None and current.answer is not None
            case "copy" | "copy_with_sources", _:
                return current is not None and current.has_text
            case "version", _:
                return current is not None and current.kept.versions > 1
            case "thought", _:
                return current is not None and current.has_thought
            case "peek", (number,):
                return number in self._source_numbers
            case "next_mark" | "open_peeked", _:
                return bool(self._source_numbers)
            case _:
                return True

    @property
    def exchanges(self) -> list[ExchangeView]:
        return list(self.query_children(ExchangeView))

    @property
    def current(self) -> ExchangeView | None:
        return self._current

    @property
    def can_go_on(self) -> bool:
        """The current answer has stopped before its end."""
        return self._current is not None and (self._current.can_go_on or self._current.stopped_before_words)

    @property
    def _source_numbers(self) -> set[int]:
        return {source.number for source in self._current.sources} if self._current is not None else set()

    def show_facts(self, facts: Facts) -> None:
        self._welcome.show(facts)

    # ------------------------------------------------------------ exchanges come and go

    async def begin(self, kept: Exchange) -> ExchangeView:
        """A new exchange at the end, made current and kept in sight."""
        self._welcome.display = False
        exchange = ExchangeView(kept)
        await self.mount(exchange)
        self.make_current(exchange)
        self.follow()
        return exchange

    async def show(self, kept: Sequence[Exchange], *, more: bool) -> None:
        """These exchanges in place of all others, the last one in sight. ``more``: there are others before them."""
        await self.clear()
        self._welcome.display = not kept
        with self.app.batch_update():
            views = [ExchangeView(each) for each in kept]
            await self.mount(*views)
            for view in views:
                await view.restore()
        if views:
            self.make_current(views[-1])
        self._show_more(more)
        self.follow()
        self.call_after_refresh(self._fill)

    async def prepend(self, kept: Sequence[Exchange], *, more: bool) -> None:
        """These exchanges before the others; what is in sight stays there."""
        height, place = self.virtual_size.height, self.scroll_y
        with self.app.batch_update():
            views = [ExchangeView(each) for each in kept]
            await self.mount(*views, after=self._earlier)
            for view in views:
                await view.restore()
        self._show_more(more)

        def stay() -> None:
            self.scroll_to(y=place + self.virtual_size.height - height, animate=False, immediate=True)
            self._asked_earlier = False
            self._fill()

        self.call_after_refresh(stay)

    async def drop_from(self, exchange: ExchangeView) -> None:
        """Takes away this exchange and those after it."""
        exchanges = self.exchanges
        gone = exchanges[exchanges.index(exchange) :]
        if self._current in gone:
            self._current = None
            self.refresh_bindings()
        for each in gone:
            await each.remove()

    async def clear(self) -> None:
        """Forgets all exchanges."""
        self._current = None
        self.refresh_bindings()
        self._following = False
        self.anchor(False)
        self._show_more(False)
        await self.remove_children(ExchangeView)
        self._welcome.display = True

    def _show_more(self, more: bool) -> None:
        self._earlier.display = more
        self._asked_earlier = False

    def _fill(self) -> None:
        """Asks for what is before, where there is nothing yet to scroll up through."""
        if self._earlier.display and self.max_scroll_y == 0 and not self._asked_earlier:
            self._ask_earlier()

    def _look_up(self) -> None:
        if self._earlier.display and self.scroll_y <= 0 and self.max_scroll_y > 0 and not self._asked_earlier:
            self._ask_earlier()

    def _ask_earlier(self) -> None:
        self._asked_earlier = True
        self.post_message(self.EarlierWanted())

    # ------------------------------------------------------------ following

    def follow(self) -> None:
        """Keeps the end in sight from now on."""
        self._following = True
        self._follow_soon()

    def leave_end(self) -> None:
        """Stays where the user is sent to."""
        self._following = False
        self.anchor(False)

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
        elif self.is_anchored and not self._anchor_released and self.scroll_offset.y < self.max_scroll_y:
            self.scroll_end(animate=False, immediate=True)  # the content grew after Textual had looked at its size

    # ------------------------------------------------------------ one is current

    def make_current(self, exchange: ExchangeView) -> None:
        for other in self.exchanges:
            other.set_class(other is exchange, "-current")
        self._current = exchange
        self.refresh_bindings()
        self.post_message(self.CurrentChanged(exchange))

    def action_choose(self, step: int) -> None:
        exchanges = self.exchanges
        if self._current in exchanges:
            position = exchanges.index(self._current) + step
            if 0 <= position < len(exchanges):
                self.make_current(exchanges[position])
                exchanges[position].scroll_visible(top=True, animate=False)
            elif position < 0 and self._earlier.display and not self._asked_earlier:
                self._ask_earlier()

    def action_copy(self) -> None:
        if self._current is not None and self._current.text:
            self.app.copy_to_clipboard(self._current.copied_text)
            self.notify("Answer copied.", markup=False)

    def action_copy_with_sources(self) -> None:
        if self._current is not None and self._current.text:
            self.app.copy_to_clipboard(self._current.text_with_sources())
            self.notify("Answer copied with its sources.", markup=False)

    def action_do(self, what: str) -> None:
        self.post_message(self.Wanted(what))

    def action_version(self, step: int) -> None:
        self.post_message(self.VersionWanted(step))

    def action_peek(self, number: int) -> None:
        self.post_message(self.PeekWanted(number=number))

    def action_next_mark(self, step: int) -> None:
        self.post_message(self.PeekWanted(step=step))

    def action_open_peeked(self) -> None:
        self.post_message(self.PeekedWanted())

    def action_thought(self) -> None:
        if self._current is not None:
            self._current.toggle_thought()

    def on_exchange_view_chosen(self, message: ExchangeView.Chosen) -> None:
        message.stop()
        self.make_current(message.exchange)
