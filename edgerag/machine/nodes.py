"""The NUMA nodes: which CPUs and how much memory lie together.

Memory of another node is slower to read; on a machine with one node none of this matters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from edgerag.machine.kernel_files import parse_number, read_cpus, read_text

_NODES = Path("sys/devices/system/node")
_TOTAL = re.compile(r"MemTotal:\s+([0-9]{1,15}) kB")


@dataclass(frozen=True, slots=True)
class NumaNode:
    number: int
    cpus: frozenset[int]  # all of it, whether this process may use them or not; empty: memory alone
    memory_bytes: int  # 0 where it is not told
    distances: tuple[int, ...]  # to each node in the order of their numbers, 10 being itself; empty: not told


def read_nodes(system: Path = Path("/")) -> tuple[NumaNode, ...]:
    """The nodes that are online, by number; empty where the kernel does not tell (as good as one node)."""
    numbers = read_cpus(system / _NODES / "online")
    if numbers is None:
        found = (parse_number(folder.name.removeprefix("node")) for folder in (system / _NODES).glob("node[0-9]*"))
        numbers = frozenset(number for number in found if number is not None)
    return tuple(node for number in sorted(numbers) if (node := _read_node(system, number)) is not None)


def _read_node(system: Path, number: int) -> NumaNode | None:
    folder = system / _NODES / f"node{number}"
    cpus = read_cpus(folder / "cpulist")
    if cpus is None:
        return None
    memory = _TOTAL.search(read_text(folder / "meminfo") or "")
    distances = [parse_number(word) for word in (read_text(folder / "distance") or "").split()]
    return NumaNode(
        number=number,
        cpus=cpus,
        memory_bytes=int(memory[1]) * 1024 if memory else 0,
        distances=() if None in distances else tuple(distance for distance in distances if distance is not None),
    )
