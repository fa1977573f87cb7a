from __future__ import annotations

import pytest

from edgerag.errors import LibraryMissing
from edgerag.types import BringingUp, FileReport, IngestDone, MergeReport
from edgerag.ui import report
from edgerag.ui.library_commands import compaction_sentences


def test_a_failure_is_one_line_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.fail(LibraryMissing("There is no library 'x'.", remedy="Make it.")) == 3
    assert capsys.readouterr().err == "edgerag: There is no library 'x'. Make it.\n"


def test_the_summary_names_every_problem_up_to_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    reports = [FileReport(f"/d/{n}.pdf", "failed", "it is encrypted", 0) for n in range(25)]
    reports.append(FileReport("/d/a.txt", "ingested", "", 3))
    report.ingest_summary(IngestDone(tuple(reports), chunks_embedded=3, seconds=1.25, interrupted=True))
    shown = capsys.readouterr().err
    assert "1 ingested, 0 unchanged, 0 removed, 0 skipped, 25 failed; 3 chunks embedded in 1.2 s." in shown
    assert "/d/0.pdf: it is encrypted" in shown
    assert "and 5 more failed" in shown
    assert "goes on where it stopped" in shown


def test_the_summary_says_what_is_wrong_with_the_index(capsys: pytest.CaptureFixture[str]) -> None:
    report.ingest_summary(IngestDone((), 0, 1.0, interrupted=False, notes=("A segment is damaged.",)))
    assert "note: A segment is damaged." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("done", "sentences"),
    [
        (
            MergeReport(20, 1, 2_000_000, 1_500_000, 60_000, 1_200, (), (), cancelled=False),
            ["20 segments became 1: 60,000 vectors written, 1,200 of removed passages dropped, 2.0 MB became 1.5 MB."],
        ),
        (
            MergeReport(1, 1, 10, 10, 0, 0, (), (), cancelled=False),
            ["Nothing to do: 1 segment, as few as can be."],
        ),
        (
            MergeReport(3, 3, 10, 10, 0, 0, ("a.hnsw is cut short.",), ("b.hnsw is too large.",), cancelled=False),
            [
                "  left as it is: a.hnsw is cut short.",
                "Run `edgerag library verify` to see all that is damaged.",
                "note: b.hnsw is too large.",
            ],
        ),
        (
            MergeReport(3, 3, 10, 10, 0, 0, (), (), cancelled=True),
            ["Interrupted. What was finished stays; the same command goes on from there."],
        ),
    ],
)
def test_what_a_compaction_did(done: MergeReport, sentences: list[str]) -> None:
    assert compaction_sentences(done) == sentences


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.4, "4 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (6000, "1 h 40 min")]
)
def test_time_left(seconds: float, text: str) -> None:
    assert report.clock(seconds) == text


STATES = (BringingUp("pumps", "checking", 0, 4_000), BringingUp("pumps", "changing", 1, 5), None)


def test_how_far_a_library_is_brought_up_is_one_line_that_goes_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = report.Upgrade()
    for state in STATES:
        told(state)
    shown = capsys.readouterr().err
    assert "\n" not in shown
    first, second, blank, rest = shown.split("\r")[1:]
    assert first == "Library pumps is brought up to this version: checking, 0 of 4,000 documents"
    assert second.rstrip() == "Library pumps is brought up to this version: changing, 1 of 5 changes"
    assert len(second) == len(first), "nothing of the longer one is left"
    assert (blank.strip(), rest) == ("", "")


def test_where_no_line_can_change_it_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = report.Upgrade()
    for state in STATES:
        told(state)
    assert capsys.readouterr().err == "Library pumps is of an older version and is brought up first.\n"
