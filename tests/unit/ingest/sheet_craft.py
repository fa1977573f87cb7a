"""One small workbook as XLSX, XLSB, XLS and ODS, written from the format's descriptions."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from unit.ingest.craft import CONTENT_TYPES, archive

Value = str | float | bool | None
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
EPOCH = datetime.datetime(1899, 12, 30)  # noqa: DTZ001 - spreadsheets know no time zones
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


@dataclass(frozen=True)
class Styled:
    """A number with its format code, and what a program shows for it (ODS keeps that)."""

    number: float
    code: str
    shown: str
    kind: str = "float"


@dataclass(frozen=True)
class Made:
    """A sheet: its rows from the first one on (None for a blank row), merged ranges as (row, row, column, column)."""

    name: str
    rows: Sequence[Sequence[Value | Styled] | None]
    hidden: bool = False
    merges: Sequence[tuple[int, int, int, int]] = ()
    hidden_rows: frozenset[int] = frozenset()  # these two from 0, and in XLSB alone
    hidden_columns: frozenset[int] = frozenset()


def date(iso: str, code: str = "dd/mm/yyyy") -> Styled:
    moment = datetime.datetime.fromisoformat(iso)
    days = (moment - EPOCH) / datetime.timedelta(days=1)
    return Styled(days, code, moment.strftime("%d/%m/%Y"), "date")


def percent(number: float, shown: str, code: str = "0.0%") -> Styled:
    return Styled(number, code, shown, "percentage")


def letters(column: int) -> str:
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def _codes(sheets: Sequence[Made]) -> list[str]:
    found = {
        cell.code: None for sheet in sheets for row in sheet.rows for cell in row or () if isinstance(cell, Styled)
    }
    return list(found)


def _cells(sheet: Made) -> Iterator[tuple[int, list[tuple[int, Value | Styled]]]]:
    """Rows that are not blank, from 0, and their filled cells."""
    for index, row in enumerate(sheet.rows):
        filled = [(column, cell) for column, cell in enumerate(row or ()) if cell is not None]
        if filled:
            yield index, filled


# ---------------------------------------------------------------- XLSX


def xlsx(*sheets: Made, title: str = "", **parts: str) -> bytes:
    """``parts``: others to put in place of, by their name with "__" for "/" and "_" for "."."""
    codes = _codes(sheets)
    strings: dict[str, int] = {}
    package = {"[Content_Types].xml": CONTENT_TYPES}
    for number, sheet in enumerate(sheets, 1):
        package[f"xl/worksheets/sheet{number}.xml"] = worksheet(
            "".join(
                f'<row r="{index + 1}">'
                + "".join(_xlsx_cell(f"{letters(c)}{index + 1}", cell, codes, strings) for c, cell in filled)
                + "</row>"
                for index, filled in _cells(sheet)
            ),
            "".join(f'<mergeCell ref="{letters(c)}{r + 1}:{letters(d)}{s + 1}"/>' for r, s, c, d in sheet.merges),
        )
    states = ['state="hidden"' if sheet.hidden else "" for sheet in sheets]
    tabs = "".join(
        f'<sheet name={quoteattr(sheet.name)} sheetId="{n}" r:id="rId{n}" {state}/>'
        for n, (sheet, state) in enumerate(zip(sheets, states, strict=True), 1)
    )
    package["xl/workbook.xml"] = f'<workbook xmlns="{MAIN}" xmlns:r="{RELATION}"><sheets>{tabs}</sheets></workbook>'
    package |= _relations(sheets, "xl/_rels/workbook.xml.rels", "xml")
    package["xl/sharedStrings.xml"] = (
        f'<sst xmlns="{MAIN}">'
        + "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in strings)
        + "</sst>"
    )
    package["xl/styles.xml"] = (
        f'<styleSheet xmlns="{MAIN}"><numFmts>'
        + "".join(f'<numFmt numFmtId="{164 + n}" formatCode={quoteattr(code)}/>' for n, code in enumerate(codes))
        + '</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>'
        + "".join(f'<xf numFmtId="{164 + n}"/>' for n in range(len(codes)))
        + "</cellXfs></styleSheet>"
    )
    if title:
        package["docProps/core.xml"] = (
            '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
            f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></cp:coreProperties>'
        )
    package |= {name.replace("__", "/").replace("_", "."): content for name, content in parts.items()}
    return archive(package)


def worksheet(rows: str, merges: str = "") -> str:
    merged = f"<mergeCells>{merges}</mergeCells>" if merges else ""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData>{merged}</worksheet>'


def raw_xlsx(rows: str, **parts: str) -> bytes:
    """A workbook of one sheet with these rows in its XML."""
    return xlsx(Made("Sheet1", [["x"]]), xl__worksheets__sheet1_xml=worksheet(rows), **parts)


def _relations(sheets: Sequence[Made], name: str, extension: str) -> dict[str, str]:
    targets = [(f"rId{n}", "worksheet", f"worksheets/sheet{n}.{extension}") for n in range(1, len(sheets) + 1)]
    targets += [("rIdS", "sharedStrings", f"/xl/sharedStrings.{extension}"), ("rIdF", "styles", f"styles.{extension}")]
    lines = "".join(
        f'<Relationship Id="{i}" Type="{RELATION}/{kind}" Target="{target}"/>' for i, kind, target in targets
    )
    return {name: f'<Relationships xmlns="{RELATIONS}">{lines}</Relationships>'}


def _xlsx_cell(reference: str, cell: Value | Styled, codes: list[str], strings: dict[str, int]) -> str:
    if isinstance(cell, bool):
        return f'<c r="{reference}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, Styled):
        return f'<c r="{reference}" s="{codes.index(cell.code) + 1}"><v>{cell.number!r}</v></c>'
    if isinstance(cell, str) and cell.startswith("#"):
        return f'<c r="{reference}" t="e"><v>{cell}</v></c>'
    if isinstance(cell, str):
        return f'<c r="{reference}" t="s"><v>{strings.setdefault(cell, len(strings))}</v></c>'
    return f'<c r="{reference}"><v>{cell!r}</v></c>'


# ---------------------------------------------------------------- XLSB

_ERROR_CODES = {"#DIV/0!": 7, "#N/A": 42}


def _record(kind: int, body: bytes = b"") -> bytes:
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size, length = len(body), b""
    while True:
        size, low = size >> 7, size & 0x7F
        length += bytes([low | (0x80 if size else 0)])
        if not size:
            return head + length + body


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text.encode("utf-16-le")) // 2) + text.encode("utf-16-le")


def xlsb(*sheets: Made) -> bytes:
    codes = _codes(sheets)
    strings: dict[str, int] = {}
    package: dict[str, str | bytes] = {"[Content_Types].xml": CONTENT_TYPES}
    for number, sheet in enumerate(sheets, 1):
        body = _record(129) + _record(148, struct.pack("<4I", 0, len(sheet.rows), 0, 99))
        if sheet.hidden_columns:
            looks = (struct.pack("<4IH", n, n, 2340, 0, 1) for n in sheet.hidden_columns)
            body += _record(390) + b"".join(_record(60, look) for look in looks) + _record(391)
        body += _record(145)
        for index, filled in _cells(sheet):
            flags = 0x10 if index in sheet.hidden_rows else 0
            body += _record(0, struct.pack("<IIHBB", index, 0, 300, 0, flags) + bytes(5))
            body += b"".join(_xlsb_cell(column, cell, codes, strings) for column, cell in filled)
        body += _record(146) + b"".join(_record(176, struct.pack("<4I", *merge)) for merge in sheet.merges)
        package[f"xl/worksheets/sheet{number}.bin"] = body + _record(130)
    package["xl/workbook.bin"] = (
        _record(131)
        + _record(153, struct.pack("<III", 0, 0, 0))
        + _record(143)
        + b"".join(
            _record(156, struct.pack("<II", sheet.hidden, n) + _wide(f"rId{n}") + _wide(sheet.name))
            for n, sheet in enumerate(sheets, 1)
        )
        + _record(144)
        + _record(132)
    )
    package |= _relations(sheets, "xl/_rels/workbook.bin.rels", "bin")
    count = struct.pack("<II", len(strings), len(strings))
    package["xl/sharedStrings.bin"] = (
        _record(159, count) + b"".join(_record(19, b"\0" + _wide(text)) for text in strings) + _record(160)
    )
    package["xl/styles.bin"] = (
        _record(278)
        + _record(615, struct.pack("<I", len(codes)))
        + b"".join(_record(44, struct.pack("<H", 164 + n) + _wide(code)) for n, code in enumerate(codes))
        + _record(616)
        + _record(626, struct.pack("<I", 1))
        + _record(47, struct.pack("<HH", 0xFFFF, 9) + bytes(12))
        + _record(627)
        + _record(617, struct.pack("<I", len(codes) + 1))
        + b"".join(_record(47, struct.pack("<HH", 0, n) + bytes(12)) for n in (0, *range(164, 164 + len(codes))))
        + _record(618)
        + _record(279)
    )
    return archive(package)


def _xlsb_cell(column: int, cell: Value | Styled, codes: list[str], strings: dict[str, int]) -> bytes:
    style = codes.index(cell.code) + 1 if isinstance(cell, Styled) else 0
    head = struct.pack("<II", column, style)
    if isinstance(cell, bool):
        return _record(4, head + bytes([cell]))
    if isinstance(cell, str):
        if cell.startswith("#"):
            return _record(3, head + bytes([_ERROR_CODES[cell]]))
        return _record(7, head + struct.pack("<I", strings.setdefault(cell, len(strings))))
    number = cell.number if isinstance(cell, Styled) else float(cell or 0)
    if number == int(number) and abs(number) < 2**29:
        return _record(2, head + struct.pack("<i", int(number) << 2 | 2))  # packed, as Excel does where it can
    return _record(5, head + struct.pack("<d", number))


# ---------------------------------------------------------------- XLS


def _biff(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


def xls(*sheets: Made, locked: bool = False) -> bytes:
    """A BIFF8 stream as Excel 97 writes it, without the OLE file around it."""
    codes = _codes(sheets)
    bodies = []
    for sheet in sheets:
        body = _biff(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 1996, 0, 0))
        for index, filled in _cells(sheet):
            body += b"".join(_xls_cell(index, column, cell, codes) for column, cell in filled)
        if sheet.merges:
            ranges = b"".join(struct.pack("<4H", *merge) for merge in sheet.merges)
            body += _biff(0x00E5, struct.pack("<H", len(sheet.merges)) + ranges)
        bodies.append(body + _biff(0x000A))
    head = _biff(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 1996, 0, 0))
    if locked:
        head += _biff(0x002F, struct.pack("<HHH", 1, 1, 1) + bytes(48))
    head += _biff(0x0042, struct.pack("<H", 1200))
    font = struct.pack("<HHHHHBBBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0, 1, 0) + b"A"
    head += _biff(0x0031, font) * 4
    for number, code in enumerate(codes):
        head += _biff(0x041E, struct.pack("<HHB", 164 + number, len(code), 1) + code.encode("utf-16-le"))
    for number in (0, *range(164, 164 + len(codes))):
        head += _biff(0x00E0, struct.pack("<HHH", 0, number, 1) + bytes(14))
    tabs = [_biff(0x0085, bytes(4) + _tab(sheet)) for sheet in sheets]
    offset = len(head) + sum(map(len, tabs)) + 4
    for sheet, body in zip(sheets, bodies, strict=True):
        head += _biff(0x0085, struct.pack("<I", offset) + _tab(sheet))
        offset += len(body)
    return head + _biff(0x000A) + b"".join(bodies)


def _tab(sheet: Made) -> bytes:
    return struct.pack("<BBBB", sheet.hidden, 0, len(sheet.name), 1) + sheet.name.encode("utf-16-le")


def _xls_cell(row: int, column: int, cell: Value | Styled, codes: list[str]) -> bytes:
    head = struct.pack("<HHH", row, column, codes.index(cell.code) + 1 if isinstance(cell, Styled) else 0)
    if isinstance(cell, bool):
        return _biff(0x0205, head + bytes([cell, 0]))
    if isinstance(cell, str):
        if cell.startswith("#"):
            return _biff(0x0205, head + bytes([_ERROR_CODES[cell], 1]))
        return _biff(0x0204, head + struct.pack("<HB", len(cell), 1) + cell.encode("utf-16-le"))
    return _biff(0x0203, head + struct.pack("<d", cell.number if isinstance(cell, Styled) else float(cell or 0)))


# ---------------------------------------------------------------- ODS

_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text", "style")
)


def ods(*sheets: Made, locked: bool = False) -> bytes:
    tables = "".join(_ods_table(sheet) for sheet in sheets)
    properties = '<style:table-properties table:display="false"/>'
    hidden = f'<style:style style:name="off" style:family="table">{properties}</style:style>'
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    return raw_ods(
        f"<office:document-content {_NAMES}><office:automatic-styles>{hidden}</office:automatic-styles>{body}"
        "</office:document-content>",
        locked=locked,
    )


def raw_ods(content: str, *, locked: bool = False) -> bytes:
    lock = "<m:encryption-data/>" if locked else ""
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": content,
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<m:file-entry m:full-path="content.xml">{lock}</m:file-entry></m:manifest>',
        }
    )


def _ods_table(sheet: Made) -> str:
    spans = {(r, c): (s - r + 1, d - c + 1) for r, s, c, d in sheet.merges}
    rows = "".join(
        "<table:table-row>"
        + "".join(_ods_cell(cell, spans.get((index, column))) for column, cell in enumerate(row or (None,)))
        + '<table:table-cell table:number-columns-repeated="1000"/></table:table-row>'
        for index, row in enumerate(sheet.rows)
    )
    style = ' table:style-name="off"' if sheet.hidden else ""
    blank = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
    return f"<table:table table:name={quoteattr(sheet.name)}{style}>{rows}{blank}</table:table>"


def _ods_cell(cell: Value | Styled, span: tuple[int, int] | None) -> str:
    spanned = f' table:number-rows-spanned="{span[0]}" table:number-columns-spanned="{span[1]}"' if span else ""
    if cell is None:
        return "<table:table-cell/>"
    kind, value, shown = "string", "", str(cell)
    if isinstance(cell, bool):
        kind, shown = "boolean", str(cell).upper()
    elif isinstance(cell, Styled):
        kind, shown = cell.kind, cell.shown
        moment = EPOCH + datetime.timedelta(days=cell.number)
        value = f' office:date-value="{moment.isoformat()}"' if kind == "date" else f' office:value="{cell.number}"'
    elif not isinstance(cell, str):
        kind, value = "float", f' office:value="{cell}"'
    paragraph = f"<text:p>{escape(shown)}</text:p>"
    return f'<table:table-cell office:value-type="{kind}"{value}{spanned}>{paragraph}</table:table-cell>'
