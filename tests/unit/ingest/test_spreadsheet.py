from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.ingest import sheet_craft
from unit.ingest.craft import archive
from unit.ingest.sheet_craft import Made, Styled, date, ods, percent, raw_ods, raw_xlsx, xls, xlsb, xlsx

from edgerag.config import ChunkSettings
from edgerag.errors import (
    DocumentDamaged,
    DocumentEmpty,
    DocumentEncrypted,
    DocumentError,
    DocumentUnsupported,
)
from edgerag.ingest.chunk import chunk
from edgerag.ingest.parse import sheet as sheet_module
from edgerag.ingest.parse.reader import parse as parse_any
from edgerag.ingest.parse.sniff import sniff
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.spreadsheet import parse
from edgerag.types import ParsedDocument, page_unit

FORMATS = pytest.mark.parametrize("make", [xlsx, xlsb, xls, ods])
Make = Callable[..., bytes]

COSTS = Made(
    "Costs",
    [
        ["Costs of the pump"],
        ["Region", "Since", "Share", "Amount", "Paid", "Left"],
        ["North", date("2024-03-01"), percent(0.195, "19.5%"), 1200.0, True, "#N/A"],
        [None, date("2024-03-15"), percent(0.2, "20.0%"), 0.1 + 0.2 - 0.05, False, None],
        None,
        ["Sum", None, None, 1200.25],
    ],
    merges=[(2, 3, 0, 0), (0, 0, 0, 5)],
)
TEXT = """\
Costs

Costs of the pump
Region | Since | Share | Amount | Paid | Left
North | 2024-03-01 | 19.5% | 1200 | TRUE | #N/A
North | 2024-03-15 | 20.0% | 0.25 | FALSE

Sum |  |  | 1200.25
"""


def read(data: bytes, name: str = "book.xlsx") -> ParsedDocument:
    return parse(Source(data, name))


def headings(document: ParsedDocument) -> list[tuple[int, str]]:
    for heading in document.headings:
        assert heading.title.split(" | ")[0] in document.text[heading.start :].split("\n")[0] or heading.level == 1
    return [(heading.level, heading.title) for heading in document.headings]


def rows(document: ParsedDocument) -> dict[int, str]:
    """Row number -> its line."""
    return {page.number: document.text[page.start : page.end].strip().split("\n")[-1] for page in document.pages}


# ---------------------------------------------------------------- the same in every format


@FORMATS
def test_every_format_reads_as_its_program_shows_it(make: Make) -> None:
    document = read(make(_shown(COSTS, make)))
    assert document.text == TEXT
    assert headings(document) == [
        (1, "Costs"),
        (2, "Costs of the pump"),
        (3, "Region | Since | Share | Amount | Paid | Left"),
    ]
    assert page_unit(document.media_type) == "row"
    assert not document.warnings


@FORMATS
def test_rows_are_cited_by_the_numbers_the_program_shows(make: Make) -> None:
    found = rows(read(make(_shown(COSTS, make), Made("More", [None, None, ["Note", "Late"]]))))
    assert list(found) == [1, 2, 3, 4, 6]  # row 3 of the other sheet came last and has the same number
    assert found[6].startswith("Sum")
    assert found[3] == "Note | Late"


@FORMATS
def test_every_format_is_recognised_and_read_under_its_media_type(make: Make) -> None:
    data = make(COSTS)
    if make is not xls:  # made without the OLE file around it, by which it is recognised
        assert sniff(Source(data, "nameless")) == "spreadsheet"
    assert isinstance(parse_any(Source(data, "nameless"), "spreadsheet"), ParsedDocument)
    media_types = {xlsx: "sheet", xlsb: "macroEnabled.12", xls: "vnd.ms-excel", ods: "opendocument.spreadsheet"}
    assert read(data, "nameless").media_type.endswith(media_types[make])


@FORMATS
def test_hidden_sheets_are_read_and_named_and_empty_ones_are_not_there(make: Make) -> None:
    document = read(make(Made("Open", [["a"]]), Made("Nothing", []), Made("Secret", [["b"]], hidden=True)))
    assert document.text == "Open\n\na\n\nSecret\n\nb\n"
    assert document.warnings == ("Hidden sheets were read: Secret.",)


@FORMATS
def test_a_workbook_without_a_filled_cell_is_empty(make: Make) -> None:
    with pytest.raises(DocumentEmpty, match="cells"):
        read(make(Made("Sheet1", [])))


def _shown(sheet: Made, make: Make) -> Made:
    """ODS keeps what is shown: the sum of fractions is rounded by the program that wrote it."""
    if make is not ods:
        return sheet
    tidy = [[Styled(c, "", f"{c:.10g}") if type(c) is float else c for c in row or ()] or None for row in sheet.rows]
    return Made(sheet.name, tidy, merges=sheet.merges)


# ---------------------------------------------------------------- tables and their headers


def test_tables_parted_by_blank_rows_have_headers_of_their_own() -> None:
    sheet = Made(
        "Stock",
        [
            ["Screws"],
            None,
            ["Size", "Pieces"],
            ["M4", 100.0],
            ["M5", 80.0],
            None,
            ["M6", 20.0],
            None,
            ["Loose remark"],
            ["that goes on"],
            None,
            ["Supplier", "Town", "Days"],
            ["Alpha", "Ulm", 3.0],
        ],
    )
    assert headings(read(xlsx(sheet))) == [
        (1, "Stock"),
        (2, "Screws"),
        (3, "Size | Pieces"),
        (1, "Stock"),  # the remark is not below the columns of the screws
        (2, "Supplier | Town | Days"),
    ]


def test_a_header_above_a_blank_row_still_is_one() -> None:
    document = read(xlsx(Made("S", [["Item", "Price"], None, ["Bolt", 1.5], ["Nut", 0.5]])))
    assert headings(document) == [(1, "S"), (2, "Item | Price")]


def test_years_may_head_columns() -> None:
    document = read(xlsx(Made("S", [[None, 2022.0, 2023.0], ["Ulm", 12.5, 13.0], ["Bonn", 7.0, 9.1]])))
    assert headings(document) == [(1, "S"), (2, "2022 | 2023")]
    assert document.text.endswith(" | 2022 | 2023\nUlm | 12.5 | 13\nBonn | 7 | 9.1\n")


def test_numbers_alone_have_no_header() -> None:
    assert headings(read(xlsx(Made("S", [[1.0, 2.0], [3.0, 4.0]])))) == [(1, "S")]


def test_blank_columns_are_left_out_and_blank_cells_keep_their_place() -> None:
    document = read(xlsx(Made("S", [["A", None, "B", "C"], [1.0, None, None, 2.0]])))
    assert document.text == "S\n\nA | B | C\n1 |  | 2\n"


def test_a_title_merged_over_rows_is_said_once() -> None:
    sheet = Made("S", [["Title"], ["a", 1.0], ["b", 2.0]], merges=[(0, 2, 0, 0)])
    assert read(xlsx(sheet)).text.count("Title") == 1


def test_cells_far_apart_make_no_gigabytes() -> None:
    diagonal = "".join(
        f'<row r="{n}"><c r="{sheet_craft.letters(16 * n)}{n}"><v>{n}</v></c></row>' for n in range(1, 1000)
    )
    last = '<row r="1048576"><c r="XFD1048576"><v>7</v></c></row>'
    document = read(raw_xlsx(diagonal + last))
    assert len(document.text) < 10_000
    assert document.pages[-1].number == 1_048_576


def test_chunks_of_rows_carry_the_header_and_cut_no_row() -> None:
    lines = [[f"part {n}", f"made in town number {n}", float(n)] for n in range(1, 200)]
    document = read(xlsx(Made("Parts", [["Part", "Origin", "Pieces"], *lines])))
    found = chunk(
        document,
        count_tokens=lambda text: len(text.split()),
        settings=ChunkSettings(target_tokens=60, heading_tokens=16),
        max_tokens=100,
    )
    assert len(found) > 10
    assert all(piece.heading_path == ("Parts", "Part | Origin | Pieces") for piece in found)
    assert all("Part | Origin | Pieces" in piece.context for piece in found)
    known = set(document.text.split("\n"))
    assert all(line in known for piece in found for line in piece.text.split("\n"))
    for piece in found[1:]:
        assert f"part {(piece.page_first or 0) - 1} " in piece.text.split("\n")[0]
        assert f"part {(piece.page_last or 0) - 1} " in piece.text.split("\n")[-1]


# ---------------------------------------------------------------- cells of XLSX


def test_rich_inline_and_escaped_texts() -> None:
    cells = (
        '<c t="inlineStr"><is><r><t>Bo</t></r><r><t>ld</t></r><rPh><t>reading</t></rPh></is></c>'
        '<c t="str"><f>A1</f><v>of a\nformula_x000D_</v></c>'
        '<c t="d"><v>2024-03-01T00:00:00</v></c><c t="n"><v>odd</v></c>'
    )
    assert read(raw_xlsx(f"<row>{cells}</row>")).text == "Sheet1\n\nBold | of a formula | 2024-03-01 | odd\n"


def test_dates_count_from_1904_where_the_workbook_says_so() -> None:
    tabs = '<sheets><sheet name="S" r:id="rId1"/></sheets>'
    head = f'<workbook xmlns="{sheet_craft.MAIN}" xmlns:r="{sheet_craft.RELATION}"><workbookPr date1904="1"/>'
    data = xlsx(Made("S", [[Styled(1.0, "yyyy-mm-dd", "")]]), xl__workbook_xml=f"{head}{tabs}</workbook>")
    assert "1904-01-02" in read(data).text


def test_formulas_without_results_are_told() -> None:
    cells = "<row><c><f>SUM(A2:A9)</f><v/></c><c><f>1+1</f></c></row>"
    document = read(raw_xlsx(f'<row r="7"><c t="str"><f>B1</f><v></v></c><c><v>4</v></c></row>{cells}'))
    assert document.text.endswith("\n4\n")
    assert document.warnings[0].startswith("2 formulas were left out")
    with pytest.raises(DocumentEmpty, match="only formulas"):
        read(raw_xlsx(cells))


def test_title_and_comments_of_the_workbook() -> None:
    document = read(xlsx(Made("S", [["x"]]), title="Budget 2024", xl__comments1_xml="<comments/>"))
    assert document.title == "Budget 2024"
    assert document.warnings == ("Comments were left out.",)
    assert read(xlsx(Made("S", [["x"]])), "plan.xlsx").title == "plan.xlsx"


def test_cells_of_ods_repeat_and_their_notes_are_not_their_text() -> None:
    names = " ".join(f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in ("office", "table", "text"))
    note = "<office:annotation><text:p>note</text:p></office:annotation>"
    document = read(
        raw_ods(
            f'<office:document-content {names}><office:body><office:spreadsheet><table:table table:name="T">'
            f'<table:table-header-rows><table:table-row table:number-rows-repeated="2"><table:table-cell'
            f' table:number-columns-repeated="2">{note}<text:p>a<text:s/>b<text:line-break/>c</text:p>'
            "<text:p>d</text:p></table:table-cell></table:table-row></table:table-header-rows></table:table></office:spreadsheet>"
            "</office:body></office:document-content>"
        )
    )
    assert document.text == "T\n\na b c d | a b c d\na b c d | a b c d\n"
    assert [page.number for page in document.pages] == [1, 2]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "data",
    [
        ods(COSTS, locked=True),
        xls(COSTS, locked=True),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le"),
    ],
)
def test_a_password_is_asked_for(data: bytes) -> None:
    with pytest.raises(DocumentEncrypted, match="password"):
        read(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (xlsx(COSTS)[:900], "zip"),
        (raw_xlsx("<row><c t='s'><v>99</v></c></row>"), "text that is not there"),
        (raw_xlsx("<row><c>"), "well formed"),
        (raw_xlsx('<row r="5"/><row r="4"><c><v>1</v></c></row><row r="4"><c><v>1</v></c></row>'), "out of order"),
        (archive({"[Content_Types].xml": "", "xl/x.xml": ""}), "no part"),
        (xlsx(COSTS, xl__sharedStrings_xml='<!DOCTYPE a [<!ENTITY b "c">]><sst/>'), "entities"),
        (b"\x09\x08 no workbook at all", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "damaged"),
    ],
)
def test_damage_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentDamaged, match=reason):
        read(data)


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = xlsx(Made("S", [["a", "b", "c"]] * 40))
    monkeypatch.setattr(sheet_module, "_MOST_CELLS", 100)
    with pytest.raises(DocumentUnsupported, match="100 cells"):
        read(data)
    monkeypatch.setattr(sheet_module, "_MOST_CELLS", 1000)
    monkeypatch.setattr(sheet_module, "_MOST_CHARACTERS", 50)
    with pytest.raises(DocumentUnsupported, match="50 characters"):
        read(data)
    monkeypatch.setattr(sheet_module, "_MOST_PART_BYTES", 1000)
    with pytest.raises(DocumentDamaged, match="unpacks"):
        read(data)


def test_repeated_rows_of_ods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet_module, "_MOST_CELLS", 10_000)
    cell = '<table:table-cell table:number-columns-repeated="999999999"><text:p>x</text:p></table:table-cell>'
    data = ods(Made("S", [["x"]]))
    content = zipfile.ZipFile(BytesIO(data)).read("content.xml").decode()
    bomb = f'<table:table-row table:number-rows-repeated="999999999">{cell}</table:table-row></table:table>'
    with pytest.raises(DocumentUnsupported, match="too large"):
        read(raw_ods(content.replace("</table:table>", bomb)))


WHOLE = [make(COSTS, Made("More", [["a", 1.5]])) for make in (xlsb, xls)]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=9))
def test_damaged_bytes_end_in_a_document_or_a_reason(whole: bytes, changes: list[tuple[int, int]]) -> None:
    if whole.startswith(b"PK"):  # below the zip and its checksums
        parts = {
            name: zipfile.ZipFile(BytesIO(whole)).read(name) for name in zipfile.ZipFile(BytesIO(whole)).namelist()
        }
        names = [name for name in parts if name.endswith(".bin")]
        for position, value in changes:
            body = bytearray(parts[names[position % len(names)]])
            body[position // len(names) % len(body)] = value
            parts[names[position % len(names)]] = bytes(body)
        data = archive(parts)
    else:
        body = bytearray(whole)
        for position, value in changes:
            body[position % len(body)] = value
        data = bytes(body)
    try:
        document = read(data)
    except DocumentError as error:
        assert error.message
    else:
        assert document.text


CELLS = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=12), st.floats(-1e9, 1e9), st.booleans())
TABLES = st.lists(st.one_of(st.none(), st.lists(CELLS, max_size=5)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(TABLES, min_size=1, max_size=3))
def test_every_cell_is_in_the_line_of_its_row(tables: list[list[list[str | float | None] | None]]) -> None:
    made = [
        Made(f"Sheet {n}", [[_storable(cell) for cell in row] if row else None for row in table])
        for n, table in enumerate(tables)
    ]
    filled = [
        (number, [" ".join(cell.split()) for cell in row or () if isinstance(cell, str) and cell.split()])
        for sheet in made
        for number, row in enumerate(sheet.rows, 1)
        if any(cell is not None and (not isinstance(cell, str) or cell.split()) for cell in row or ())
    ]
    if not filled:
        with pytest.raises(DocumentEmpty):
            read(xlsx(*made))
        return
    document = read(xlsx(*made))
    assert [page.number for page in document.pages] == [number for number, _ in filled]
    position = 0
    for page, (_, texts) in zip(document.pages, filled, strict=True):
        assert not document.text[position : page.start].strip()
        assert page.end > page.start
        line = document.text[page.start : page.end].rstrip("\n").split("\n")[-1]
        assert all(text in line for text in texts)
        position = page.end
    assert position == len(document.text)
    assert [h.start for h in document.headings] == sorted(h.start for h in document.headings)


def _storable(cell: str | float | None) -> str | float | None:
    """XML holds no control characters, and a text that begins with # would be made an error by craft."""
    if not isinstance(cell, str):
        return cell
    return "".join(c for c in cell if c.isprintable() and c not in "#_\ufffe\uffff")
