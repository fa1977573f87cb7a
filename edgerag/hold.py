"""Work that somebody holds: its threads finish what they are at and wait, and its clock stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from edgerag.types import CancelCheck

_LOOK_EVERY_S = 0.05  # how soon a stop ends the wait


class Hold:
    """Not held at first. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._real_clock = clock
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._held_s = 0.0  # by those that have ended
        self._since = 0.0  # of the one that is on

    @property
    def is_on(self) -> bool:
        return not self._free.is_set()

    def begin(self) -> None:
        """Holds the work; where it is held already nothing changes."""
        with self._lock:
            if self._free.is_set():
                self._since = self._real_clock()
                self._free.clear()

    def end(self) -> None:
        """Lets it go on; where it is not held nothing changes."""
        with self._lock:
            if not self._free.is_set():
                self._held_s += self._real_clock() - self._since
                self._free.set()

    def clock(self) -> float:
        """Seconds that never go back, and stand still while the work is held."""
        with self._lock:
            now = self._since if self.is_on else self._real_clock()
            return now - self._held_s

    def wait(self, cancelled: CancelCheck) -> bool:
        """Waits while the work is held; whether it is to stop instead of going on."""
        while not self._free.wait(_LOOK_EVERY_S):
            if cancelled():
                return True
        return False

    def waiting(self, cancelled: CancelCheck) -> CancelCheck:
        """``cancelled``, but that who asks it waits while the work is held."""

        def asked() -> bool:
            return self.wait(cancelled) or cancelled()

        return asked
