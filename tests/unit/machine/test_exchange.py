"""Two folders change places in one step; and a process that holds keys writes no core dump."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgerag.machine.disk import exchange


def test_two_folders_change_places(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text(name)
    exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "content").read_text() == "b"
    assert (tmp_path / "b" / "content").read_text() == "a"


def test_where_one_is_missing_nothing_moves(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_no_core_dump_is_written_any_more() -> None:
    code = (
        "import resource; from edgerag.machine.core_dumps import forbid_core_dumps; forbid_core_dumps();"
        " print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
