"""How much of the processors other programs take: what is measured meanwhile says little about how many threads pay."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import psutil


class CpuLoad:
    """How busy each logical CPU is, whoever keeps it so. Counts from when it is made, or was asked last."""

    def __init__(self) -> None:
        self._last = self._read()

    def shares(self) -> dict[int, float]:
        """Logical CPU -> the share of the time since then in which it worked, 0 to 1; empty where the system does not
        tell."""
        before, self._last = self._last, self._read()
        found = {}
        for cpu, (busy_s, all_s) in self._last.items():
            passed = all_s - before.get(cpu, (0.0, 0.0))[1]
            worked = busy_s - before.get(cpu, (0.0, 0.0))[0]
            found[cpu] = min(1.0, max(0.0, worked / passed)) if passed > 0 else 0.0
        return found

    def _read(self) -> dict[int, tuple[float, float]]:
        try:
            every = psutil.cpu_times(percpu=True)
        except (OSError, psutil.Error):  # a sandbox that hides /proc/stat
            return {}
        found = {}
        for cpu, times in enumerate(every):
            # Guests' time is part of the user's.
            all_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
            found[cpu] = (all_s - times.idle - getattr(times, "iowait", 0.0), all_s)
        return found


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
