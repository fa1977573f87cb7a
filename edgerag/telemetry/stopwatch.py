"""Wall times of the stages of one answer: how long each took, and when it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgerag.types import StageSpan, StageTime


class Stopwatch:
    """Collects stage times in the order in which the stages end; a stage measured twice adds up.

    The times are those of the thread that answers, one stage after the other. The spans also have what runs beside it
    or within a stage, and each run apart. Spans may be added by any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self._seconds: dict[str, float] = {}
        self._spans: list[StageSpan] = []

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        started = self._clock()
        try:
            yield
        finally:
            self.add(stage, started - self._started, self._clock() - self._started)

    @contextmanager
    def measure_beside(self, stage: str) -> Iterator[None]:
        """A span that is no time of its own: another thread's, or a part of a stage."""
        started = self._clock()
        try:
            yield
        finally:
            self.add_span(stage, started - self._started, self._clock() - self._started)

    def add(self, stage: str, start_s: float, end_s: float) -> None:
        """A stage that was from ``start_s`` to ``end_s``, as :meth:`elapsed` counts."""
        self._seconds[stage] = self._seconds.get(stage, 0.0) + end_s - start_s
        self.add_span(stage, start_s, end_s)

    def add_span(self, stage: str, start_s: float, end_s: float) -> None:
        """As :meth:`add`, but no time of its own."""
        self._spans.append(StageSpan(stage, start_s, end_s - start_s))

    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return self._clock() - self._started

    def times(self) -> tuple[StageTime, ...]:
        return tuple(StageTime(stage, seconds) for stage, seconds in self._seconds.items())

    def spans(self) -> tuple[StageSpan, ...]:
        """By their beginning; what holds others comes before them."""
        return tuple(sorted(self._spans, key=lambda span: (span.start_s, -span.seconds)))
