"""What is made of the kernel's files about memory pressure."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.machine.pressure import Level, Stall, parse_meminfo, parse_stall, read_pressure

GB, MB = 10**9, 10**6
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def meminfo(total: int, available: int | None) -> str:
    text = f"MemTotal:       {total // 1024} kB\nMemFree:          {100} kB\n"
    return text + (f"MemAvailable:   {available // 1024} kB\n" if available is not None else "")


def stall(some: float, full: float) -> str:
    return (
        f"some avg10={some:.2f} avg60=0.00 avg300=0.00 total=17\nfull avg10={full:.2f} avg60=0.00 avg300=0.00 total=9\n"
    )


def system_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def group_of(limit: str, used: str, pressure: str = "") -> dict[str, str]:
    folder = "sys/fs/cgroup/app"
    files = {"proc/self/cgroup": "0::/app\n", "proc/self/mountinfo": V2_MOUNT, f"{folder}/memory.max": limit}
    return files | {f"{folder}/memory.current": used, f"{folder}/memory.pressure": pressure}


def test_the_files_are_parsed() -> None:
    assert parse_stall(stall(1.5, 0.25)) == Stall(some=1.5, full=0.25)
    assert parse_stall("some avg10=2.00 avg60=0.00 avg300=0.00 total=0\n") == Stall(some=2.0, full=0.0)
    assert parse_stall("") is None, "a kernel without PSI"
    assert parse_meminfo(meminfo(8 * 1024 * 1024, 2 * 1024 * 1024)) == (8 * 1024 * 1024, 2 * 1024 * 1024)
    assert parse_meminfo(meminfo(1024, None)) == (1024, None), "before Linux 3.14"
    assert parse_meminfo("") == (None, None)


@pytest.mark.parametrize(
    ("files", "level", "reason"),
    [
        ({}, Level.CALM, ""),
        ({"proc/meminfo": meminfo(8 * GB, 4 * GB)}, Level.CALM, ""),
        ({"proc/meminfo": meminfo(8 * GB, 500 * MB)}, Level.SOFT, "the system has 500 MB of 8000 MB left"),
        ({"proc/meminfo": meminfo(8 * GB, 100 * MB)}, Level.HARD, "the system has 100 MB"),
        ({"proc/meminfo": meminfo(256 * GB, 2 * GB)}, Level.CALM, ""),
        ({"proc/meminfo": meminfo(8 * GB, 1 * GB), "proc/pressure/memory": stall(12, 3)}, Level.SOFT, "wait"),
        ({"proc/meminfo": meminfo(8 * GB, 1 * GB), "proc/pressure/memory": stall(40, 20)}, Level.HARD, "wait"),
        # Tasks in some other group thrash inside its limit: nothing that is given back here helps them.
        ({"proc/meminfo": meminfo(8 * GB, 4 * GB), "proc/pressure/memory": stall(40, 20)}, Level.CALM, ""),
        (group_of("400000000", "200000000"), Level.CALM, ""),
        (group_of("400000000", "370000000"), Level.SOFT, "the control group has 30 MB of 400 MB left"),
        (group_of("400000000", "399000000"), Level.HARD, "the control group has 1 MB"),
        (group_of("max", "399000000", stall(15, 2)), Level.SOFT, "tasks of the control group wait"),
        (group_of("max", "399000000", stall(15, 11)), Level.HARD, "tasks of the control group wait"),
    ],
)
def test_the_level_and_its_reason(tmp_path: Path, files: dict[str, str], level: Level, reason: str) -> None:
    pressure = read_pressure(system_of(tmp_path, files))
    assert pressure.level is level
    assert reason in pressure.reason
    assert bool(pressure.reason) == (level is not Level.CALM)


def test_the_least_room_counts(tmp_path: Path) -> None:
    files = group_of("400000000", "100000000") | {"proc/meminfo": meminfo(8 * GB, 4 * GB)}
    assert read_pressure(system_of(tmp_path, files)).room_bytes == 300_000_000
    assert read_pressure(tmp_path / "absent").room_bytes is None


def test_this_machine_can_be_read() -> None:
    pressure = read_pressure()
    assert pressure.room_bytes is None or pressure.room_bytes > 0
