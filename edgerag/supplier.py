"""Things that take long to make, made once and perhaps in the background: models, and what the session shares."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from edgerag.errors import MemoryShort

T = TypeVar("T")


class Supplier(Generic[T]):
    """Makes one thing, once, in whichever thread asks first; a failure is not remembered."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._future: Future[T] | None = None

    def start(self) -> None:
        """Begins making it in a background thread, unless it is made or being made."""
        future, owned = self._claim()
        if owned:
            # A daemon: a program that wants to exit does not wait for a model to load.
            thread = threading.Thread(target=self._run, args=(future,), name="supplier", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no room for one more: whoever needs it makes it
                with self._lock:
                    self._future = None
                future.set_exception(MemoryShort())  # whoever came between

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
            future = self._future
            if future is not None and not (future.done() and future.exception() is not None):
                return future, False
            future = self._future = Future()
            return future, True

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
