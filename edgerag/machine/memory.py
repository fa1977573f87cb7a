"""How much memory there is, and how much of it this process holds."""

from __future__ import annotations

from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def available_bytes(cgroup: Path = _CGROUP) -> int:
    """Memory that can be taken now without swapping: the system's, or the control group's if less."""
    free = int(psutil.virtual_memory().available)
    limit, used = _cgroup_memory(cgroup)
    return free if limit is None else max(0, min(free, limit - used))


def total_bytes(cgroup: Path = _CGROUP) -> int:
    total = int(psutil.virtual_memory().total)
    limit, _ = _cgroup_memory(cgroup)
    return total if limit is None else min(total, limit)


def resident_bytes() -> int:
    """Resident set size of this process."""
    return int(psutil.Process().memory_info().rss)


def _cgroup_memory(cgroup: Path) -> tuple[int | None, int]:
    """(limit, used without reclaimable page cache) of the control group that we are in, v2 then v1."""
    for limit_file, used_file in (
        (cgroup / "memory.max", cgroup / "memory.current"),
        (cgroup / "memory" / "memory.limit_in_bytes", cgroup / "memory" / "memory.usage_in_bytes"),
    ):
        limit, used = _number(limit_file), _number(used_file)
        if limit is not None and used is not None:
            return limit, max(0, used - _inactive_file(limit_file.parent / "memory.stat"))
    return None, 0


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None  # no such control group interface on this system
    return int(text) if text.isdigit() else None  # "max": no limit


def _inactive_file(stat: Path) -> int:
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0
