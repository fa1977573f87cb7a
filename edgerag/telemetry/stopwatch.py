"""Wall times of the stages of one answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgerag.types import StageTime


class Stopwatch:
    """Collects stage times in the order in which the stages end; a stage measured twice adds up."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = self._clock()
        try:
            yield
        finally:
            self.add(stage, self._clock() - started)

    def add(self, stage: str, seconds: float) -> None:
        self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds

    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return self._clock() - self._started

    def times(self) -> tuple[StageTime, ...]:
        return tuple(StageTime(stage, seconds) for stage, seconds in self._seconds.items())
