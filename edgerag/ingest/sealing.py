"""Sealing as a stage of the ingest: in a thread of its own, so that its progress becomes events.

The thread has the library to itself: whoever consumes the events waits here meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Protocol, TypeVar

from edgerag.hold import Hold
from edgerag.types import CancelCheck, MergeProgress, MergeReport

Event = TypeVar("Event")

_DOING = {"reading": "gathering", "linking": "linking", "writing": "writing"}


class Sealable(Protocol):
    """A library, or vectors that are being made beside one."""

    def seal(
        self, *, merge: bool, progress: Callable[[MergeProgress], None], cancelled: CancelCheck
    ) -> MergeReport: ...


def seal(
    library: Sealable,
    *,
    merge: bool,
    cancelled: CancelCheck,
    event: Callable[[str], Event],
    give_way: Callable[[], None],
    hold: Hold | None = None,
) -> Generator[Event, None, MergeReport]:
    """Seals the library; yields ``event(sentence)`` as it goes on, and returns what was done. ``give_way`` lets past
    who asks something; while it is on ``hold`` nothing is done.

    Raises what Library.seal raises. A consumer that stops listening cancels it.
    """
    news: SimpleQueue[MergeProgress | MergeReport | BaseException] = SimpleQueue()
    abandoned = threading.Event()

    def is_over() -> bool:
        return abandoned.is_set() or cancelled()

    waiting = is_over if hold is None else hold.waiting(is_over)

    def is_to_stop() -> bool:
        give_way()  # asked between two steps, which is where a question can be let past
        return waiting()

    def run() -> None:
        try:
            news.put(library.seal(merge=merge, progress=news.put, cancelled=is_to_stop))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that listens
            news.put(error)

    thread = threading.Thread(target=run, name="sealing")
    thread.start()
    try:
        while True:
            match news.get():
                case MergeProgress() as progress:
                    yield event(sentence(progress))
                case MergeReport() as report:
                    return report
                case BaseException() as error:
                    raise error
    finally:
        abandoned.set()
        thread.join()


def sentence(progress: MergeProgress) -> str:
    """``sealing the index: linking, 4,000 of 20,000``"""
    return f"sealing the index: {_DOING[progress.stage]}, {progress.done_rows:,} of {progress.all_rows:,}"
