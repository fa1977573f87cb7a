"""`edgerag library export`, `import`, `backup`, `verify` and `repair`, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgerag.ui.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"


@pytest.fixture
def library(home: Path) -> Path:
    assert main(["--library", "pumps", "ingest", str(EXAMPLES), "--quiet"]) == 0
    return home / "indexes" / "pumps"


def hits(capsys: pytest.CaptureFixture[str], name: str) -> tuple[list[str], list[str]]:
    capsys.readouterr()
    assert main(["--library", name, "search", "noise level of the pump", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [hit["text"] for hit in found["hits"]], found["notes"]


def test_a_library_travels(library: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pumps.edgerag"
    assert main(["library", "export", "pumps", str(file), "--quiet"]) == 0
    assert "7 documents" in capsys.readouterr().err
    assert main(["library", "import", str(file)]) == 3, "there is one of that name"
    assert main(["library", "import", str(file), "--name", "copy", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["library"], told["embedder"]["name"]) == ("copy", "pumps", "all-minilm-l6-v2")
    assert hits(capsys, "pumps") == hits(capsys, "copy")
    assert main(["--library", "copy", "library", "backup", str(tmp_path / "copy.edgerag")]) == 0
    assert main(["library", "import", str(tmp_path / "nothing.edgerag")]) == 2
    assert main(["library", "export", "nothing", str(tmp_path / "n.edgerag")]) == 3
    assert main(["library", "import", str(EXAMPLES / "kestrel-p40-manual.md"), "--name", "no"]) == 3
    assert sorted(path.name for path in (home / "indexes").iterdir()) == ["copy", "pumps"]


def test_damage_is_said_beside_what_is_found_and_mended(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, notes = hits(capsys, "pumps")
    assert notes == []
    database = library / "library.sqlite"
    whole = database.read_bytes()
    data = bytearray(whole)
    data[len(data) - 2048] ^= 1
    database.write_bytes(data)
    _, notes = hits(capsys, "pumps")
    assert "edgerag library repair" in " ".join(notes)
    assert main(["--library", "pumps", "library", "verify"]) == 3
    assert main(["--library", "pumps", "ingest", str(EXAMPLES / "kestrel-p40-manual.md"), "--tag", "x"]) == 3
    assert main(["--library", "pumps", "library", "repair"]) == 0
    assert "1 flipped bits" in capsys.readouterr().err
    assert database.read_bytes() == whole
    assert main(["--library", "pumps", "library", "verify"]) == 0
    assert hits(capsys, "pumps") == (before, [])


def test_a_damaged_segment_is_made_anew(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, _ = hits(capsys, "pumps")
    (segment,) = (library / "segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[5000] ^= 16
    segment.write_bytes(data)
    assert main(["--library", "pumps", "library", "verify"]) == 3
    capsys.readouterr()
    assert main(["--library", "pumps", "library", "repair", "--json"]) == 0
    (rescued,) = json.loads(capsys.readouterr().out)["segments"]
    assert (rescued["saved"], rescued["lost"]) == (36, 1)
    assert main(["--library", "pumps", "ingest", str(EXAMPLES), "--quiet"]) == 0  # embeds what is lost again
    assert main(["--library", "pumps", "library", "verify"]) == 0
    assert hits(capsys, "pumps")[0] == before
