"""`edgerag config` and `edgerag plot`, as they are typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from edgerag.ui.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in list(os.environ):
        if variable.startswith("EDGERAG_"):
            monkeypatch.delenv(variable)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("EDGERAG_HOME", str(tmp_path))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["config", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_setting_is_set_listed_read_and_reset(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "set", "retrieval.source_count", "7") == (0, "", "retrieval.source_count = 7 (file)\n")
    assert said(capsys, "get", "retrieval.source_count")[1] == "7\n"
    code, out, _ = said(capsys, "list", "--changed")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [["retrieval.source_count", "7", "file"]]
    assert said(capsys, "reset", "retrieval.source_count")[2] == "retrieval.source_count = 9 (default)\n"
    assert "nothing to do" in said(capsys, "reset", "retrieval.source_count")[2]


def test_the_list_as_json_has_every_origin(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERAG_MEMORY_BUDGET", "64 MB")
    record = json.loads(said(capsys, "list", "--json")[1])
    assert record["file"] == str(home / "config.toml")
    settings = {one["name"]: one for one in record["settings"]}
    budget = settings["memory.budget"]
    assert (budget["value"], budget["text"], budget["origin"]) == (64_000_000, "64 MB", "environment")
    assert budget["where"] == "EDGERAG_MEMORY_BUDGET"
    assert settings["generation.temperature"]["value"] is None
    assert settings["ingest.include"]["value"] == []


def test_what_a_variable_overrides_is_written_and_said(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERAG_UI_THEME", "light")
    code, _, err = said(capsys, "set", "ui.theme", "dark")
    assert code == 0
    assert "EDGERAG_UI_THEME says 'light'" in err
    assert 'theme = "dark"' in (home / "config.toml").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["set", "retrieval.source_count", "99"], "not between 1 and 50"),
        (["set", "retrieval.colour", "red"], "There is no setting 'retrieval.colour'"),
        (["get", "nothing"], "There is no setting 'nothing'"),
        (["set", "library.name", ""], "is not a library name"),
        (["set", "library.name", ".."], "is not a library name"),
        (["set", "library.name", "~nobody-of-that-name/books"], "there is no such user"),
        (["set", "library.also", "books,my books"], "'my books' is not a library name"),
        (["set", "models.chat", " "], "begins or ends with a space"),
        (["set", "models.embedder", "mini\nlm"], "cannot be seen"),
        (["set", "ingest.ocr_languages", "deu\t"], "cannot be seen"),
    ],
)
def test_what_cannot_be_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert main(["config", "list"]) == 0, "what was refused is nowhere"


def test_a_value_that_is_refused_elsewhere_can_be_mended(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config.toml").write_text("[retrieval]\nsource_count = 99  # too many\n")
    assert main(["status"]) == 2
    capsys.readouterr()
    assert said(capsys, "set", "retrieval.source_count", "5")[0] == 0
    assert "5  # too many" in (home / "config.toml").read_text()


def test_no_color_is_a_flag_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")  # so that what the command sets is taken back
    assert main(["--no-color", "config", "get", "ui.theme"]) == 0
    out, err = capsys.readouterr()
    assert out == "no-colour\n"
    assert err.startswith("flag")
    assert os.environ["NO_COLOR"] == "1"


def test_charts_of_a_file_are_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"name": "mine", "figures": {"open_ms": 1.0, "load_ms": 2.0}}))
    assert main(["plot", str(file)]) == 0
    out = capsys.readouterr().out
    assert "mine (milliseconds)" in out
    assert "\x1b" not in out
    assert main(["plot", str(file), "--out", str(tmp_path / "new"), "--png"]) == 0
    assert {each.suffix for each in (tmp_path / "new").iterdir()} == {".svg", ".png"}
    assert main(["plot", str(tmp_path / "absent.json")]) == 2
