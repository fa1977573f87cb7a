from __future__ import annotations

import csv
import errno
import json
import os
from pathlib import Path

import pytest

from edgerag.errors import DocumentUnsupported, StorageFull, UsageError
from edgerag.ingest.parse.sniff import sniff
from edgerag.ingest.parse.source import Source
from edgerag.ingest.report import COLUMNS, ReportFile, merged
from edgerag.types import FileReport, IngestDone, Outcome

ODD = os.fsdecode(b"/docs/caf\xe9\n\x1b[31m.md")


def done(*reports: FileReport, **more: object) -> IngestDone:
    return IngestDone(reports=reports, chunks_embedded=3, seconds=1.5, interrupted=False, **more)  # type: ignore[arg-type]


def one(path: str = "/docs/a.md", outcome: Outcome = "ingested", reason: str = "", **more: object) -> FileReport:
    return FileReport(path, outcome, reason, 4, **more)  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


FULL = one(
    media_type="text/markdown", page_count=2, character_count=900, size_bytes=1000, seconds=0.12345, warnings=("W.",),
    language="en",
)  # fmt: skip


def test_json_says_everything(tmp_path: Path) -> None:
    file = ReportFile(tmp_path / "r.json")
    file.write(done(FULL, one("/docs/b", "failed", "It is damaged."), notes=("N.",)))
    value = json.loads((tmp_path / "r.json").read_text())
    assert value["files"][0] == {
        "path": "/docs/a.md", "state": "ingested", "reason": "", "media_type": "text/markdown", "language": "en",
        "pages": 2, "chunks": 4, "seconds": 0.123, "characters": 900, "size_bytes": 1000,
        "text_share": 0.9, "warnings": ["W."],
    }  # fmt: skip
    assert tuple(value["files"][0]) == COLUMNS
    assert value["files"][1]["reason"] == "It is damaged."
    assert value["files"][1]["text_share"] is None
    assert (value["chunks_embedded"], value["interrupted"], value["notes"]) == (3, False, ["N."])
    assert names(tmp_path) == ["r.json"]


def test_csv_can_be_read_by_a_table(tmp_path: Path) -> None:
    ReportFile(tmp_path / "R.CSV").write(done(FULL, one('/d/"x", y', "skipped", "=1+1")))
    with (tmp_path / "R.CSV").open(newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert (first["text_share"], first["warnings"], second["path"]) == ("0.9", "W.", '/d/"x", y')
    assert second["reason"] == "'=1+1", "a spreadsheet must not take it for a formula"


def test_odd_names_survive_in_json_and_obey_nowhere(tmp_path: Path) -> None:
    for name in ("r.json", "r.csv"):
        ReportFile(tmp_path / name).write(done(one(ODD, reason="a\x9b2Jb\u202e")))
        data = (tmp_path / name).read_bytes()
        assert not any(bad.encode() in data for bad in ("\x1b", "\x9b", "\u202e"))
    assert json.loads((tmp_path / "r.json").read_text())["files"][0]["path"] == ODD


@pytest.mark.parametrize("name", ["report", "report.txt", "report.json.gz", "nowhere/report.json"])
def test_a_path_that_can_be_no_report_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        ReportFile(tmp_path / name)
    assert names(tmp_path) == []


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").mkdir()
    with pytest.raises(UsageError, match="folder"):
        ReportFile(tmp_path / "r.json")


def test_a_full_disk_is_told_at_once_and_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ReportFile(tmp_path / "r.json")
    file.write(done(FULL))
    before = (tmp_path / "r.json").read_bytes()

    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageFull, match="full"):
        ReportFile(tmp_path / "r.json")
    with pytest.raises(StorageFull):
        file.write(done(one("/docs/other")))
    assert (tmp_path / "r.json").read_bytes() == before
    assert names(tmp_path) == ["r.json"]


def test_the_report_is_withheld_from_the_ingest(tmp_path: Path) -> None:
    file = ReportFile(tmp_path / "r.json")
    assert str(tmp_path / "r.json") in file.withheld and len(file.withheld) == 2


def test_the_later_ingest_has_the_word_if_anything_happened() -> None:
    first = done(one("/a"), one("/b", "failed", "Damaged."), one("/c"), notes=("N.",))
    then = done(one("/a", "unchanged"), one("/b", "ingested"), one("/d", "unchanged"), one("/c", "removed", "Gone."))
    both = merged(first, then)
    assert [(report.path, report.outcome) for report in both.reports] == [
        ("/a", "ingested"), ("/b", "ingested"), ("/c", "removed"), ("/d", "unchanged")
    ]  # fmt: skip
    assert (both.chunks_embedded, both.seconds, both.notes) == (6, 3.0, ("N.",))


def test_a_file_that_moved_is_told_of_under_its_new_path_alone() -> None:
    first = done(one("/old/a"), one("/b"))
    then = done(one("/new/a", "unchanged", "It was /old/a.", moved_from="/old/a"), one("/b", "unchanged"))
    assert [report.path for report in merged(first, then).reports] == ["/b", "/new/a"]
    again = done(one("/old/a"))
    assert [report.path for report in merged(merged(first, then), again).reports] == ["/b", "/new/a", "/old/a"]


@pytest.mark.parametrize("name", ["r.json", "r.csv"])
def test_a_report_is_told_from_a_document_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    ReportFile(tmp_path / name).write(done(FULL))
    data = (tmp_path / name).read_bytes()
    for renamed in (name, "notes.txt"):
        with pytest.raises(DocumentUnsupported, match="report of this program"):
            sniff(Source(data, renamed))
    assert sniff(Source(data[1:], name)) in ("structured", "csv")


def test_a_folder_that_takes_no_file_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UsageError, match="takes no file") as caught:
        ReportFile(tmp_path / "r.json")
    assert "space" not in str(caught.value)
