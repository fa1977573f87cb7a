"""The control groups this process is in, and what they allow of memory. (Of CPU time: quota.py.)

Version 1 (one hierarchy per resource) and version 2 (one for all), nested groups included: a limit anywhere
above binds too, so the tightest counts. A container may show only part of the tree; what is shown is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edgerag.machine.kernel_files import parse_number

# Version 1 writes "no limit" as the largest page-rounded 63-bit number.
_UNLIMITED_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Memory of one control group."""

    folder: Path
    limit_bytes: int
    used_bytes: int  # page cache included
    reclaimable_bytes: int  # of it: page cache that nobody has mapped, which the kernel takes back at once

    @property
    def room_bytes(self) -> int:
        """What can still be taken before something in use must go."""
        return max(0, self.limit_bytes - self.used_bytes + self.reclaimable_bytes)


def memory_folders(system: Path = Path("/")) -> list[Path]:
    """Folders of the process's own memory group and of all groups above it, the own one first.

    Those of version 2 before those of version 1; empty where there are none.
    """
    return group_folders("memory", system)


def group_folders(resource: str, system: Path = Path("/")) -> list[Path]:
    """As :func:`memory_folders`, of the groups that limit ``resource``: "memory", "cpu" or "cpuset"."""
    membership = parse_membership(_text(system / "proc/self/cgroup"))
    mounts = parse_mounts(_text(system / "proc/self/mountinfo"))
    folders = []
    for controller in ("", resource):  # version 2 has one tree for all
        if controller in membership and controller in mounts:
            root, mount_point = mounts[controller]
            folders += list(_upwards(system / mount_point.lstrip("/"), membership[controller], root))
    return folders


def limited_groups(system: Path = Path("/")) -> list[GroupMemory]:
    """Those of the own group and the groups above it that have a limit; all of them bind."""
    return [group for folder in memory_folders(system) if (group := read_memory(folder)) is not None]


def tightest_memory(system: Path = Path("/")) -> GroupMemory | None:
    """The limited group with the least room; None: there is no limit."""
    return min(limited_groups(system), key=lambda group: group.room_bytes, default=None)


def read_memory(folder: Path) -> GroupMemory | None:
    """None if this group has no limit of its own or does not count memory."""
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, used = parse_bytes(_text(folder / limit_name)), parse_bytes(_text(folder / used_name))
        if limit is not None and used is not None:
            return GroupMemory(folder, limit, used, min(used, reclaimable_bytes(_text(folder / "memory.stat"))))
    return None


def parse_bytes(text: str) -> int | None:
    """The number in a limit or usage file; None: unlimited, or no such file."""
    number = parse_number(text)  # "max" is none
    return number if number is not None and 0 <= number < _UNLIMITED_BYTES else None


def parse_membership(text: str) -> dict[str, str]:
    """Controller -> path of the process's group, from /proc/self/cgroup. Version 2's controller is ""."""
    paths = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def parse_mounts(text: str) -> dict[str, tuple[str, str]]:
    """Controller -> (path of the group that is mounted, where), from /proc/self/mountinfo."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        fields, kinds = front.split(), back.split()
        if len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2":
            mounts.setdefault("", (fields[3], fields[4]))
        elif kinds[0] == "cgroup":
            for controller in kinds[2].split(","):
                mounts.setdefault(controller, (fields[3], fields[4]))
    return mounts


def reclaimable_bytes(stat: str) -> int:
    """Page cache that nobody has mapped, from memory.stat; 0 where it is not told."""
    values: dict[str, int] = {}
    for line in stat.splitlines():
        name, _, value = line.partition(" ")
        number = parse_number(value)
        if number is not None and number >= 0:
            values[name] = number

    def value_of(*names: str) -> int:
        return next((values[name] for name in names if name in values), 0)

    # Version 1 counts the groups below only under "total_"; version 2 counts them always.
    inactive = value_of("total_inactive_file", "inactive_file")
    active = value_of("total_active_file", "active_file")
    mapped = value_of("total_mapped_file", "file_mapped")
    return max(inactive, inactive + active - mapped)


def _upwards(mount_point: Path, path: str, root: str) -> Iterator[Path]:
    """Folders from the group at ``path`` up to the mounted one, which is ``root`` in the whole tree."""
    whole, shown = PurePosixPath(path), PurePosixPath(root)
    below = whole.relative_to(shown) if whole.is_relative_to(shown) else PurePosixPath()
    folder = mount_point / below
    if not folder.is_dir():  # a container that mounts its group under another name than /proc tells
        folder = mount_point
    yield folder
    while folder != mount_point:
        folder = folder.parent
        yield folder


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # ValueError: a path with a zero byte, out of a damaged mount table
        return ""  # no such interface on this system
