"""A library that is opened when it is first read, and by one reader at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from edgerag.index.library import Library
    from edgerag.index.shelf import Shelf

ReadT = TypeVar("ReadT", bound="Library | Shelf")


class Reader(Generic[ReadT]):
    """A library for reading, or several, opened on first use; one thread at a time."""

    def __init__(self, open_reader: Callable[[], ReadT]) -> None:
        self._open_reader = open_reader
        self._lock = threading.RLock()
        self._library: ReadT | None = None

    @contextmanager
    def use(self) -> Iterator[ReadT]:
        with self._lock:
            if self._library is not None and not self._library.is_current():
                self._library.close()  # it was given to another embedder
                self._library = None
            if self._library is None:
                self._library = self._open_reader()
            yield self._library

    @contextmanager
    def held(self) -> Iterator[None]:
        """While open nobody reads; waits for who does."""
        with self._lock:
            yield

    def close(self) -> None:
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None
