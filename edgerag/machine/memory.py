"""How much memory there is, and how much of it this process holds."""

from __future__ import annotations

import mmap
import os
import resource
from pathlib import Path

import psutil

from edgerag.machine.cgroup import limited_groups, tightest_memory

_SYSTEM = Path("/")


def available_bytes(system: Path = _SYSTEM) -> int:
    """Memory that can be taken now without swapping: the system's, or the tightest control group's if less."""
    free = _system_bytes("available", "SC_AVPHYS_PAGES")
    group = tightest_memory(system)
    return free if group is None else min(free, group.room_bytes)


def total_bytes(system: Path = _SYSTEM) -> int:
    """All memory that this process could ever have."""
    total = _system_bytes("total", "SC_PHYS_PAGES")
    return min([total, *(group.limit_bytes for group in limited_groups(system))])


def resident_bytes() -> int:
    """Resident set size of this process."""
    try:
        return int(psutil.Process().memory_info().rss)
    except (psutil.Error, OSError):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the most that it held


def _system_bytes(name: str, pages: str) -> int:
    """What /proc/meminfo says; where a sandbox hides it (systemd's ProcSubset=pid), what a system call does, which
    counts the page cache as taken."""
    try:
        return int(getattr(psutil.virtual_memory(), name))
    except OSError:
        return os.sysconf(pages) * mmap.PAGESIZE
