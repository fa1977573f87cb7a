"""What a bench keeps of its measurements: every one of them, each beside a fixed piece of work done at that moment.

The fixed work, the yardstick, tells how busy the machine was. Two runs of a bench on different days can be compared
only as far as it took the same time in both.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Better = Literal["less", "more"]
FEWEST_ROUNDS = 6  # of five by turns the clearest difference comes about by chance in one case of sixteen
_YARDSTICK_ROWS = 160  # squared about a millisecond of arithmetic on one core


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of one way, in the order in which they were made. ``yardstick_s``: beside each, or empty."""

    name: str  # "pinning.pinned_decode": part and way
    unit: str  # "s", "tokens/s"
    better: Better
    runs: tuple[float, ...]
    yardstick_s: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> float:
        """Half of the distance between the quartiles, as a share of the median; 0 with fewer than four runs."""
        if len(self.runs) < 4 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.runs, n=4)
        return (high - low) / 2 / abs(self.median)


@dataclass(frozen=True, slots=True)
class Versus:
    """Two series whose runs were made by turns, so that the nth of one belongs to the nth of the other."""

    way: str  # the way that is looked at
    other: str
    series: str  # their names
    other_series: str


@dataclass(frozen=True, slots=True)
class PartResult:
    """The answer to one question of the field."""

    name: str
    question: str
    series: tuple[Series, ...] = ()
    versus: tuple[Versus, ...] = ()
    figures: Mapping[str, float | int | str | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was not measured and why, what a figure does not say


class Yardstick:
    """A fixed piece of arithmetic on one core."""

    def __init__(self) -> None:
        self._matrix = np.random.default_rng(1).standard_normal((_YARDSTICK_ROWS, _YARDSTICK_ROWS))

    def seconds(self) -> float:
        """The shorter of two, as the first may find cold caches."""
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            np.einsum("ij,jk->ik", self._matrix, self._matrix)  # one thread, whatever BLAS is installed
            taken.append(time.perf_counter() - began)
        return min(taken)


class Turns:
    """Measures ways by turns: once round is one run of each."""

    def __init__(self, *, most_s: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """``most_s``: when so much time is over, a round is the last, once there are enough to say anything."""
        self._yardstick = Yardstick()
        self._most_s = most_s
        self._clock = clock
        self._runs: dict[str, list[float]] = {}
        self._beside: dict[str, list[float]] = {}

    def go(self, ways: Mapping[str, Callable[[], float]], *, rounds: int, warm: int = 1) -> None:
        """``rounds`` runs of each way, after ``warm`` that only make ready. The order turns with each round, so that
        no way always comes after the same other."""
        names = list(ways)
        began = self._clock()
        for number in range(warm + rounds):
            if number - warm >= FEWEST_ROUNDS and self._clock() - began > self._most_s:
                break
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                beside = self._yardstick.seconds()
                value = ways[name]()
                if number >= warm:
                    self.add(name, value, beside)

    def once(self, name: str, way: Callable[[], float]) -> None:
        """One run of one way."""
        beside = self._yardstick.seconds()
        self.add(name, way(), beside)

    def add(self, name: str, value: float, beside: float) -> None:
        self._runs.setdefault(name, []).append(value)
        self._beside.setdefault(name, []).append(beside)

    def series(self, name: str, *, part: str, unit: str, better: Better) -> Series:
        return Series(f"{part}.{name}", unit, better, tuple(self._runs[name]), tuple(self._beside[name]))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def series_record(series: Series) -> dict[str, Any]:
    return {
        "unit": series.unit,
        "better": series.better,
        "median": round(series.median, 6),
        "spread": round(series.spread, 4),
        "runs": [round(value, 7) for value in series.runs],
        "yardstick_s": [round(value, 7) for value in series.yardstick_s],
    }


def read_series(name: str, record: Any) -> Series | None:
    """A series of a result file; None for what is none."""
    if not isinstance(record, Mapping):
        return None
    runs, beside = record.get("runs"), record.get("yardstick_s", [])
    if not (_are_numbers(runs) and runs and _are_numbers(beside) and record.get("better") in ("less", "more")):
        return None
    return Series(name, str(record.get("unit", "")), record["better"], tuple(runs), tuple(beside))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, Sequence) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf") for value in values
    )
