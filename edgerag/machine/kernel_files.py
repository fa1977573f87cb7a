"""The small text files under /sys and /proc, read without surprises.

Kernels, containers and sandboxes each show another part of them. A file that is missing, cannot be read or holds
something else than it should is a value that is not known (None), never an error: what follows from not
knowing is the caller's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# More than CONFIG_NR_CPUS allows on any architecture (8,192): a longer list is damage and must not fill the memory.
_MOST_CPUS = 65_536
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_CPU_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def read_text(file: Path) -> str | None:
    """The whole file without the white space around it; what is not ASCII is replaced."""
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except (OSError, ValueError):  # ValueError: a path with a zero byte, out of a damaged mount table
        return None


def read_number(file: Path) -> int | None:
    """The one whole number in a file."""
    return parse_number(read_text(file))


def read_cpus(file: Path) -> frozenset[int] | None:
    """The CPUs (or nodes) listed in a file; an empty file lists none."""
    return parse_cpus(read_text(file))


def parse_number(text: str | None) -> int | None:
    """The number that ``text`` is; None if it is none."""
    return int(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def parse_cpus(text: str | None) -> frozenset[int] | None:
    """``"0-3,8"`` as a set of numbers (the kernel's "list format"); None if it is no such list."""
    if text is None:
        return None
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = _CPU_RANGE.fullmatch(part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < _MOST_CPUS:
            return None
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def format_cpus(cpus: Iterable[int]) -> str:
    """The reverse of :func:`parse_cpus`; "none" for no CPU, since it is shown to people."""
    numbers = sorted(set(cpus))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs) or "none"


def name_cpus(cpus: Iterable[int]) -> str:
    """``"CPU 3"`` or ``"CPUs 0-3,8"``, for sentences."""
    numbers = frozenset(cpus)
    return f"CPU{'s' if len(numbers) != 1 else ''} {format_cpus(numbers)}"
