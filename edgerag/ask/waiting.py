"""Waiting for something that loads in another thread, without losing the user's cancel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from edgerag.errors import Cancelled
from edgerag.thread_start import start_daemon
from edgerag.types import CancelCheck

T = TypeVar("T")

_Job = tuple[str, Callable[[], None]]  # and the name of the thread meanwhile
_MOST_IDLE = 2
_idle: list[SimpleQueue[_Job]] = []  # where those that have nothing to do wait
os.register_at_fork(after_in_child=_idle.clear)  # a child has none of its parent's threads

_POLL_S = 0.05  # how soon a cancel is noticed while a model loads


def start(make: Callable[[], T], *, name: str) -> Future[T]:
    """Runs ``make`` in another thread, for which leaving the program never waits. Where no thread starts, it is run
    before this returns.

    A thread that has done its work waits for the next: to start one takes milliseconds where the cores are busy.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(make())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the result
            future.set_exception(error)

    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        if not start_daemon(threading.Thread(target=_work, args=(jobs,), name=name)):
            run()
            return future
    jobs.put((name, run))
    return future


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        threading.current_thread().name, run = jobs.get()
        run()
        del run  # and with it what it held
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(jobs)


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
