"""When documents say that they were written."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.ingest.craft import archive, docx, paragraph, text_pdf
from unit.ingest.sheet_craft import Made, ods, xlsx

from edgerag.ingest.parse.dates import file_time_ns, iso_date_ns, pdf_date_ns
from edgerag.ingest.parse.reader import parse
from edgerag.ingest.parse.sniff import sniff
from edgerag.ingest.parse.source import Container, Source
from edgerag.types import ParsedDocument

CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">{}</cp:coreProperties>'
)
MADE = "<dcterms:created>2019-01-02T03:04:05Z</dcterms:created>"
CHANGED = "<dcterms:modified>2024-05-17T12:30:00Z</dcterms:modified>"
ONLY_MADE = CHANGED.replace("modified", "created")
META = (
    '<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<office:meta><meta:creation-date>2019-01-02T03:04:05Z</meta:creation-date>"
    "<dc:date>2024-05-17T12:30:00.123456789Z</dc:date></office:meta></office:document-meta>"
)
ODT = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<office:body><office:text><text:p>Words<office:annotation><dc:date>2001-01-01T00:00:00Z</dc:date>"
    "</office:annotation></text:p></office:text></office:body></office:document-content>"
)
MAIL = "From: a@example.org\nSubject: Hello\nDate: {}\n\nText."
SHEET = Made("One", [["Name", "Number"], ["a", 1.0], ["b", 2.0]])


def ns(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**9  # type: ignore[misc, arg-type]


WRITTEN = ns(2024, 5, 17, 12, 30)


def dated(data: bytes, name: str) -> int | None:
    source = Source(data, name)
    found = parse(source, sniff(source))
    document = found.document if isinstance(found, Container) else found
    assert isinstance(document, ParsedDocument)
    return document.dated_ns


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (MAIL.format("Fri, 17 May 2024 14:30:00 +0200").encode(), "a.eml"),
        (text_pdf("Text.", title="x) /CreationDate (D:20190102) /ModDate (D:20240517143000+02'00'"), "a.pdf"),
        (text_pdf("Text.", title="x) /CreationDate (D:20240517123000Z"), "a.pdf"),
        (docx(paragraph("Text."), {"docProps/core.xml": CORE.format(MADE + CHANGED)}), "a.docx"),
        (
            docx(paragraph("Text."), {"docProps/core.xml": CORE.format(ONLY_MADE)}),
            "a.docx",
        ),
        (xlsx(SHEET, **{"docProps/core.xml": CORE.format(MADE + CHANGED)}), "a.xlsx"),
        (archive({"content.xml": ODT, "meta.xml": META}), "a.odt"),
    ],
)
def test_a_document_has_the_date_of_its_last_change_that_it_names_itself(data: bytes, name: str) -> None:
    assert dated(data, name) == WRITTEN


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"Plain words.", "a.txt"),
        (MAIL.format("some day").encode(), "a.eml"),
        (MAIL.format("Thu, 1 Jan 1970 00:00:00 +0000").encode(), "a.eml"),
        (text_pdf("Text.", title="x) /ModDate (yesterday"), "a.pdf"),
        (docx(paragraph("Text.")), "a.docx"),
        (docx(paragraph("Text."), {"docProps/core.xml": CORE.format(CHANGED.replace("2024", "x"))}), "a.docx"),
        (ods(SHEET), "a.ods"),
    ],
)
def test_a_document_that_names_no_date_has_none(data: bytes, name: str) -> None:
    assert dated(data, name) is None


def test_a_spreadsheet_whose_properties_break_off_is_read_without_them() -> None:
    core = CORE.format(f"<dc:title>T</dc:title>{CHANGED}")[:-60]
    source = Source(xlsx(SHEET, **{"docProps/core.xml": core}), "a.xlsx")
    found = parse(source, sniff(source))
    assert isinstance(found, ParsedDocument)
    assert (found.title, found.dated_ns) == ("T", None)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("D:20240517123000Z", WRITTEN),
        ("D:20240517123000Z00'00'", WRITTEN),
        ("20240517123000+00'00", WRITTEN),
        ("D:20240517070000-0530", WRITTEN),
        ("D:20241317", None),
        ("", None),
        ("D:", None),
    ],
)
def test_dates_as_pdfs_write_them(text: str, moment: int | None) -> None:
    assert pdf_date_ns(text) == moment


def test_a_date_without_a_zone_is_of_this_machine() -> None:
    local = int(datetime(2024, 5, 17, 12, 30).astimezone().timestamp()) * 10**9
    assert iso_date_ns("2024-05-17T12:30:00") == pdf_date_ns("D:20240517123000") == local


@given(text=st.text(max_size=40))
def test_any_text_is_a_date_of_a_file_or_none(text: str) -> None:
    for moment in (iso_date_ns(text), pdf_date_ns(text)):
        assert moment is None or 0 < moment < 2**63


@pytest.mark.parametrize(
    "mtime_ns", [-11_644_473_600 * 10**9, 0, 1_700_000_000_123_456_789, 13_569_465_600 * 10**9, 10**21]
)
def test_the_time_of_a_file_is_one_that_a_library_can_hold(mtime_ns: int) -> None:
    class Status:
        st_mtime_ns = mtime_ns

    held = file_time_ns(cast(os.stat_result, Status()))
    assert -(2**63) <= held < 2**63
    assert held == mtime_ns or not -(2**63) <= mtime_ns < 2**63
