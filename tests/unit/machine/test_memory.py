from __future__ import annotations

from pathlib import Path

from edgerag.machine.memory import available_bytes, resident_bytes, total_bytes


def test_the_control_group_limits_what_is_available(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("500000000\n")
    (tmp_path / "memory.current").write_text("400000000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 150000000\n")
    assert available_bytes(tmp_path) == 250_000_000
    assert total_bytes(tmp_path) == 500_000_000


def test_a_version_1_control_group_counts_too(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("300000000\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("300000001\n")
    assert available_bytes(tmp_path) == 0


def test_no_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("400000000\n")
    assert available_bytes(tmp_path) == available_bytes(tmp_path / "absent") or available_bytes(tmp_path) > 0
    assert total_bytes(tmp_path) == total_bytes(tmp_path / "absent")


def test_this_process_holds_something() -> None:
    assert 1_000_000 < resident_bytes() < total_bytes()
