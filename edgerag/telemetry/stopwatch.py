"""Wall times of the stages of one answer or one ingest: how long each took, when it was, and what was counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from edgerag.types import Fact, StageSpan, StageTime

Facts = dict[str, Fact]


@dataclass(frozen=True, slots=True)
class StageSum:
    """All runs of one stage, beside the others or not."""

    count: int
    seconds: float


class Stopwatch:
    """Collects stage times in the order in which the stages end; a stage measured twice adds up.

    The times are those of the thread that answers, one stage after the other. The spans also have what runs beside it
    or within a stage, and each run apart. Spans may be added by any thread. ``most_spans``: of more only the sums are
    kept, so that a run of days takes no more memory than one of minutes.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, *, most_spans: int | None = None) -> None:
        self._clock = clock
        self.began_ns = time.time_ns()  # since 1970
        self._started = clock()
        self._seconds: dict[str, float] = {}
        self._sums: dict[str, StageSum] = {}
        self._spans: list[StageSpan] = []
        self._most_spans = most_spans
        self._lock = threading.Lock()

    @contextmanager
    def measure(self, stage: str) -> Iterator[Facts]:
        """What the block writes into the facts goes with the span."""
        started = self._clock()
        facts: Facts = {}
        try:
            yield facts
        finally:
            self.add(stage, started - self._started, self._clock() - self._started, facts)

    @contextmanager
    def measure_beside(self, stage: str) -> Iterator[Facts]:
        """A span that is no time of its own: another thread's, or a part of a stage."""
        started = self._clock()
        facts: Facts = {}
        try:
            yield facts
        finally:
            self.add_span(stage, started - self._started, self._clock() - self._started, facts)

    def add(self, stage: str, start_s: float, end_s: float, facts: Mapping[str, Fact] | None = None) -> None:
        """A stage that was from ``start_s`` to ``end_s``, as :meth:`elapsed` counts."""
        self._seconds[stage] = self._seconds.get(stage, 0.0) + end_s - start_s
        self.add_span(stage, start_s, end_s, facts)

    def add_span(self, stage: str, start_s: float, end_s: float, facts: Mapping[str, Fact] | None = None) -> None:
        """As :meth:`add`, but no time of its own."""
        seconds = end_s - start_s
        with self._lock:
            known = self._sums.get(stage, StageSum(0, 0.0))
            self._sums[stage] = StageSum(known.count + 1, known.seconds + seconds)
            if self._most_spans is None or len(self._spans) < self._most_spans:
                self._spans.append(StageSpan(stage, start_s, seconds, tuple(facts.items()) if facts else ()))

    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return self._clock() - self._started

    def times(self) -> tuple[StageTime, ...]:
        return tuple(StageTime(stage, seconds) for stage, seconds in self._seconds.items())

    def sums(self) -> Mapping[str, StageSum]:
        """By stage, of all runs, those without a span of their own included."""
        with self._lock:
            return dict(self._sums)

    def spans(self) -> tuple[StageSpan, ...]:
        """By their beginning; what holds others comes before them."""
        with self._lock:
            spans = list(self._spans)
        return tuple(sorted(spans, key=lambda span: (span.start_s, -span.seconds)))
