"""Session work in threads, and how its news reaches the screen.

The events of one run are consumed in one worker thread and posted as messages, never called back
into the UI: a message waits for nobody, so a thread cannot hang on an app that is closing.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from edgerag.types import AnswerDelta, ThoughtDelta
from edgerag.ui.tui.problem import Problem

_TOLD_EVERY_S = 0.05  # as often as an answer is painted at most

Tell = Callable[[Any], None]
Work = Callable[[Tell], Any]


@dataclass(eq=False, slots=True)
class Run:
    """One answer or one ingest on its way. ``stop`` may be called from any thread, more than once."""

    _stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        self._stopped.set()

    def stopped(self) -> bool:
        return self._stopped.is_set()


class RunMessage(Message, bubble=False):
    """News of a run, posted from its thread."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


class RunEvent(RunMessage):
    """The next event that the session gave."""

    def __init__(self, run: Run, event: Any) -> None:
        super().__init__(run)
        self.event = event


class RunFailed(RunMessage):
    """The run ended with an error."""

    def __init__(self, run: Run, problem: Problem) -> None:
        super().__init__(run)
        self.problem = problem


class RunEnded(RunMessage):
    """The last message of every run, whatever happened."""


def call(target: MessagePump, run: Run, work: Work) -> None:
    """Runs ``work(tell)`` to its end in this thread and posts to ``target`` what it tells, and last what it gives."""

    def tell(news: Any) -> None:
        target.post_message(RunEvent(run, news))

    try:
        target.post_message(RunEvent(run, work(tell)))
    except Exception as error:  # noqa: BLE001 - a thread has no caller: whatever happened is shown to the user
        target.post_message(RunFailed(run, Problem.of(error)))
    finally:
        target.post_message(RunEnded(run))


def consume(
    target: MessagePump, run: Run, events: Callable[[], Iterator[Any]], *, loop: asyncio.AbstractEventLoop
) -> None:
    """Runs ``events()`` to its end in this thread and posts what it yields to ``target``, in ``loop``, that of the
    screen, with pieces of text that come fast as one."""
    telling = _Telling(target, loop)
    try:
        for event in events():
            telling.tell(RunEvent(run, event))
    except Exception as error:  # noqa: BLE001 - a thread has no caller: whatever happened is shown to the user
        telling.tell(RunFailed(run, Problem.of(error)))
    finally:
        telling.tell(RunEnded(run))


class _Telling:
    """Messages in their order. A message costs the screen half a millisecond, and a model gives a hundred tokens a
    second: pieces of one kind that come within the time of a paint are told together."""

    def __init__(self, target: MessagePump, loop: asyncio.AbstractEventLoop) -> None:
        self._target, self._loop = target, loop
        self._pieces: list[RunEvent] = []
        self._due: asyncio.TimerHandle | None = None
        self._told_at = -math.inf

    def tell(self, message: RunMessage) -> None:
        """From the thread of the run."""
        with suppress(RuntimeError):  # the loop is closed: nobody is there any more
            self._loop.call_soon_threadsafe(self._take, message)

    def _take(self, message: RunMessage) -> None:
        if not (isinstance(message, RunEvent) and isinstance(message.event, AnswerDelta | ThoughtDelta)):
            self._flush()
            self._target.post_message(message)
            return
        if self._pieces and type(self._pieces[0].event) is not type(message.event):
            self._flush()
        self._pieces.append(message)
        if self._due is None:
            wait_s = self._told_at + _TOLD_EVERY_S - self._loop.time()
            self._due = self._loop.call_later(max(0.0, wait_s), self._flush)

    def _flush(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._pieces:
            first, text = self._pieces[0], "".join(piece.event.text for piece in self._pieces)
            self._pieces = []
            self._told_at = self._loop.time()
            self._target.post_message(RunEvent(first.run, replace(first.event, text=text)))
