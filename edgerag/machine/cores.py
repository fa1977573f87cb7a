"""The physical cores: which logical CPUs are one core, and which cores are the fast ones.

Two threads on one physical core share its arithmetic, and a slow core holds up all the others at every
barrier of a matrix product; so a plan must know both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.machine.kernel_files import read_cpus, read_number

_CPUS = Path("sys/devices/system/cpu")
# Cores below this share of the largest capacity (or frequency) count as efficiency cores. Between the cores of one
# kind, favoured ones reach some 10 % more; between kinds, the slower reach 72 % or less (Intel E cores by
# frequency, AMD's compact cores) and 20 to 50 % by capacity (Cortex-A55 beside A76).
_EFFICIENCY_SHARE = 0.75

CoreKind = Literal["performance", "efficiency"]


@dataclass(frozen=True, slots=True)
class Core:
    """One physical core."""

    cpus: tuple[int, ...]  # its logical CPUs that this process may use, ascending; at least one
    kind: CoreKind  # where all cores are alike: performance
    node: int  # its NUMA node; 0 where that is not told


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which CPUs belong to efficiency cores."""

    efficiency: frozenset[int]
    source: str  # which of the kernel's files told them apart; empty: the cores are alike, or nothing tells


def read_siblings(cpus: Iterable[int], system: Path = Path("/")) -> tuple[tuple[int, ...], ...] | None:
    """The physical cores as tuples of those of ``cpus`` that are on one, ascending; None where that is not told."""
    cpus = frozenset(cpus)
    cores: list[tuple[int, ...]] = []
    placed: set[int] = set()
    for cpu in sorted(cpus):
        if cpu in placed:
            continue
        siblings = _siblings_of(system / _CPUS / f"cpu{cpu}" / "topology", cpu)
        if siblings is None:
            return None
        core = tuple(sorted(siblings & cpus - placed))
        cores.append(core)
        placed.update(core)
    return tuple(cores)


def read_kinds(cpus: Iterable[int], system: Path = Path("/")) -> Kinds:
    """Performance and efficiency cores, from the first of the kernel's accounts that tells them apart."""
    cpus = frozenset(cpus)
    fast = read_cpus(system / "sys/devices/cpu_core/cpus")  # the performance counters of Intel's hybrids
    slow = read_cpus(system / "sys/devices/cpu_atom/cpus")
    if fast and slow:
        # What is in neither list are low-power cores, which have counters of their own.
        return Kinds(cpus - fast, "cpu_core and cpu_atom" if cpus - fast else "")
    for name, file in (("cpu_capacity", "cpu_capacity"), ("maximum frequency", "cpufreq/cpuinfo_max_freq")):
        slow = _slow({cpu: read_number(system / _CPUS / f"cpu{cpu}" / file) for cpu in cpus})
        if slow:
            return Kinds(slow, name)
    return Kinds(frozenset(), "")


def _siblings_of(topology: Path, cpu: int) -> frozenset[int] | None:
    for name in ("core_cpus_list", "thread_siblings_list"):  # older kernels have only the second name
        siblings = read_cpus(topology / name)
        if siblings is not None and cpu in siblings:
            return siblings
    return None


def _slow(values: dict[int, int | None]) -> frozenset[int]:
    """Those clearly below the best; empty if one of them is not known, since then nothing can be compared."""
    known = {cpu: value for cpu, value in values.items() if value is not None and value > 0}
    if len(known) < len(values):
        return frozenset()
    best = max(known.values(), default=0)
    return frozenset(cpu for cpu, value in known.items() if value < _EFFICIENCY_SHARE * best)
