"""ODS, read from its XML (OpenDocument 1.3 part 3, 9): each cell holds the text that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from edgerag.errors import DocumentEncrypted
from edgerag.ingest.parse.number_format import plain_number
from edgerag.ingest.parse.sheet import Budget, Merge, Package, Row, Sheet, forget, local_name, shown_text, spread
from edgerag.ingest.parse.source import clean_text

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
# Inside a paragraph, but not of it: notes, and readings above the line.
_LEFT_OUT = frozenset({_OFFICE + "annotation", _TEXT + "note", _TEXT + "ruby-text"})
_BLANKS = {_TEXT + "s": " ", _TEXT + "tab": " ", _TEXT + "line-break": " "}
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?")
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384


def read(package: Package, budget: Budget) -> Iterator[Sheet]:
    """The sheets in the order of their tabs, empty ones too. Raises DocumentEncrypted."""
    if package.has("META-INF/manifest.xml"):
        for _ in package.elements("META-INF/manifest.xml", "{*}encryption-data"):
            raise DocumentEncrypted(
                "It is a spreadsheet protected by a password.", remedy="Save it without the password."
            )
    hidden_styles: set[str] = set()
    sheet: Sheet | None = None
    merges: list[Merge] = []
    number = 1
    depth = 0  # tables in tables are drawings' and scenarios'
    for event, element in package.elements(
        "content.xml", _STYLE + "style", _TABLE + "table", _TABLE + "table-row", starts=True
    ):
        if element.tag == _TABLE + "table":
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1:
                name = shown_text(clean_text(element.get(_TABLE + "name", "")))
                sheet = Sheet(name, element.get(_TABLE + "style-name", "") in hidden_styles)
                merges, number = [], 1
            elif event == "end" and depth == 0 and sheet is not None:
                spread(sheet, merges, budget)
                yield sheet
                sheet = None
                forget(element)
        elif event == "start":
            continue
        elif element.tag == _STYLE + "style":
            properties = element.find(_STYLE + "table-properties")
            if properties is not None and properties.get(_TABLE + "display") == "false":
                hidden_styles.add(element.get(_STYLE + "name", ""))
        elif sheet is not None and depth == 1:
            number = _row(element, number, sheet, merges, budget)
            forget(element)


def _row(element: Any, number: int, sheet: Sheet, merges: list[Merge], budget: Budget) -> int:
    """Adds a row, as often as it stands there; the number of the next one."""
    cells: dict[int, str] = {}
    column = 0
    for cell in element:
        if cell.tag not in (_TABLE + "table-cell", _TABLE + "covered-table-cell"):
            continue
        columns = min(_count(cell, "number-columns-repeated"), _LAST_COLUMN - column)
        # What lies under a merged cell is kept by the program but not shown.
        text = _cell_text(cell) if cell.tag == _TABLE + "table-cell" else ""
        if text:
            cells.update((column + offset, budget.spend(text)) for offset in range(columns))
            height, width = _count(cell, "number-rows-spanned"), _count(cell, "number-columns-spanned")
            if height > 1:
                merges.append(Merge(number, number + height - 1, column, column + width - 1))
        column += columns
    repeated = min(_count(element, "number-rows-repeated"), max(0, _LAST_ROW + 1 - number))
    if cells:
        for offset in range(repeated):
            sheet.rows.append(
                Row(number + offset, {at: budget.spend(text) for at, text in cells.items()} if offset else cells)
            )
    return number + repeated


def _cell_text(cell: Any) -> str:
    kind = cell.get(_OFFICE + "value-type", "")
    date = cell.get(_OFFICE + "date-value", "") if kind == "date" else ""
    if _ISO_DATE.fullmatch(date):
        return date.removesuffix("T00:00:00").replace("T", " ")
    paragraphs = [_paragraph(child) for child in cell if child.tag == _TEXT + "p"]
    text = shown_text(clean_text(" ".join(paragraphs)))
    if text or kind != "float":
        return text
    try:
        return plain_number(float(cell.get(_OFFICE + "value", "")))
    except (ValueError, OverflowError):
        return ""


def _paragraph(element: Any) -> str:
    pieces: list[str] = []
    _collect(element, pieces)
    return "".join(pieces)


def _collect(element: Any, pieces: list[str]) -> None:
    pieces.append(element.text or "")
    for child in element:
        if local_name(child) and child.tag not in _LEFT_OUT:
            pieces.append(_BLANKS.get(child.tag, ""))
            _collect(child, pieces)
        pieces.append(child.tail or "")


def _count(element: Any, name: str) -> int:
    value = element.get(_TABLE + name, "1")
    return max(1, int(value)) if value.isdecimal() and len(value) < 10 else 1
