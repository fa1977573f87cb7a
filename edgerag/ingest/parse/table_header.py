"""Which row of a table names its columns.

Files do not say. A header is taken to be the first full row of labels above rows that look different: numbers and
dates where it has words, or, in a table of words, none of its words in the column below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgerag.ingest.parse.layout import CELL_SEPARATOR

# A header stands at the top; what comes before it is a title and some remarks.
_SEARCHED_ROWS = 10
# Rows below it that are compared with it.
_COMPARED_ROWS = 50
_LONGEST_LABEL = 80
_LONGEST_CAPTION = 120
# Numbers with a sign, separators, a percent sign, a currency or a short unit; dates and times; truth values; errors.
_VALUE = re.compile(
    r"[-+(]?\s*[^\w\s.,()-]?\s*[-+]?\d[\d.,'\u00a0\u202f ]*(?:e[-+]?\d+)?\s*\)?\s*(?:°?\w{0,3}|[^\w\s]{1,2})\s*\)?"
    r"|[a-z]{3}\s[-+]?\d[\d.,' ]*"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?Z?)?|\d{1,4}-\d\d|\d{1,4}:\d\d(?::\d\d)?"
    r"|(?:true|false|n/?a|nan|null|none|-+|–|—)|#[a-z0-9/]+[!?]?",
    re.IGNORECASE,
)
_LONGEST_VALUE = 40
# Years and months head columns as words do.
_PERIOD = re.compile(
    r"(?:1[5-9]|20|21)\d\d(?:-\d\d(?:-\d\d)?|[/-]\d{2,4})?\s?[*†a-z]?|(?:[a-z]{3,9}\.?|q[1-4])[ -](?:1[5-9]|20|21)\d\d",
    re.IGNORECASE,
)


def find_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Index of the row that is a header; None when there is none.

    ``rows`` are the first rows of one table, all with a text for each of its columns, "" where a cell is blank.
    """
    for index, row in enumerate(rows[:_SEARCHED_ROWS]):
        below = rows[index + 1 : index + 1 + _COMPARED_ROWS]
        if below and _is_header(row, below):
            return index
    return None


def header_title(cells: Sequence[str]) -> str:
    """The labels as one heading."""
    return CELL_SEPARATOR.join(label for cell in cells if (label := " ".join(cell.split())))


def is_caption(text: str) -> bool:
    """True for what may be the title of a table when it stands alone in the row above."""
    return 0 < len(text) <= _LONGEST_CAPTION and not _is_value(text)


def _is_value(text: str) -> bool:
    """True for a number, a date, a truth value: what stands in a table below a label."""
    return len(text) <= _LONGEST_VALUE and _VALUE.fullmatch(text.strip()) is not None


def _is_header(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    labels = [cell for cell in row if cell]
    # One corner may be blank, and columns of remarks often have no name.
    if len(labels) < 2 or 2 * len(labels) <= len(row) or len(set(labels)) * 2 <= len(labels):
        return False
    periods = sum(1 for label in labels if _PERIOD.fullmatch(label))
    if any(len(label) > _LONGEST_LABEL or (_is_value(label) and not _PERIOD.fullmatch(label)) for label in labels):
        return False
    columns = [[other[at] for other in below if other[at]] for at in range(len(row))]
    if periods:
        return any(column and not _mostly(column, _PERIOD) for at, column in enumerate(columns) if _is_period(row[at]))
    if any(column and _mostly(column, _VALUE) for at, column in enumerate(columns) if row[at]):
        return True
    repeated = any(cell in columns[at] for at, cell in enumerate(row) if cell)
    return not repeated and any(columns[at] for at, cell in enumerate(row) if cell) and len(labels) >= len(row) - 1


def _is_period(cell: str) -> bool:
    return _PERIOD.fullmatch(cell) is not None


def _mostly(column: Sequence[str], pattern: re.Pattern[str]) -> bool:
    matching = sum(1 for cell in column if len(cell) <= _LONGEST_VALUE and pattern.fullmatch(cell.strip()))
    return 2 * matching > len(column)
