"""Waiting for something that loads in another thread, without losing the user's cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from edgerag.errors import Cancelled
from edgerag.thread_start import start_daemon
from edgerag.types import CancelCheck

T = TypeVar("T")

_POLL_S = 0.05  # how soon a cancel is noticed while a model loads


def start(make: Callable[[], T], *, name: str) -> Future[T]:
    """Runs ``make`` in a thread of its own, for which leaving the program never waits. Where no thread starts, it is
    run before this returns."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(make())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the result
            future.set_exception(error)

    if not start_daemon(threading.Thread(target=run, name=name)):
        run()
    return future


def wait(future: Future[T], cancelled: CancelCheck, *, poll_s: float = _POLL_S) -> T:
    """The result of ``future``, or what it raised; raises Cancelled once the user asks to stop."""
    while True:
        try:
            return future.result(timeout=poll_s)
        except TimeoutError:
            if future.done():  # just now, or the work itself ran into a time-out
                return future.result()
            if cancelled():
                raise Cancelled("The answer was cancelled.") from None
