"""How hard an ingest works: between two batches it may wait, so that the machine stays somebody's.

``ingest.max_cpu`` holds the average of the processor time of this process and its parser under a share of all
cores. With ``ingest.polite`` it also waits while others keep more than half of the cores busy, or while the battery
is low. It never waits for ever: after some minutes it goes on for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from edgerag.config import IngestSettings
from edgerag.machine.affinity import process_cpus
from edgerag.machine.courtesy import Demand, OwnTime
from edgerag.types import CancelCheck

BUSY = "waiting: the machine is busy"
LOW_BATTERY = "waiting: the battery is low"
RESTING = "resting (ingest.max_cpu)"
# Of the cores, kept busy by others.
_BUSY_SHARE = 0.5
_LOOK_EVERY_S = 1.0
_LONGEST_WAIT_S = 300.0
# Work that is done at least between two such waits.
_WORK_S = 60.0
# Beyond, an hour of waiting for a full disk would be paid back by working at full speed.
_LONGEST_CREDIT_S = 2.0
_SLICE_S = 0.2  # how soon a cancelled wait ends


class Need(Protocol):
    """What others need; see machine/courtesy.py."""

    def busy_share(self) -> float: ...

    def battery_is_low(self) -> bool: ...


class Pace:
    """Asked before each batch. ``clock`` and ``spent`` give seconds: those of the wall, and of the processor."""

    def __init__(
        self,
        settings: IngestSettings,
        *,
        cancelled: CancelCheck,
        need: Need | None = None,
        cpu_count: int = 0,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        cpus = process_cpus()
        self._cancelled = cancelled
        self._clock = clock
        self._sleep = sleep
        self._need = (need or Demand(cpus)) if settings.polite else None
        self._limit = (cpu_count or len(cpus) or 1) * settings.max_cpu / 100  # cores that may be busy on average
        self._spent = (spent or OwnTime().seconds) if settings.max_cpu < 100 else None
        self._counted = (clock(), self._spent() if self._spent else 0.0)
        self._looked_at = clock()
        self._works_until = clock()

    def wait(self) -> Iterator[str]:
        """Waits as long as there is reason to; yields the reason, again and again, so that it can be shown."""
        yield from self._rest()
        yield from self._make_way()

    def _rest(self) -> Iterator[str]:
        if self._spent is None:
            return
        started, spent = self._counted
        due = started + (self._spent() - spent) / self._limit
        while not self._cancelled() and (left := due - self._clock()) > 0:
            yield RESTING
            self._sleep(min(left, _SLICE_S))
        now = self._clock()
        if now - due > _LONGEST_CREDIT_S:
            self._counted = (now - _LONGEST_CREDIT_S, self._spent())

    def _make_way(self) -> Iterator[str]:
        if self._need is None or self._clock() < max(self._works_until, self._looked_at + _LOOK_EVERY_S):
            return
        began = self._clock()
        while not self._cancelled() and (reason := self._reason()):
            if self._clock() - began >= _LONGEST_WAIT_S:
                self._works_until = self._clock() + _WORK_S
                break
            until = self._clock() + _LOOK_EVERY_S
            while self._clock() < until and not self._cancelled():
                yield reason
                self._sleep(_SLICE_S)
        self._looked_at = self._clock()

    def _reason(self) -> str:
        assert self._need is not None
        if self._need.busy_share() > _BUSY_SHARE:
            return BUSY
        return LOW_BATTERY if self._need.battery_is_low() else ""
