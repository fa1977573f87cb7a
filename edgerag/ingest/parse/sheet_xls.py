"""XLS (Excel 97-2003 and some before), by xlrd, with the number formats applied to its values."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence

import xlrd

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.colour import WHITE, alike
from edgerag.ingest.parse.locked_office import unlocked
from edgerag.ingest.parse.number_format import GENERAL, shown
from edgerag.ingest.parse.sheet import Budget, Merge, Row, Sheet, shown_text, spread
from edgerag.ingest.parse.source import clean_text

_NO_FILL, _SOLID = 0, 1
# What xlrd raises for files that are cut short or contradict themselves.
_FAILURES = (
    xlrd.XLRDError,
    xlrd.compdoc.CompDocError,
    struct.error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def read(data: bytes, budget: Budget, passwords: Sequence[str] = ()) -> Iterator[Sheet]:
    """The worksheets in the order of their tabs, empty ones too. Raises DocumentEncrypted or DocumentDamaged."""
    try:
        with _opened(data, passwords) as book:
            for index in range(book.nsheets):
                yield _sheet(book, index, budget)
                book.unload_sheet(index)
    except _FAILURES as error:
        raise DocumentDamaged(
            f"The XLS is damaged: {str(error)[:200] or type(error).__name__}.",
            remedy="Open it in a spreadsheet program and save it again.",
        ) from error


def _opened(data: bytes, passwords: Sequence[str]) -> xlrd.Book:
    try:
        return _workbook(data)
    except xlrd.XLRDError as error:
        if "encrypted" not in str(error):
            raise
    return _workbook(unlocked(data, passwords, what="The Excel workbook"))


def _workbook(data: bytes) -> xlrd.Book:
    # What it has to say about a file goes nowhere.
    return xlrd.open_workbook(
        file_contents=data, formatting_info=True, on_demand=True, ragged_rows=True, logfile=io.StringIO()
    )


def _sheet(book: xlrd.Book, index: int, budget: Budget) -> Sheet:
    sheet = book.sheet_by_index(index)
    found = Sheet(shown_text(clean_text(sheet.name)), hidden=sheet.visibility != 0)
    found.hidden_columns.update(column for column, info in sheet.colinfo_map.items() if info.hidden or not info.width)
    for row_index in range(sheet.nrows):
        info = sheet.rowinfo_map.get(row_index)
        row = Row(row_index + 1, {}, hidden=info is not None and bool(info.hidden))
        blended: set[int] = set()
        for column, cell in enumerate(sheet.row(row_index)):
            if text := _text(book, cell):
                row.cells[column] = budget.spend(text)
                if _is_blended(book, cell.xf_index):
                    blended.add(column)
        row.blended = frozenset(blended)
        if row.cells:
            found.rows.append(row)
    merges = [Merge(first + 1, last, left, right - 1) for first, last, left, right in sheet.merged_cells]
    spread(found, merges, budget)
    return found


def _is_blended(book: xlrd.Book, index: int | None) -> bool:
    """Whether a cell of this format has its text in the colour of what it stands on."""
    if index is None or not 0 <= index < len(book.xf_list):
        return False
    style = book.xf_list[index]
    colour = book.colour_map.get(book.font_list[style.font_index].colour_index)
    if style.background.fill_pattern == _NO_FILL:
        ground = WHITE
    elif style.background.fill_pattern == _SOLID:
        ground = book.colour_map.get(style.background.pattern_colour_index)
    else:
        return False
    return colour is not None and ground is not None and alike(colour, ground)


def _text(book: xlrd.Book, cell: xlrd.sheet.Cell) -> str:
    if cell.ctype == xlrd.XL_CELL_TEXT:
        return shown_text(clean_text(cell.value))
    if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        known = book.format_map.get(book.xf_list[cell.xf_index].format_key)
        return shown(cell.value, GENERAL if known is None else known.format_str, from_1904=book.datemode == 1)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    return ""
