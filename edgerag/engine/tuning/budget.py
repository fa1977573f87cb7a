"""The time that a search may take, and the wish to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable

from edgerag.types import CancelCheck


class Stopped(Exception):
    """There is no time left, or somebody wants the machine. What was measured is kept."""


class Budget:
    """Starts when it is made."""

    def __init__(self, seconds: float, *, cancelled: CancelCheck, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cancelled = cancelled
        self._began = clock()
        self._seconds = seconds

    @property
    def cancelled(self) -> bool:
        return self._cancelled()

    def spent(self) -> float:
        return self._clock() - self._began

    def left(self) -> float:
        return self._seconds - self.spent()

    def check(self, needed_s: float = 0.0) -> None:
        """Raises Stopped when it was cancelled, or when less than ``needed_s`` is left."""
        if self.cancelled or self.left() <= needed_s:
            raise Stopped
