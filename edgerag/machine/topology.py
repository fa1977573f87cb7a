"""The processor cores that this process may use, and how many threads follow from them.

Read from the affinity mask, the kernel's topology files and the control group's CPU quota. Two
threads on one physical core slow llama.cpp down, so siblings count once.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Topology:
    logical_count: int  # logical processors in the affinity mask
    core_count: int  # physical cores among them
    quota_cores: float | None  # CPU quota of the control group, in cores; None is unlimited

    @property
    def thread_count(self) -> int:
        """Threads to compute with: one per physical core, no more than the quota, at least one."""
        quota = math.inf if self.quota_cores is None else max(1.0, self.quota_cores)
        return max(1, math.floor(min(self.core_count, quota)))


def read_topology(cpus: Path = _CPUS, cgroup: Path = _CGROUP, allowed: frozenset[int] | None = None) -> Topology:
    """The topology as the kernel tells it; without its files, what psutil knows."""
    if allowed is None:
        allowed = _allowed_cpus()
    cores = {_core_key(cpus, cpu) for cpu in allowed}
    core_count = len(cores)
    if None in cores:
        core_count = min(psutil.cpu_count(logical=False) or len(allowed), len(allowed))
    return Topology(logical_count=len(allowed), core_count=core_count, quota_cores=_quota(cgroup))


def _allowed_cpus() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(psutil.cpu_count() or 1))


def _core_key(cpus: Path, cpu: int) -> str | None:
    """A text that is the same for the siblings of one physical core."""
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return (cpus / f"cpu{cpu}" / "topology" / name).read_text(encoding="ascii").strip()
        except OSError:
            continue  # older kernels have only the second name; some containers neither
    return None


def _quota(cgroup: Path) -> float | None:
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        except OSError:
            return None
    if not quota.isdigit() or not int(quota):  # "max", or -1 in version 1
        return None
    return int(quota) / int(period)
