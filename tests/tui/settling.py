"""When the app has done all there is to do: every message handled, every callback called, every thread back.

Textual's own pilot takes an app for idle when the process uses no processor for 20 ms. On a busy machine that is also
true of a process that is not given any, and on a quiet one it is a wait of 20 to 60 ms for each key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen

# Turns of the loop without anything to do, after which nothing comes: what a thread or a task has ended with takes one
# turn to reach who waits for it, and one to be a message.
_QUIET_TURNS = 4
# What is still at work then waits for a key, for a dialog or for the test: it is held, or a long one.
_MOST_WAITS, _WAIT_S = 60, 0.001


class CountedThreads(ThreadPoolExecutor):
    """The threads of an event loop; knows whether one is at work."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="counted")
        self.at_work: set[Future[Any]] = set()

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future = super().submit(work, *args, **options)
        self.at_work.add(future)
        future.add_done_callback(self.at_work.discard)
        return future


def _waits_for_messages(pump: MessagePump) -> bool:
    queue: Any = pump._message_queue
    return bool(queue.empty() and queue.ready_event._waiters and not pump._next_callbacks)


def _to_paint(screen: Screen[Any]) -> bool:
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


async def settled(app: App[Any], threads: CountedThreads) -> None:
    """Returns when nothing is on its way, or what is on its way will not come by itself."""
    quiet = waits = 0
    while quiet < _QUIET_TURNS and app._running:
        # The app's own pump runs what a test calls as well: it may be in the middle of that.
        if threads.at_work or not all(map(_waits_for_messages, [app, *app._registry])):
            quiet = 0
            waits += 1
            if waits > _MOST_WAITS:
                break
            await asyncio.sleep(0 if waits < _QUIET_TURNS else _WAIT_S)
            continue
        if app.screen_stack and _to_paint(app.screen) and not app._batch_count:
            app.screen._on_timer_update()
            quiet = 0
        quiet += 1
        await asyncio.sleep(0)


@contextmanager
def exact_waits(app: App[Any]) -> Iterator[None]:
    """While it lasts, the pilot waits for :func:`settled` wherever it would watch the processor."""
    threads = CountedThreads()
    asyncio.get_running_loop().set_default_executor(threads)

    async def wait(*_: float) -> None:
        await settled(app, threads)

    with patch("textual.app.wait_for_idle", wait), patch("textual.pilot.wait_for_idle", wait):
        yield
