"""What a spreadsheet program does not show of a workbook, in sentences: sheets, rows, columns, blended text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgerag.ingest.parse.sheet import Sheet, column_letters

_MOST_NAMED = 5  # sheets in a warning; rows, columns and cells of a sheet
_EXCERPT = 60  # characters


class HiddenParts:
    """Collects them sheet by sheet. Of a hidden sheet nothing more is said."""

    def __init__(self) -> None:
        self._sheets: list[str] = []
        self._rows: list[str] = []
        self._columns: list[str] = []
        self._cells: list[str] = []
        self._excerpt = ""

    def add(self, sheet: Sheet) -> None:
        """A sheet with at least one row."""
        name = sheet.name
        if sheet.hidden:
            self._sheets.append(name)
            return
        if rows := [row.number for row in sheet.rows if row.hidden]:
            self._rows.append(f"{name} ({_named([str(number) for number in rows])})")
        filled = {column for row in sheet.rows for column in row.cells} if sheet.hidden_columns else set()
        if columns := sorted(sheet.hidden_columns & filled):
            self._columns.append(f"{name} ({_named([column_letters(column) for column in columns])})")
        cells = [
            (f"{column_letters(column)}{row.number}", row.cells[column])
            for row in sheet.rows
            for column in sorted(row.blended & row.cells.keys())
            if any(map(str.isalnum, row.cells[column]))
        ]
        if cells:
            self._cells.append(f"{name} ({_named([place for place, _ in cells])})")
            self._excerpt = self._excerpt or cells[0][1][:_EXCERPT]

    def warnings(self) -> Iterator[str]:
        if self._sheets:
            yield f"Hidden sheets were read: {', '.join(self._sheets)}."
        if self._rows:
            yield f"Hidden rows were read: {_named(self._rows)}."
        if self._columns:
            yield f"Hidden columns were read: {_named(self._columns)}."
        if self._cells:
            yield f'Hidden text, in the colour of its cell, was read: {_named(self._cells)}: "{self._excerpt}".'


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
