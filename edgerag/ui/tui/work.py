"""Session work in threads, and how its news reaches the screen.

The events of one run are consumed in one worker thread and posted as messages, never called back
into the UI: a message waits for nobody, so a thread cannot hang on an app that is closing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from edgerag.ui.tui.problem import Problem

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


def consume(target: MessagePump, run: Run, events: Callable[[], Iterator[Any]]) -> None:
    """Runs ``events()`` to its end in this thread and posts what it yields to ``target``."""
    try:
        for event in events():
            target.post_message(RunEvent(run, event))
    except Exception as error:  # noqa: BLE001 - a thread has no caller: whatever happened is shown to the user
        target.post_message(RunFailed(run, Problem.of(error)))
    finally:
        target.post_message(RunEnded(run))
