"""Whether memory is short now, and how badly: what a cache should do about it follows from the level.

Two signs are read. *Stalls* (PSI, Linux 4.20): the share of the last ten seconds in which tasks waited for
memory, of the process's own control group and of the system. *Room*: what could still be taken, of the system
and of the tightest control group. Either may be missing; a kernel without PSI is judged by room alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from edgerag.machine.cgroup import memory_folders, tightest_memory


class Level(IntEnum):
    """How short memory is."""

    CALM = 0
    SOFT = 1  # give back what is not in use
    HARD = 2  # give back what can be read again, page cache included


# Shares of ten seconds, in percent. A tenth of a second lost per second is felt in an answer; when all tasks
# stand still that long, the machine thrashes. (systemd-oomd ends processes at 60.)
_SOME_SOFT, _FULL_HARD = 10.0, 10.0
# Room as a share of all memory, or of the group's limit; on large machines this much is enough in any case.
_ROOM_SOFT, _ROOM_HARD = 1 / 10, 1 / 25
_ROOM_SOFT_BYTES, _ROOM_HARD_BYTES = 2**30, 2**28
# The system's stalls count only below this share of room: above it they belong to tasks that thrash inside a
# control group's limit, which nothing given back here would help.
_ROOM_AMPLE = 1 / 4


@dataclass(frozen=True, slots=True)
class Stall:
    """Percent of the last ten seconds in which some, or all, tasks waited for memory."""

    some: float
    full: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """What was read, and what follows."""

    level: Level
    reason: str  # for people; empty when calm
    room_bytes: int | None  # what can still be taken; None: this system does not tell


def read_pressure(system: Path = Path("/")) -> Pressure:
    """Reads the kernel's files under ``system``; never raises, and takes less than a millisecond."""
    total_bytes, available_bytes = parse_meminfo(_text(system / "proc/meminfo"))
    group = tightest_memory(system)
    stalls = {
        "the control group": next(
            (stall for folder in memory_folders(system) if (stall := parse_stall(_text(folder / "memory.pressure")))),
            None,
        ),
    }
    if total_bytes is None or available_bytes is None or available_bytes < total_bytes * _ROOM_AMPLE:
        stalls["the system"] = parse_stall(_text(system / "proc/pressure/memory"))
    rooms = [(available_bytes, total_bytes, "the system")] if total_bytes and available_bytes is not None else []
    if group:
        rooms.append((group.room_bytes, group.limit_bytes, "the control group"))
    found = [_judge_room(*room) for room in rooms]
    found += [_judge_stall(stall, whose) for whose, stall in stalls.items() if stall]
    level, reason = max(found, default=(Level.CALM, ""))
    return Pressure(level, reason, min((room[0] for room in rooms), default=None))


def parse_stall(text: str) -> Stall | None:
    """A pressure file (Documentation/accounting/psi.rst); None if it is empty, absent or switched off."""
    shares: dict[str, float] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        for field in rest.split():
            name, _, value = field.partition("=")
            if name == "avg10":
                shares[kind] = float(value)
    return Stall(shares["some"], shares.get("full", 0.0)) if "some" in shares else None


def parse_meminfo(text: str) -> tuple[int | None, int | None]:
    """(total, available) bytes from /proc/meminfo; None for what it does not tell."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        fields = rest.split()
        if name in ("MemTotal", "MemAvailable") and fields:
            found[name] = int(fields[0]) * 1024
    return found.get("MemTotal"), found.get("MemAvailable")


def _judge_room(room_bytes: int, of_bytes: int, whose: str) -> tuple[Level, str]:
    level = Level.CALM
    if room_bytes < min(of_bytes * _ROOM_HARD, _ROOM_HARD_BYTES):
        level = Level.HARD
    elif room_bytes < min(of_bytes * _ROOM_SOFT, _ROOM_SOFT_BYTES):
        level = Level.SOFT
    return level, f"{whose} has {room_bytes / 1e6:.0f} MB of {of_bytes / 1e6:.0f} MB left" if level else ""


def _judge_stall(stall: Stall, whose: str) -> tuple[Level, str]:
    level = Level.HARD if stall.full >= _FULL_HARD else Level.SOFT if stall.some >= _SOME_SOFT else Level.CALM
    return level, f"tasks of {whose} wait for memory {stall.some:.0f} % of the time" if level else ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""  # no such interface, or PSI compiled in and switched off (reading it fails)
