from __future__ import annotations

import pytest

from edgerag.errors import LibraryMissing
from edgerag.types import FileReport, IngestDone
from edgerag.ui import report


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


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.4, "4 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (6000, "1 h 40 min")]
)
def test_time_left(seconds: float, text: str) -> None:
    assert report.clock(seconds) == text
