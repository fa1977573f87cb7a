"""The caches of the CPUs that this process may use: what a block of work should fit into."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.machine.kernel_files import name_cpus, read_cpus, read_number, read_text

_CPUS = Path("sys/devices/system/cpu")
_SIZE = re.compile(r"([0-9]{1,9})([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_KINDS: dict[str, Literal["data", "unified"]] = {"Data": "data", "Unified": "unified"}


@dataclass(frozen=True, slots=True)
class Cache:
    level: int
    kind: Literal["data", "unified"]  # those of instructions alone are left out
    size_bytes: int
    cpus: frozenset[int]  # which share it, whether this process may use them or not


def read_caches(cpus: Iterable[int], system: Path = Path("/")) -> tuple[Cache, ...]:
    """Each cache once, by level and first CPU; empty where the kernel does not tell (many virtual machines)."""
    caches: list[Cache] = []
    seen: set[tuple[str, int]] = set()  # (name of the folder, CPU): a shared one is read once
    for cpu in sorted(cpus):
        for folder in sorted((system / _CPUS / f"cpu{cpu}" / "cache").glob("index[0-9]*")):
            if (folder.name, cpu) in seen:
                continue
            cache = _read_cache(folder, cpu)
            if cache is not None:
                caches.append(cache)
                seen.update((folder.name, sharer) for sharer in cache.cpus)
    return tuple(sorted(caches, key=lambda cache: (cache.level, min(cache.cpus))))


def last_level_bytes(caches: Iterable[Cache]) -> int:
    """All caches of the last level together; 0 where none is known."""
    caches = list(caches)
    level = max((cache.level for cache in caches), default=0)
    return sum(cache.size_bytes for cache in caches if cache.level == level)


def describe_caches(caches: Iterable[Cache]) -> str:
    """One line for people: ``"L1d 2 x 48 KiB, L2 2 x 1 MiB, L3 32 MiB (CPUs 0-1)"``."""
    groups: dict[tuple[int, str, int], list[Cache]] = {}
    for cache in caches:
        groups.setdefault((cache.level, cache.kind, cache.size_bytes), []).append(cache)
    parts = []
    for (level, kind, size), members in groups.items():
        name = f"L{level}{'d' if kind == 'data' else ''}"
        count = f"{len(members)} x " if len(members) > 1 else ""
        shared = members[0].cpus
        sharers = f" ({name_cpus(shared)})" if len(members) == 1 and len(shared) > 1 else ""
        parts.append(f"{name} {count}{_shown(size)}{sharers}")
    return ", ".join(parts)


def _read_cache(folder: Path, cpu: int) -> Cache | None:
    level, kind = read_number(folder / "level"), _KINDS.get(read_text(folder / "type") or "")
    size = _SIZE.fullmatch(read_text(folder / "size") or "")
    if level is None or not 1 <= level <= 9 or kind is None or size is None:
        return None
    size_bytes = int(size[1]) * _UNITS[size[2]]
    shared = read_cpus(folder / "shared_cpu_list") or frozenset()
    return Cache(level, kind, size_bytes, shared | {cpu}) if size_bytes else None


def _shown(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:g} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:g} KiB"
