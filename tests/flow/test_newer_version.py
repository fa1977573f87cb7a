"""A library, conversations or traces of a newer version: every command says so in a sentence, and touches nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.index import at_rest
from edgerag.ui.cli import main

NEWER = 99
COMMANDS = (
    "ask Which",
    "ask --no-llm Which",
    "ask --json Which",
    "search Which",
    "search --json Which",
    "ingest {docs}",
    "status",
    "status --files",
    "status --json",
    "status --verify",
    "remove {docs}",
    "tag --add x {docs}",
    "library verify",
    "library verify --json",
    "library repair",
    "library compact",
    "library reembed",
    "library export default {out}",
    "library backup {out}",
    "doctor",
)


def make_newer(path: Path) -> bytes:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {NEWER}")
    db.close()
    return path.read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_newer_library(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    folder = golden.unpack(home, golden.VERSIONS[-1])
    before = make_newer(folder / "library.sqlite")
    at_rest.write_sums(folder, folder / "library.sqlite")
    words = command.format(docs=golden.FOLDER, out=tmp_path / "out.edgerag").split()
    code = main(words)
    said = capsys.readouterr()
    assert code == (1 if command == "doctor" else 3), said
    told = said.out + said.err
    assert f"version {NEWER}" in told and "newer edgerag" in told
    assert "Traceback" not in told
    assert (folder / "library.sqlite").read_bytes() == before
    assert (folder / "library.sums").exists(), "nothing began to write"
    assert not (tmp_path / "out.edgerag").exists()


@pytest.mark.parametrize("kind", ["threads", "traces"])
def test_newer_conversations_and_traces(home: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    before = make_newer(golden.unpack_private(home, kind, 1))
    for command in {"threads": ("threads list", "threads show 1"), "traces": ("trace", "trace --list")}[kind]:
        assert main(command.split()) == 3
        said = capsys.readouterr().err
        assert "version" in said and "newer" in said and "Traceback" not in said
    assert (home / f"{kind}.sqlite").read_bytes() == before
