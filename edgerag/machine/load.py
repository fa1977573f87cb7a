"""How much of the processors other programs take: what is measured meanwhile says little about how many threads pay."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import psutil


class OthersLoad:
    """Counts from when it is made, or was asked last."""

    def __init__(self, cpus: Collection[int]) -> None:
        """``cpus``: the logical CPUs that count."""
        self._cpus = frozenset(cpus)
        self._last = self._read()

    def cores(self) -> float:
        """How many of those CPUs other processes than this one kept busy meanwhile, on average. 0.0 where the system
        does not tell, or when no time has passed."""
        before, self._last = self._last, self._read()
        seconds = self._last[0] - before[0]
        if seconds <= 0:
            return 0.0
        return max(0.0, (self._last[1] - before[1]) / seconds)

    def _read(self) -> tuple[float, float]:
        """The time, and the seconds that others were busy until now."""
        own = os.times()
        mine = own.user + own.system + own.children_user + own.children_system
        try:
            every = psutil.cpu_times(percpu=True)
        except (OSError, psutil.Error):  # a sandbox that hides /proc/stat
            return time.monotonic(), 0.0
        busy = 0.0
        for cpu, times in enumerate(every):
            if cpu in self._cpus:
                idle = times.idle + getattr(times, "iowait", 0.0)
                busy += sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return time.monotonic(), busy - mine
