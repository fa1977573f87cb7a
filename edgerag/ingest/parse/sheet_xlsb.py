"""XLSB, the binary twin of XLSX ([MS-XLSB]): the same package, its parts a sequence of records."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.number_format import BUILT_IN, GENERAL, shown
from edgerag.ingest.parse.sheet import Budget, Merge, Package, Row, Sheet, Stream, shown_text, spread
from edgerag.ingest.parse.sheet_xlsx import main_part, relations
from edgerag.ingest.parse.source import clean_text

# Record numbers, [MS-XLSB] 2.3.
_ROW, _RK, _ERROR, _BOOLEAN, _REAL, _STRING, _SHARED = 0, 2, 3, 4, 5, 6, 7
_FORMULA_STRING, _FORMULA_NUMBER, _FORMULA_BOOLEAN, _FORMULA_ERROR, _RICH = 8, 9, 10, 11, 62
_STRING_ITEM, _FORMAT, _STYLE, _COLUMNS, _WORKBOOK, _SHEET, _MERGE = 19, 44, 47, 60, 153, 156, 176
_CELL_STYLES_BEGIN, _CELL_STYLES_END = 617, 618

_ERRORS = {0: "#NULL!", 7: "#DIV/0!", 15: "#VALUE!", 23: "#REF!", 29: "#NAME?", 36: "#NUM!", 42: "#N/A"}
_HEADER_BYTES = 8  # of a cell: its column, and its style in three bytes
# The longest record is a string of 32,767 characters with its formatting.
_MOST_RECORD_BYTES = 16_000_000
_LAST_COLUMN = 16_384
# Flags of BrtRowHdr and BrtColInfo: hidden by the user (fDyZero, fHidden), and of a height of its own (fUnsynced).
_ROW_BYTES, _COLUMNS_BYTES = 12, 18
_HIDDEN_ROW, _OWN_HEIGHT, _HIDDEN_COLUMNS = 0x10, 0x20, 0x01
_CHUNK_BYTES = 1 << 20


def read(package: Package, budget: Budget) -> Iterator[Sheet]:
    """The worksheets in the order of their tabs, empty ones too. Raises struct.error or IndexError when damaged."""
    main = main_part(package)
    from_1904 = False
    sheets: list[tuple[str, bool, str]] = []  # name, hidden, relation
    for kind, body in _records(package.open(main)):
        if kind == _WORKBOOK:
            from_1904 = bool(body[0] & 1)
        elif kind == _SHEET:
            relation, position = _text(body, 8)
            name, _ = _text(body, position)
            sheets.append((shown_text(clean_text(name)), struct.unpack_from("<I", body)[0] != 0, relation))
    targets = relations(package, main)
    parts = {kind: part for kind, part in targets.values() if package.has(part)}
    strings: list[str] = []
    if "sharedStrings" in parts:
        for kind, body in _records(package.open(parts["sharedStrings"])):
            if kind == _STRING_ITEM:
                strings.append(budget.spend(_cell_text(body, 1)))
    formats = _formats(package.open(parts["styles"])) if "styles" in parts else []
    for name, hidden, relation in sheets:
        kind_name, part = targets.get(relation, ("", ""))
        if kind_name == "worksheet":
            values = _Values(strings, formats, from_1904=from_1904)
            yield _sheet(package.open(part), Sheet(name, hidden), values, budget)


def _records(stream: Stream) -> Iterator[tuple[int, bytes]]:
    with stream:
        data, position = stream.read(_CHUNK_BYTES), 0
        while True:
            if len(data) - position < _CHUNK_BYTES // 2:
                more = stream.read(_CHUNK_BYTES)
                data, position = data[position:] + more, 0
                if not data:
                    return
            kind, position = _variable(data, position, 2)
            size, position = _variable(data, position, 4)
            if size > _MOST_RECORD_BYTES:
                raise DocumentDamaged("A record of the spreadsheet is longer than any can be.")
            while len(data) - position < size:
                more = stream.read(_CHUNK_BYTES)
                if not more:
                    raise DocumentDamaged("The spreadsheet ends in the middle of a record.")
                data, position = data[position:] + more, 0
            yield kind, data[position : position + size]
            position += size


def _variable(data: bytes, position: int, most_bytes: int) -> tuple[int, int]:
    value = 0
    for shift in range(most_bytes):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            break
    return value, position


def _text(body: bytes, position: int) -> tuple[str, int]:
    """A string with its length before it, and where it ends; no string has the length -1."""
    length = struct.unpack_from("<I", body, position)[0]
    position += 4
    if length == 0xFFFF_FFFF:
        return "", position
    end = position + 2 * length
    if end > len(body):
        raise DocumentDamaged("A text of the spreadsheet is cut short.")
    return body[position:end].decode("utf-16-le", "replace"), end


def _cell_text(body: bytes, position: int) -> str:
    return shown_text(clean_text(_text(body, position)[0]))


def _formats(stream: Stream) -> list[str]:
    codes = dict(BUILT_IN)
    formats: list[str] = []
    of_cells = False
    for kind, body in _records(stream):
        if kind == _FORMAT:
            codes[struct.unpack_from("<H", body)[0]] = _text(body, 2)[0]
        elif kind in (_CELL_STYLES_BEGIN, _CELL_STYLES_END):
            of_cells = kind == _CELL_STYLES_BEGIN
        elif kind == _STYLE and of_cells:
            formats.append(codes.get(struct.unpack_from("<H", body, 2)[0], GENERAL))
    return formats


class _Values:
    """What the record of a cell shows."""

    def __init__(self, strings: list[str], formats: list[str], *, from_1904: bool) -> None:
        self._strings = strings
        self._formats = formats
        self._from_1904 = from_1904

    def text(self, kind: int, body: bytes) -> str:
        """ "" for a record that is no cell, or a blank one."""
        start = _HEADER_BYTES
        if kind in (_REAL, _FORMULA_NUMBER):
            return self._number(struct.unpack_from("<d", body, start)[0], body)
        if kind == _RK:
            return self._number(_rk_number(struct.unpack_from("<i", body, start)[0]), body)
        if kind == _SHARED:
            index: int = struct.unpack_from("<I", body, start)[0]
            return self._strings[index]
        if kind in (_STRING, _FORMULA_STRING):
            return _cell_text(body, start)
        if kind == _RICH:
            return _cell_text(body, start + 1)
        if kind in (_BOOLEAN, _FORMULA_BOOLEAN):
            return "TRUE" if body[start] else "FALSE"
        if kind in (_ERROR, _FORMULA_ERROR):
            return _ERRORS.get(body[start], "#ERROR")
        return ""

    def _number(self, value: float, body: bytes) -> str:
        style = int.from_bytes(body[4:7], "little")
        code = self._formats[style] if style < len(self._formats) else GENERAL
        return shown(value, code, from_1904=self._from_1904)


def _rk_number(packed: int) -> float:
    """[MS-XLSB] 2.5.123: a whole number or the upper half of a double, perhaps to be divided by 100."""
    value: float = packed >> 2 if packed & 2 else struct.unpack("<d", struct.pack("<Ii", 0, packed & ~3))[0]
    return value / 100 if packed & 1 else value


def _is_hidden_row(body: bytes) -> bool:
    """By its flag, or by a height of nothing that somebody gave it."""
    if len(body) < _ROW_BYTES:
        return False
    height, _, flags = struct.unpack_from("<HBB", body, 8)
    return bool(flags & _HIDDEN_ROW) or (not height and bool(flags & _OWN_HEIGHT))


def _hidden_columns(body: bytes) -> range:
    """Those of a record that says how columns look, counted from 0."""
    if len(body) < _COLUMNS_BYTES:  # of a writer with a layout of its own
        return range(0)
    first, last, width, _, flags = struct.unpack_from("<4IH", body)
    hidden = flags & _HIDDEN_COLUMNS or not width
    return range(first, min(last + 1, _LAST_COLUMN)) if hidden else range(0)


def _sheet(stream: Stream, sheet: Sheet, values: _Values, budget: Budget) -> Sheet:
    merges: list[Merge] = []
    row = Row(0, {})
    for kind, body in _records(stream):
        if kind == _ROW:
            number = struct.unpack_from("<I", body)[0] + 1
            if number <= row.number:
                raise DocumentDamaged(f"The rows of the sheet {sheet.name!r} are out of order.")
            row = Row(number, {}, _is_hidden_row(body))
        elif kind == _COLUMNS:
            sheet.hidden_columns.update(_hidden_columns(body))
        elif kind == _MERGE:
            first, last, left, right = struct.unpack_from("<4I", body)
            merges.append(Merge(first + 1, last + 1, left, right))
        elif text := values.text(kind, body):
            if not row.cells:
                sheet.rows.append(row)
            row.cells[struct.unpack_from("<I", body)[0]] = budget.spend(text)
    spread(sheet, merges, budget)
    return sheet
