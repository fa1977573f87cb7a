from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from edgerag.machine.memory import available_bytes, resident_bytes, total_bytes

MOUNT = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def limited(system: Path, limit: str, used: str) -> Path:
    for name, text in {
        "proc/self/cgroup": "0::/app\n",
        "proc/self/mountinfo": MOUNT,
        "sys/fs/cgroup/app/memory.max": limit,
        "sys/fs/cgroup/app/memory.current": used,
        "sys/fs/cgroup/app/memory.stat": "anon 1\ninactive_file 15000000\n",
    }.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text)
    return system


def test_the_own_control_group_limits_what_is_available(tmp_path: Path) -> None:
    system = limited(tmp_path, "50000000\n", "40000000\n")
    assert available_bytes(system) == 25_000_000
    assert total_bytes(system) == 50_000_000


def test_a_group_above_its_limit_has_nothing_left(tmp_path: Path) -> None:
    assert available_bytes(limited(tmp_path, "30000000\n", "50000000\n")) == 0


def test_no_limit(tmp_path: Path) -> None:
    unlimited = limited(tmp_path, "max\n", "40000000\n")
    assert total_bytes(unlimited) == total_bytes(tmp_path / "absent")
    assert 0 < available_bytes(unlimited) < total_bytes(unlimited)


def test_this_process_holds_something() -> None:
    assert 1_000_000 < resident_bytes() < total_bytes()


def test_a_sandbox_without_proc_has_memory_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "absent"))
    assert 0 < available_bytes(tmp_path) <= total_bytes(tmp_path)
    assert 1_000_000 < resident_bytes() < total_bytes(tmp_path)
