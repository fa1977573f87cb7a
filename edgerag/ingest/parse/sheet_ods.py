"""ODS, read from its XML (OpenDocument 1.3 part 3, 9): each cell holds the text that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from edgerag.errors import DocumentEncrypted
from edgerag.ingest.parse.colour import WHITE, alike, hex_colour
from edgerag.ingest.parse.number_format import plain_number
from edgerag.ingest.parse.sheet import Budget, Merge, Package, Row, Sheet, forget, local_name, shown_text, spread
from edgerag.ingest.parse.source import clean_text

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_UNSEEN = ("collapse", "filter")
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
    styles = _cell_styles(package)
    columns = _Columns()
    sheet: Sheet | None = None
    merges: list[Merge] = []
    number = 1
    depth = 0  # tables in tables are drawings' and scenarios'
    for event, element in package.elements(
        *("content.xml", _STYLE + "style", _TABLE + "table", _TABLE + "table-row", _TABLE + "table-column"), starts=True
    ):
        if element.tag == _TABLE + "table":
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1:
                name = shown_text(clean_text(element.get(_TABLE + "name", "")))
                sheet = Sheet(name, element.get(_TABLE + "style-name", "") in hidden_styles)
                merges, number, columns = [], 1, _Columns()
            elif event == "end" and depth == 0 and sheet is not None:
                spread(sheet, merges, budget)
                yield sheet
                sheet = None
                forget(element)
        elif event == "start":
            continue
        elif element.tag == _TABLE + "table-column":
            if sheet is not None and depth == 1:
                columns.add(element, sheet)
        elif element.tag == _STYLE + "style":
            styles.add(element)
            properties = element.find(_STYLE + "table-properties")
            if properties is not None and properties.get(_TABLE + "display") == "false":
                hidden_styles.add(element.get(_STYLE + "name", ""))
        elif sheet is not None and depth == 1:
            number = _row(element, number, sheet, merges, budget, _Blends(styles, columns, element))
            forget(element)


class _CellStyles:
    """The colours of the styles of cells."""

    def __init__(self) -> None:
        self._styles: dict[str, tuple[str, str, str]] = {}  # name -> that it is based on, colour, ground
        self._blended: dict[str, bool] = {}

    def add(self, style: Any) -> None:
        if style.get(_STYLE + "family") != "table-cell":
            return
        text, cell = style.find(_STYLE + "text-properties"), style.find(_STYLE + "table-cell-properties")
        automatic = text is not None and text.get(_STYLE + "use-window-font-color") == "true"
        colour = "automatic" if automatic else "" if text is None else text.get(_FO + "color", "")
        ground = "" if cell is None else cell.get(_FO + "background-color", "")
        name = style.get(_STYLE + "name", "")
        self._styles[name] = (style.get(_STYLE + "parent-style-name", ""), colour, ground)
        self._blended.clear()

    def is_blended(self, name: str) -> bool:
        """Whether a text in this style has the colour of what it stands on."""
        if name not in self._blended:
            colour = ground = ""
            seen: set[str] = set()
            current = name
            while current in self._styles and current not in seen:
                seen.add(current)
                current, own_colour, own_ground = self._styles[current]
                colour, ground = colour or own_colour, ground or own_ground
            known = WHITE if ground in ("", "transparent") else hex_colour(ground)
            text = hex_colour(colour)
            self._blended[name] = text is not None and known is not None and alike(text, known)
        return self._blended[name]


def _cell_styles(package: Package) -> _CellStyles:
    """Those that the user named; those that the program makes come with the cells."""
    styles = _CellStyles()
    if package.has("styles.xml"):
        for _, element in package.elements("styles.xml", _STYLE + "style"):
            styles.add(element)
    return styles


class _Columns:
    """The styles of columns, for cells that name none."""

    def __init__(self) -> None:
        self._count = 0
        self._styles: list[tuple[int, str]] = []  # up to which column, and which

    def add(self, element: Any, sheet: Sheet) -> None:
        count = min(_count(element, "number-columns-repeated"), _LAST_COLUMN - self._count)
        if element.get(_TABLE + "visibility") in _UNSEEN:
            sheet.hidden_columns.update(range(self._count, self._count + count))
        self._count += count
        self._styles.append((self._count, element.get(_TABLE + "default-cell-style-name", "")))

    def style(self, column: int) -> str:
        return next((style for end, style in self._styles if column < end), "")


class _Blends:
    """Which cells of a row have their text in the colour of what it stands on."""

    def __init__(self, styles: _CellStyles, columns: _Columns, row: Any) -> None:
        self._styles = styles
        self._columns = columns
        self._row_style = row.get(_TABLE + "default-cell-style-name", "")

    def has(self, cell: Any, column: int) -> bool:
        name = cell.get(_TABLE + "style-name") or self._row_style or self._columns.style(column)
        return self._styles.is_blended(name)


def _row(element: Any, number: int, sheet: Sheet, merges: list[Merge], budget: Budget, blends: _Blends) -> int:
    """Adds a row, as often as it stands there; the number of the next one."""
    cells: dict[int, str] = {}
    blended: set[int] = set()
    hidden = element.get(_TABLE + "visibility") in _UNSEEN
    column = 0
    for cell in element:
        if cell.tag not in (_TABLE + "table-cell", _TABLE + "covered-table-cell"):
            continue
        columns = min(_count(cell, "number-columns-repeated"), _LAST_COLUMN - column)
        # What lies under a merged cell is kept by the program but not shown.
        text = _cell_text(cell) if cell.tag == _TABLE + "table-cell" else ""
        if text:
            cells.update((column + offset, budget.spend(text)) for offset in range(columns))
            if blends.has(cell, column):
                blended.update(range(column, column + columns))
            height, width = _count(cell, "number-rows-spanned"), _count(cell, "number-columns-spanned")
            if height > 1:
                merges.append(Merge(number, number + height - 1, column, column + width - 1))
        column += columns
    repeated = min(_count(element, "number-rows-repeated"), max(0, _LAST_ROW + 1 - number))
    if cells:
        for offset in range(repeated):
            texts = {at: budget.spend(text) for at, text in cells.items()} if offset else cells
            sheet.rows.append(Row(number + offset, texts, hidden, frozenset(blended)))
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
