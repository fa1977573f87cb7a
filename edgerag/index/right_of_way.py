"""Who asks goes first: an ingest stands still while a question is looked up, in this process or another.

A priority alone does not do it: work of a low one keeps the memory bus and the caches, and takes a core back between
two waits of the other. So who asks holds a shared flock for the tens of milliseconds from plan to hits, and the ingest
looks at it between two passages. The kernel lets go of it with the process, so nobody stands still for the dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK_NAME = "asking.lock"
_LOOK_EVERY_S = 0.004
_LONGEST_S = 1.0  # in a row: then it works for as long, so that questions without end cannot stop it
_TRIES = 5  # of who asks; the one who looks holds the lock for a microsecond
_BETWEEN_TRIES_S = 0.0002


@contextlib.contextmanager
def asking(folder: Path) -> Iterator[None]:
    """Has the right of way in the library in ``folder`` while the block lasts. Never fails, and never waits long: where
    there is no such file nobody ingests."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(_BETWEEN_TRIES_S)
        yield
    finally:
        os.close(descriptor)


class RightOfWay:
    """The side of the ingest. For any thread; close it."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises OSError where the file cannot be made."""
        self._clock, self._sleep = clock, sleep
        self._works_until = clock()
        self._descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def is_taken(self) -> bool:
        """Whether somebody asks just now."""
        if self._descriptor < 0:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a file system without locks never says so here: then nobody could hold one
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def give(self) -> None:
        """Waits while somebody asks."""
        began = self._clock()
        while began >= self._works_until and self.is_taken():
            if self._clock() - began >= _LONGEST_S:
                self._works_until = self._clock() + _LONGEST_S
                return
            self._sleep(_LOOK_EVERY_S)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
