"""The processor as this process may use it: cores, nodes, and the processor time that it is allowed.

What counts are the logical CPUs that are online, in the affinity mask *and* in the control group's cpuset.
Everything is read from files under a root folder; where they are missing or damaged a stated default takes their
place, and :attr:`Topology.notes` says which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import psutil

from edgerag.machine.affinity import CAN_PIN, process_cpus
from edgerag.machine.cores import Core, read_kinds, read_siblings
from edgerag.machine.kernel_files import read_cpus
from edgerag.machine.nodes import NumaNode, read_nodes
from edgerag.machine.quota import read_cpuset, read_quota

_SYSTEM = Path("/")


@dataclass(frozen=True, slots=True)
class Topology:
    cores: tuple[Core, ...]  # that this process may use, by their first CPU; at least one
    nodes: tuple[NumaNode, ...]  # of the whole machine; empty is as good as one
    quota_cores: float | None  # tightest CPU quota of the control groups, in cores; None is unlimited
    has_cpuset: bool  # whether the control group leaves the process only some of the machine's CPUs
    can_pin: bool  # whether threads can be told where to run
    kinds_source: str = ""  # what told performance from efficiency cores; empty where they are alike
    notes: tuple[str, ...] = ()  # what was assumed because it could not be read, in sentences

    @property
    def cpus(self) -> frozenset[int]:
        """The logical CPUs that this process may use."""
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def logical_count(self) -> int:
        return len(self.cpus)

    @property
    def core_count(self) -> int:
        """Physical cores."""
        return len(self.cores)

    @property
    def fast_cores(self) -> tuple[Core, ...]:
        """The performance cores; all of them where there is no other kind."""
        return tuple(core for core in self.cores if core.kind == "performance") or self.cores

    @property
    def slow_cores(self) -> tuple[Core, ...]:
        """The efficiency cores, where there are performance cores too."""
        fast = self.fast_cores
        return tuple(core for core in self.cores if core not in fast)

    @property
    def quota_threads(self) -> int | None:
        """The most threads that the quota keeps busy, at least one; None: no limit."""
        return None if self.quota_cores is None else max(1, math.floor(self.quota_cores))

    @property
    def thread_count(self) -> int:
        """Threads to compute with: one per fast core, no more than the quota, at least one."""
        return min(len(self.fast_cores), self.quota_threads or len(self.fast_cores))


def read_topology(system: Path = _SYSTEM, *, allowed: frozenset[int] | None = None) -> Topology:
    """What the kernel tells under ``system``; ``allowed`` stands in for the affinity mask.

    To be asked before the main thread is pinned: its mask is taken for the process's.
    """
    online = read_cpus(system / "sys/devices/system/cpu/online")
    cpuset = read_cpuset(system)
    cpus = process_cpus(system) if allowed is None else allowed
    for narrower in (online, cpuset):
        # A list that leaves nothing at all contradicts that this process runs: it is damaged, or another machine's.
        if narrower and narrower & cpus:
            cpus &= narrower
    notes = []
    siblings = read_siblings(cpus, system)
    if siblings is None:
        siblings = _assumed_siblings(cpus, system)
        notes.append(
            "Which CPUs share a core is not told here: each counts as a core."
            if len(siblings) == len(cpus)
            else "Which CPUs share a core is not told here: neighbours are assumed to."
        )
    kinds = read_kinds(cpus, system)
    nodes = read_nodes(system)
    node_of = {cpu: node.number for node in nodes for cpu in node.cpus}
    return Topology(
        cores=tuple(
            Core(core, "efficiency" if kinds.efficiency.intersection(core) else "performance", node_of.get(core[0], 0))
            for core in siblings
        ),
        nodes=nodes,
        quota_cores=read_quota(system),
        has_cpuset=bool(cpuset and online and cpuset < online),
        can_pin=CAN_PIN,
        kinds_source=kinds.source,
        notes=tuple(notes),
    )


def _assumed_siblings(cpus: frozenset[int], system: Path) -> tuple[tuple[int, ...], ...]:
    """Cores by the counts that psutil knows (of this machine, not of another root); else each CPU is one."""
    ordered, size = sorted(cpus), 1
    if system == _SYSTEM:
        logical, physical = psutil.cpu_count() or 0, psutil.cpu_count(logical=False) or 0
        if physical and logical % physical == 0:
            size = max(1, logical // physical)
    return tuple(tuple(ordered[start : start + size]) for start in range(0, len(ordered), size))
