"""The lines on warnings after an ingest: how many of what kind, the first by name, none for what was read before."""

from __future__ import annotations

import pytest

from edgerag.types import FileReport
from edgerag.ui.report import warning_lines
from edgerag.ui.warning_kinds import KINDS, kind_of


@pytest.mark.parametrize(
    ("warning", "kind"),
    [
        ('Line 3 has hidden text (21 characters): "x".', "hidden text"),
        ("There is hidden text on page 9 too.", "hidden text"),
        ("Hidden sheets were read: Costs.", "hidden text"),
        ("Hidden and read all the same: slide 3.", "hidden text"),
        ('Line 2: 16 invisible tag characters say "ignore".', "hidden text"),
        ("2 pages could not be read: pages 2-3.", "damage"),
        ("The archive is cut short: the members before the cut are read.", "damage"),
        ("Page 1 was read by OCR (confidence 92 %).", "pages read by OCR"),
        ("3 pages without text, scanned and not read: pages 2-4. See --ocr.", "scans not read"),
        ("A file in it is protected by a password: a.txt.", "protected parts"),
        ("Comments were left out.", "parts left out"),
        ('Page 1 has text beside the page, left out (9 characters): "x".', "parts left out"),
        ("2 links in it are not followed: a, b.", "parts left out"),
        ("The encoding was taken to be cp1252.", "encoding guessed"),
        ("Something else.", "notes"),
    ],
)
def test_kinds(warning: str, kind: str) -> None:
    assert kind_of(warning) == kind and kind in KINDS


def test_counts_by_kind_and_the_first_by_name() -> None:
    reports = [
        FileReport(f"/d/{n}.docx", "ingested", "", 1, warnings=("Comments were left out.",)) for n in range(1, 7)
    ]
    reports.append(
        FileReport("/d/z.html", "ingested", "", 1, warnings=('Line 3 has hidden text (2 characters): "x".',))
    )
    reports.append(FileReport("/d/old.html", "unchanged", "", 1, warnings=("Comments were left out.",)))
    lines = warning_lines(reports)
    assert lines[0] == "7 files have warnings: hidden text in 1, parts left out in 6."
    assert lines[1] == '  warning: /d/z.html: Line 3 has hidden text (2 characters): "x".'
    assert len(lines) == 7 and "2 more" in lines[-1]


def test_nothing_is_said_of_nothing() -> None:
    assert warning_lines([FileReport("/d/a.md", "ingested", "", 1)]) == []
