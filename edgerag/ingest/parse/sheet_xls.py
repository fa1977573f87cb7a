"""XLS (Excel 97-2003 and some before), by xlrd, with the number formats applied to its values."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import xlrd

from edgerag.errors import DocumentDamaged, DocumentEncrypted
from edgerag.ingest.parse.number_format import GENERAL, shown
from edgerag.ingest.parse.sheet import Budget, Merge, Row, Sheet, shown_text, spread
from edgerag.ingest.parse.source import clean_text

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


def read(data: bytes, budget: Budget) -> Iterator[Sheet]:
    """The worksheets in the order of their tabs, empty ones too. Raises DocumentEncrypted or DocumentDamaged."""
    try:
        # What it has to say about a file goes nowhere.
        with xlrd.open_workbook(
            file_contents=data, formatting_info=True, on_demand=True, ragged_rows=True, logfile=io.StringIO()
        ) as book:
            for index in range(book.nsheets):
                yield _sheet(book, index, budget)
                book.unload_sheet(index)
    except _FAILURES as error:
        if "encrypted" in str(error):
            raise DocumentEncrypted(
                "It is an Excel workbook protected by a password.", remedy="Save it without the password."
            ) from error
        raise DocumentDamaged(
            f"The XLS is damaged: {str(error)[:200] or type(error).__name__}.",
            remedy="Open it in a spreadsheet program and save it again.",
        ) from error


def _sheet(book: xlrd.Book, index: int, budget: Budget) -> Sheet:
    sheet = book.sheet_by_index(index)
    found = Sheet(shown_text(clean_text(sheet.name)), hidden=sheet.visibility != 0)
    for row_index in range(sheet.nrows):
        row = Row(row_index + 1, {})
        for column, cell in enumerate(sheet.row(row_index)):
            if text := _text(book, cell):
                row.cells[column] = budget.spend(text)
        if row.cells:
            found.rows.append(row)
    merges = [Merge(first + 1, last, left, right - 1) for first, last, left, right in sheet.merged_cells]
    spread(found, merges, budget)
    return found


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
