"""What is pressed takes effect in the order in which it was pressed.

Textual puts a letter into the box that has the focus at once, but looks for what another key does only when that key
has come up from the box through all that holds it. Of keys that arrive together (a fast hand, a slow line, a script), a
letter would overtake the key before it: Ctrl+U would delete what was typed behind it, and what is typed behind F2 would
go where the dialog is not yet.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import Worker

# What a key sets off may set off more: a dialog that ends tells it to its parts, then to the screen below. An answer
# that streams never lets all parts come to rest.
_MOST_WALKS = 4
_LOOK_AGAIN_S = 0.01  # whether a screen that was begun is there
_LONGEST_S = 2.0  # a key that is at work for longer holds no others back


class KeysInOrder:
    """Gives what comes from the keyboard and the mouse to ``give``, which is the app's own handling of it, one after
    another: what comes behind a key waits until that key, and what it set off, are done; what comes before a screen is
    ready waits for the screen."""

    def __init__(
        self,
        app: App[Any],
        give: Callable[[events.Event], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._give = give
        self._clock = clock
        self._waiting: deque[events.Event] = deque()
        self._walk: _Walk | None = None
        self._ready: Screen[Any] | None = None  # the screen that a walk has come by last

    async def take(self, event: events.Event) -> None:
        """To be called where the app handles its messages."""
        self._waiting.append(event)
        if self._walk is None or self._clock() - self._walk.since_s > _LONGEST_S:
            self._walk = None
            await self._give_next()

    def wait_for(self, opening: Worker[None]) -> None:
        """To be called where a key has begun work that will open a screen: what is pressed meanwhile is for that."""
        if self._walk is None:
            self._begin(None, self._focused)
        assert self._walk is not None
        self._walk.opening, self._walk.opens_over = opening, self._app.screen

    async def _give_next(self) -> None:
        while self._waiting and self._walk is None:
            if self._app.screen is not self._ready:
                self._begin(None, self._focused)
                return
            event = self._waiting.popleft()
            focused = self._focused
            await self._give(event)
            if isinstance(event, events.Key):
                self._begin(event, focused)

    @property
    def _focused(self) -> MessagePump:
        return self._app.focused or self._app.screen

    def _begin(self, key: events.Key | None, start: MessagePump) -> None:
        walk = self._walk = _Walk(key, self._clock())
        self._go_to(start, walk)

    def _go_to(self, part: MessagePump | None, walk: _Walk) -> None:
        if part is None or not part.call_later(self._arrive, part, walk):
            self._app.call_later(self._arrive, self._app, walk)  # the part is being closed

    async def _arrive(self, part: MessagePump, walk: _Walk) -> None:
        if walk is not self._walk:
            return  # it took too long
        if part is not self._app:
            walk.at_rest = walk.at_rest and part._message_queue.empty()
            # Textual stops every key at the screen, once it has sent it on to the app.
            if walk.count == 1 and not isinstance(part, Screen):
                walk.is_typed = walk.is_typed or walk.key_is_stopped
            self._go_to(self._app if walk.is_typed else part._parent, walk)
        elif walk.opening is not None:
            if walk.opening.is_finished or self._app.screen is not walk.opens_over:
                walk.opening, walk.count, walk.at_rest = None, 1, True
                self._go_to(self._focused, walk)
            else:
                self._app.set_timer(_LOOK_AGAIN_S, lambda: self._go_to(self._app, walk))
        elif walk.is_done:
            self._walk, self._ready = None, self._app.screen
            await self._give_next()
        else:
            walk.count, walk.at_rest = walk.count + 1, True
            self._go_to(self._focused, walk)


@dataclass(eq=False, slots=True)
class _Walk:
    """The way of a key: from what has the focus up to the app, at each part behind what waits there; then again for
    what the key set off."""

    key: events.Key | None  # None: only for a screen that comes
    since_s: float
    count: int = 1
    at_rest: bool = True  # nothing was on its way where this walk has come by
    is_typed: bool = False  # a letter that is in its box: there is nothing to wait for
    opening: Worker[None] | None = None  # opens a screen, or ends without one
    opens_over: Screen[Any] | None = None

    @property
    def key_is_stopped(self) -> bool:
        return self.key is not None and self.key.is_printable and self.key._stop_propagation

    @property
    def is_done(self) -> bool:
        return self.is_typed or (self.count > 1 and (self.at_rest or self.count >= _MOST_WALKS))
