"""Rows of sheets laid out as text: a line for each, its cells in the columns of its table.

A sheet is a heading of the first level, its name. The row that names the columns of a table is a heading below it, so
that every chunk of rows carries it; a title that stands alone above the table is a heading between the two. Blank
rows part blocks. Blank columns are left out. What is hidden is written as if it were not, and noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgerag.ingest.parse.hidden_text import merged
from edgerag.ingest.parse.layout import CELL_SEPARATOR, hide, unmarked
from edgerag.ingest.parse.sheet import Row, Sheet
from edgerag.ingest.parse.source import clean_title
from edgerag.ingest.parse.table_header import find_header, header_title, is_caption
from edgerag.types import Heading, Page

# The first rows of a block: among them its header is sought, and they are compared with it.
_EXAMINED_ROWS = 60
# A block with fewer cells than one in so many is a scatter of notes: its blank cells are left out.
_SPARSE = 4
_SMALL_AREA = 10_000


class SheetLayout:
    """The text as it grows, its headings and its rows."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.headings: list[Heading] = []
        self._hidden: list[tuple[int, int]] = []
        self._pieces: list[str] = []
        self._length = 0
        self._page_start = 0
        self._sheets = 0

    def text(self) -> str:
        return "".join(self._pieces)

    def hidden(self) -> tuple[tuple[int, int], ...]:
        """The spans that nobody sees in the spreadsheet program."""
        return merged(self._hidden)

    def add(self, sheet: Sheet) -> None:
        """A sheet with at least one row, below those before it."""
        self._sheets += 1
        name = sheet.name or f"Sheet {self._sheets}"
        if self._pieces:
            self._write("\n")
        self._page_start = self._length  # the name of a sheet belongs to its first row
        self._heading(1, name)
        self._write(name + "\n")
        blocks = [_Block(rows, sheet) for rows in _parted(sheet.rows)]
        table: _Block | None = None  # whose header rules
        captioned = False
        for index, block in enumerate(blocks):
            following = blocks[index + 1] if index + 1 < len(blocks) else None
            self._write("\n")
            if following is not None and block.heads(following):
                block.header = 0
            own_caption = bool(block.header and block.caption)
            title_of_next = (
                following is not None
                and len(block.rows) == 1
                and bool(block.caption)
                and (following.header == 0 or (following.header is not None and not following.caption))
            )
            if own_caption or title_of_next:
                self._heading(2, block.caption)
            elif block.header != 0 and table is not None and not captioned:
                if block.continues(table):
                    block.columns = table.columns
                else:
                    self._heading(1, name)  # the header of the table before does not rule here
                    table = None
            for at, row in enumerate(block.rows):
                if at == block.header:
                    self._heading(3 if captioned or own_caption else 2, header_title(block.cells(row)))
                    table = block
                self._row(row.number, block.line(row))
            captioned = title_of_next

    def _row(self, number: int, line: str) -> None:
        self._write(line + "\n")
        self.pages.append(Page(number, self._page_start, self._length))
        self._page_start = self._length

    def _heading(self, level: int, title: str) -> None:
        self.headings.append(Heading(level, clean_title(title), self._length))

    def _write(self, text: str) -> None:
        text, hidden = unmarked(text)
        self._hidden.extend((self._length + start, self._length + end) for start, end in hidden)
        self._pieces.append(text)
        self._length += len(text)


class _Block:
    """Rows without a blank one between them."""

    def __init__(self, rows: Sequence[Row], sheet: Sheet) -> None:
        self.rows = rows
        self._sheet = sheet
        self.columns = sorted({column for row in rows for column in row.cells})
        area = len(rows) * len(self.columns)
        filled = sum(len(row.cells) for row in rows)
        self._sparse = area > _SMALL_AREA and filled * _SPARSE < area
        self.header = None if self._sparse else find_header([self.cells(row) for row in rows[:_EXAMINED_ROWS]])

    @property
    def caption(self) -> str:
        """The first row if it is nothing but a short text, else ""."""
        texts = list(self.rows[0].cells.values())
        return texts[0] if len(texts) == 1 and is_caption(texts[0]) else ""

    def cells(self, row: Row) -> list[str]:
        return [row.cells.get(column, "") for column in self.columns]

    def line(self, row: Row) -> str:
        """The cells of a row, with marks around what is hidden."""
        texts = row.cells
        if hidden := (row.blended | self._sheet.hidden_columns) & texts.keys():
            texts = {column: hide(text) if column in hidden else text for column, text in texts.items()}
        if self._sparse:
            line = CELL_SEPARATOR.join(text for _, text in sorted(texts.items()))
        else:
            cells = [texts.get(column, "") for column in self.columns]
            while not cells[-1]:
                cells.pop()
            line = CELL_SEPARATOR.join(cells)
        return hide(line) if row.hidden or self._sheet.hidden else line

    def heads(self, following: _Block) -> bool:
        """True for a lone row of labels with its rows below a blank one."""
        if len(self.rows) > 1 or following.header is not None or following._sparse:
            return False
        if not set(following.columns) <= set(self.columns):
            return False
        examined = [self.rows[0], *following.rows[:_EXAMINED_ROWS]]
        return find_header([self.cells(row) for row in examined]) == 0

    def continues(self, table: _Block) -> bool:
        """True for more rows of the same table, below a blank one."""
        return self.header is None and len(self.columns) > 1 and set(self.columns) <= set(table.columns)


def _parted(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start = 0
    for index in range(1, len(rows) + 1):
        if index == len(rows) or rows[index].number != rows[index - 1].number + 1:
            yield rows[start:index]
            start = index
