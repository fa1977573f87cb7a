"""XLSX and XLSM, read from their XML (ECMA-376 part 1, 18): values as they are shown, sheet by sheet."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.number_format import GENERAL, shown
from edgerag.ingest.parse.sheet import Budget, Merge, Package, Row, Sheet, forget, local_name, shown_text, spread
from edgerag.ingest.parse.sheet_styles import CellStyle, read_styles
from edgerag.ingest.parse.source import clean_text

_RELATION_ID = re.compile(r"\{[^}]*/relationships\}id")
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
# Control characters, and what looks like one of these escapes, are written as _x000D_ (22.9.2.19).
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_TRUE = ("1", "true")
_SHEET_TAGS = ("row", "col", "mergeCell", "conditionalFormatting", "tablePart")
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
# The same numbers and dates come again and again; so many are not formatted twice.
_REMEMBERED_NUMBERS = 50_000
_LETTERS = {letter: value for value, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1)}


def read(package: Package, budget: Budget) -> Iterator[Sheet]:
    """The worksheets in the order of their tabs, empty ones too."""
    main = main_part(package)
    from_1904 = False
    sheets: list[tuple[str, bool, str]] = []  # name, hidden, relation
    for _, element in package.elements(main, "{*}workbookPr", "{*}sheet"):
        if local_name(element) == "workbookPr":
            from_1904 = element.get("date1904") in ("1", "true")
        else:
            relation = next((value for key, value in element.attrib.items() if _RELATION_ID.fullmatch(key)), "")
            hidden = element.get("state", "visible") != "visible"
            sheets.append((shown_text(clean_text(element.get("name", ""))), hidden, relation))
    targets = relations(package, main)
    parts = {kind: part for kind, part in targets.values() if package.has(part)}
    strings = _strings(package, parts.get("sharedStrings", ""), budget)
    formats = read_styles(package, parts.get("styles", ""))
    cells = _Cells(strings, formats, from_1904=from_1904, budget=budget)
    for name, hidden, relation in sheets:
        kind, part = targets.get(relation, ("", ""))
        if kind == "worksheet":
            yield _sheet(package, part, Sheet(name, hidden), cells)


def main_part(package: Package) -> str:
    """The workbook, wherever the package keeps it."""
    usual = [name for name in ("xl/workbook.xml", "xl/workbook.bin") if package.has(name)]
    named = [part for kind, part in relations(package, "").values() if kind == "officeDocument"]
    return (usual or named or ["xl/workbook.xml"])[0]


def relations(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """Relation id -> its kind and the part it names, both from the view of ``part``."""
    folder, name = posixpath.split(part)
    file = posixpath.join(folder, "_rels", name + ".rels")
    found: dict[str, tuple[str, str]] = {}
    if package.has(file):
        for _, element in package.elements(file, "{*}Relationship"):
            target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", "")))
            found[element.get("Id", "")] = (element.get("Type", "").rpartition("/")[2], target.lstrip("/"))
    return found


def _strings(package: Package, part: str, budget: Budget) -> list[str]:
    if not part:
        return []
    strings = []
    for _, element in package.elements(part, "{*}si"):
        strings.append(budget.spend(_rich_text(element)))
        forget(element)
    return strings


def _rich_text(element: Any) -> str:
    """The text of a string item or an inline string, without its readings (furigana)."""
    pieces = []
    for child in element:
        tag = local_name(child)
        if tag == "t":
            pieces.append(child.text or "")
        elif tag == "r":
            pieces.extend(part.text or "" for part in child if local_name(part) == "t")
    return _cell_text("".join(pieces))


def _cell_text(text: str) -> str:
    if "_x" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return shown_text(clean_text(text))


class _Cells:
    """What a cell shows."""

    def __init__(self, strings: list[str], formats: list[CellStyle], *, from_1904: bool, budget: Budget) -> None:
        self._strings = strings
        self._formats = formats
        self._from_1904 = from_1904
        self.budget = budget
        self._numbers: dict[tuple[str, str | None], str] = {}
        self._kinds: dict[str, Callable[[str], str]] = {
            "s": self._shared,
            "str": _cell_text,
            "e": str.strip,
            "b": lambda value: "TRUE" if value.strip() in ("1", "true") else "FALSE",
            "d": lambda value: value.strip().removesuffix("Z").removesuffix("T00:00:00").replace("T", " "),
        }

    def text(self, cell: Any, namespace: str) -> str | None:
        """None for a formula without a stored result, "" for a blank cell."""
        value, formula = "", False
        for child in cell:
            tag = child.tag
            if tag == namespace + "v":
                value = child.text or ""
            elif tag == namespace + "is":
                return _rich_text(child)
            elif tag == namespace + "f":
                formula = True
        kind = cell.get("t", "n")
        if not value:
            return None if formula and kind != "str" else ""
        return self._kinds[kind](value) if kind in self._kinds else self._numeric(value, cell.get("s"))

    def is_blended(self, cell: Any) -> bool:
        """Whether the text of a cell has the colour of what it stands on."""
        index = _number(cell.get("s"))
        return index < len(self._formats) and self._formats[index].blended

    def _shared(self, value: str) -> str:
        index = _number(value)
        if not 0 <= index < len(self._strings):
            raise DocumentDamaged("A cell of the spreadsheet names a text that is not there.")
        return self._strings[index]

    def _numeric(self, value: str, style: str | None) -> str:
        key = (value, style)
        known = self._numbers.get(key)
        if known is None:
            if len(self._numbers) >= _REMEMBERED_NUMBERS:
                self._numbers.clear()
            known = self._numbers[key] = self._formatted(value, style)
        return known

    def _formatted(self, value: str, style: str | None) -> str:
        try:
            number = float(value)
        except ValueError:
            return _cell_text(value)  # no number, whatever the file says: it is shown as it is
        index = _number(style)
        code = self._formats[index].code if index < len(self._formats) else GENERAL
        return shown(number, code, from_1904=self._from_1904)


def _sheet(package: Package, part: str, sheet: Sheet, cells: _Cells) -> Sheet:
    merges: list[Merge] = []
    number = 0
    for _, element in package.elements(part, *(f"{{*}}{tag}" for tag in _SHEET_TAGS)):
        match local_name(element):
            case "mergeCell":
                merges.extend(_merge(element.get("ref", "")))
                continue
            case "col":
                if element.get("hidden") in _TRUE or element.get("width") == "0":
                    first, last = _number(element.get("min")), min(_number(element.get("max")), _LAST_COLUMN)
                    sheet.hidden_columns.update(range(max(first, 1) - 1, last))
                continue
            case "conditionalFormatting" | "tablePart":  # the ground may be of another colour
                for row in sheet.rows:
                    row.blended = frozenset()
                continue
        number = _number(element.get("r")) if element.get("r") else number + 1
        before = sheet.rows[-1].number if sheet.rows else 0
        if not before < number <= _LAST_ROW:
            raise DocumentDamaged(f"The rows of the sheet {sheet.name!r} are out of order.")
        hidden = element.get("hidden") in _TRUE or element.get("ht") == "0"
        row = _row(element, Row(number, {}, hidden), sheet, cells)
        if row.cells:
            sheet.rows.append(row)
        forget(element)
    spread(sheet, merges, cells.budget)
    return sheet


def _row(element: Any, row: Row, sheet: Sheet, cells: _Cells) -> Row:
    namespace = element.tag.removesuffix("row")
    column = -1
    blended: set[int] = set()
    for cell in element:
        if cell.tag != namespace + "c":
            continue
        column = _column(cell.get("r"), column + 1)
        text = cells.text(cell, namespace)
        if text is None:
            sheet.uncalculated += 1
        elif text and column < _LAST_COLUMN:
            row.cells[column] = cells.budget.spend(text)
            if cells.is_blended(cell):
                blended.add(column)
    row.blended = frozenset(blended)
    return row


def _column(reference: str | None, following: int) -> int:
    """The column of a cell, from 0; the next one where the file does not say."""
    match = _REFERENCE.fullmatch(reference or "")
    return following if match is None else _column_number(match[1])


@functools.lru_cache(maxsize=1024)
def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + _LETTERS[letter]
    return number - 1


def _merge(reference: str) -> Iterator[Merge]:
    first, _, last = reference.partition(":")
    start, end = _REFERENCE.fullmatch(first), _REFERENCE.fullmatch(last)
    if start is not None and end is not None:
        yield Merge(int(start[2]), int(end[2]), _column_number(start[1]), _column_number(end[1]))


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isdecimal() else 0
