"""How much processor time the control groups of this process allow, and on which CPUs.

A quota anywhere above binds too, so the tightest of the own group and every group above it counts. Versions 1 and 2.
"""

from __future__ import annotations

from pathlib import Path

from edgerag.machine.cgroup import group_folders
from edgerag.machine.kernel_files import parse_number, read_cpus, read_number, read_text


def read_quota(system: Path = Path("/")) -> float | None:
    """The CPU quota in cores (1.5: a core and a half's worth of time, on any core); None: there is none."""
    quotas = (_quota_of(folder) for folder in group_folders("cpu", system))
    return min((quota for quota in quotas if quota is not None), default=None)


def read_cpuset(system: Path = Path("/")) -> frozenset[int] | None:
    """The CPUs that the process's control group may use; None where no group tells.

    The nearest group that tells is right: the kernel keeps a group's effective set within that of the group above.
    """
    for folder in group_folders("cpuset", system):
        # In force, by version 2, by version 1, and by old kernels of version 1.
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            cpus = read_cpus(folder / name)
            if cpus:
                return cpus
    return None


def _quota_of(folder: Path) -> float | None:
    fields = (read_text(folder / "cpu.max") or "").split()
    if len(fields) == 2:
        quota, period = parse_number(fields[0]), parse_number(fields[1])  # "max" is no number
    else:
        quota, period = read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us")
    if quota is None or period is None or quota <= 0 or period <= 0:  # version 1 writes "no quota" as -1
        return None
    return quota / period
