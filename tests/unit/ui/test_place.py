from __future__ import annotations

import dataclasses

import pytest

from edgerag.types import Chunk, StoredChunk, page_unit
from edgerag.ui.place import count_of_pages, full_place, headings_below, member_name, place, shown_path

PDF = "application/pdf"
SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


def stored(media_type: str, first: int | None, last: int | None, *path: str) -> StoredChunk:
    chunk = Chunk(
        ordinal=0,
        start=0,
        end=4,
        text="text",
        heading_path=path,
        page_first=first,
        page_last=last,
        line_first=7,
        line_last=19,
        token_count=1,
    )
    return StoredChunk(id=1, document_id=1, path="/a", title="", media_type=media_type, chunk=chunk)


@pytest.mark.parametrize(
    ("media_type", "unit"),
    [
        (PDF, "page"),
        ("text/csv", "page"),  # has none: its lines are cited
        (SLIDES, "slide"),
        ("application/vnd.oasis.opendocument.presentation", "slide"),
        (SHEETS, "row"),
        ("application/vnd.ms-excel", "row"),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", "row"),
        ("application/vnd.ms-excel.sheet.binary.macroEnabled.12", "row"),
        ("application/vnd.oasis.opendocument.spreadsheet", "row"),
        ("application/vnd.oasis.opendocument.text", "page"),
    ],
)
def test_what_the_pages_of_a_document_are(media_type: str, unit: str) -> None:
    assert page_unit(media_type) == unit


def test_places_are_said_in_the_units_of_the_document() -> None:
    assert place(stored(PDF, None, None)) == "lines 7-19"
    assert place(stored(PDF, 3, 3)) == "page 3"
    assert place(stored(PDF, 3, 4)) == "pages 3-4"
    assert place(stored(SLIDES, 3, 3)) == "slide 3"
    assert place(stored(SHEETS, 12, 18, "Costs")) == "rows 12-18"


def test_a_row_is_found_with_the_name_of_its_sheet() -> None:
    row = stored(SHEETS, 12, 18, "Costs", "Item | Price")
    assert full_place(row) == "sheet Costs, rows 12-18"
    assert headings_below(row) == ("Item | Price",)
    page = stored(PDF, 2, 2, "Manual", "Torques")
    assert full_place(page) == "page 2"
    assert headings_below(page) == ("Manual", "Torques")


def test_counts_of_pages() -> None:
    assert count_of_pages(0, PDF) == ""
    assert count_of_pages(1, SLIDES) == "1 slide"
    assert count_of_pages(12, PDF) == "12 pages"
    assert count_of_pages(40, SHEETS) == "40 rows"


def test_hidden_text_is_said_with_the_place() -> None:
    seen = stored(PDF, 3, 3)
    hidden = dataclasses.replace(seen, chunk=dataclasses.replace(seen.chunk, hidden=True))
    assert full_place(seen) == "page 3"
    assert full_place(hidden) == "page 3, with hidden text"


@pytest.mark.parametrize(
    ("path", "name", "shown"),
    [
        ("/a/b.txt", "b.txt", "/a/b.txt"),
        ("/a/box.zip!/in/c.txt", "box.zip › in/c.txt", "/a/box.zip › in/c.txt"),
        ("/a/m.eml!/r.zip!/t.csv", "m.eml › r.zip › t.csv", "/a/m.eml › r.zip › t.csv"),
        ("/a/wow!/b.txt", "b.txt", "/a/wow!/b.txt"),  # a folder of that name
        ("/a/wow!/box.zip!/b.txt", "box.zip › b.txt", "/a/wow!/box.zip › b.txt"),
    ],
)
def test_a_file_in_a_file_is_named_with_the_way_to_it(path: str, name: str, shown: str) -> None:
    assert (member_name(path), shown_path(path)) == (name, shown)
