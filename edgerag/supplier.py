"""Things that take long to make, made once and perhaps in the background: models, and what the session shares."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from edgerag.thread_start import start_daemon

T = TypeVar("T")


class Supplier(Generic[T]):
    """Makes one thing, once, in whichever thread asks first; a failure is not remembered."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._future: Future[T] | None = None

    def start(self) -> None:
        """Begins making it in a background thread, unless it is made or being made. Where no thread starts, whoever
        needs it makes it."""
        with self._lock:  # until the thread has started: nobody waits for one that never does
            if not self._is_claimed():
                future: Future[T] = Future()
                if start_daemon(threading.Thread(target=self._run, args=(future,), name="supplier")):
                    self._future = future

    def __call__(self) -> T:
        future, owned = self._claim()
        if owned:
            self._run(future)
        return future.result()

    def made(self) -> T | None:
        """The thing if it is there already; never waits."""
        future = self._future
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result()

    def discard(self) -> None:
        """Closes the thing, if there is one that can be closed: at once, or in a background thread when it is made."""
        future = self._future
        if future is not None:
            future.add_done_callback(_close)

    def _claim(self) -> tuple[Future[T], bool]:
        with self._lock:
            if self._future is not None and self._is_claimed():
                return self._future, False
            future = self._future = Future()
            return future, True

    def _is_claimed(self) -> bool:
        """Whether it is made or being made; a failure is neither."""
        future = self._future
        return future is not None and not (future.done() and future.exception() is not None)

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._make())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asks for the result
            future.set_exception(error)


def _close(future: Future[T]) -> None:
    if future.exception() is None:
        close = getattr(future.result(), "close", None)
        if close is not None:
            close()
