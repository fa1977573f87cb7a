"""`edgerag trace` writes what it was told to, replaces nothing, and one damaged trace spoils no other."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.ui.cli import main

EXPORTS = ("--perfetto", "--speedscope", "--html", "--otlp-json")


@pytest.fixture
def kept(home: Path) -> list[str]:
    """The ids of traces of answers, the last first."""
    golden.unpack_private(home, "traces", 1)
    made = golden.read("traces-v1.json")["traces"]
    return [trace["trace_id"] for trace in reversed(made) if trace["kind"] == "ask"]


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("option", [*EXPORTS, "--heatmap"])
def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    file, other = tmp_path / "mine.svg", tmp_path / "other.json"
    file.write_text("mine")
    assert main(["trace", "--otlp-json" if option == "--html" else "--html", str(other), option, str(file)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert not other.exists(), "it is said before anything is written"
    file.unlink()
    assert main(["trace", option, str(file)]) == 0
    assert file.stat().st_size


@pytest.mark.usefixtures("kept")
def test_two_exports_into_one_file_are_refused(tmp_path: Path) -> None:
    assert main(["trace", "--html", str(tmp_path / "x"), "--perfetto", str(tmp_path / "x")]) == 2


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("option", EXPORTS)
def test_without_room_there_is_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        assert main(["trace", option, str(tmp_path / "out")]) == 5
    assert "is full" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("option", [*EXPORTS, "--heatmap"])
def test_a_list_writes_no_file_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["trace", "--list", option, str(tmp_path / "x.svg")]) == 2
    assert option in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("how", ["otlp = x'00ff'", "duration_ns = 'long'"])
def test_one_damaged_trace_leaves_the_others(
    home: Path, kept: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    db = sqlite3.connect(home / "traces.sqlite")
    db.execute(f"UPDATE traces SET {how} WHERE trace_id = ?", (kept[0],))
    db.commit()
    db.close()
    assert main(["trace", "--heatmap", str(tmp_path / "map.svg")]) == 0
    assert (tmp_path / "map.svg").read_text(encoding="utf-8").startswith("<svg")
    assert main(["trace", kept[1]]) == 0
    assert main(["trace", kept[0]]) == 3
    assert "damaged" in capsys.readouterr().err
    assert main(["trace", "--list", "--json"]) == 0
    listed = capsys.readouterr()
    assert kept[1] in [trace["trace_id"] for trace in json.loads(listed.out)["traces"]]
    assert ("1 damaged trace is left out." in listed.err) == how.startswith("duration"), "one that the list cannot show"
    assert main(["trace", "--list", "--ingest"]) == 0
    assert "left out" not in capsys.readouterr().err, "it was an answer"
