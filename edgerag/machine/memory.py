"""How much memory there is, and how much of it this process holds."""

from __future__ import annotations

from pathlib import Path

import psutil

from edgerag.machine.cgroup import limited_groups, tightest_memory

_SYSTEM = Path("/")


def available_bytes(system: Path = _SYSTEM) -> int:
    """Memory that can be taken now without swapping: the system's, or the tightest control group's if less."""
    free = int(psutil.virtual_memory().available)
    group = tightest_memory(system)
    return free if group is None else min(free, group.room_bytes)


def total_bytes(system: Path = _SYSTEM) -> int:
    """All memory that this process could ever have."""
    total = int(psutil.virtual_memory().total)
    return min([total, *(group.limit_bytes for group in limited_groups(system))])


def resident_bytes() -> int:
    """Resident set size of this process."""
    return int(psutil.Process().memory_info().rss)
