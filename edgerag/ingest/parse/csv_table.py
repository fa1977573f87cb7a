"""CSV and TSV: the document is the file, so that its lines are the true lines; the row of labels is a heading over
all others."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from edgerag.ingest.parse.source import Source, clean_title
from edgerag.ingest.parse.table_header import find_header, header_title, is_caption
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

CSV = "text/csv"
TSV = "text/tab-separated-values"

# In doubt the earlier one: commas stand in words and numbers, the others hardly ever.
_DELIMITERS = "\t;|,"
# What the dialect and the header are found from.
_EXAMINED_LINES = 200
_EXAMINED_CHARACTERS = 1_000_000
_WIDEST = 5_000  # columns; as many as any header worth a heading has
_HINT = "sep="  # a first line that tells Excel the delimiter


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    start, delimiter = _hint(text)
    delimiter = delimiter or _delimiter(text, start)
    return ParsedDocument(
        text=text,
        title=source.fallback_title,
        media_type=TSV if delimiter == "\t" or (not delimiter and source.extension == ".tsv") else CSV,
        headings=_headings(text, start, delimiter) if delimiter else (),
        warnings=warnings,
    )


@dataclass(frozen=True, slots=True)
class _Record:
    start: int  # offset of its first line
    cells: list[str]


def _hint(text: str) -> tuple[int, str]:
    """Where the table begins, and the delimiter if the file names it."""
    line = text[: text.find("\n") + 1]
    if line[:4].lower() == _HINT and len(line.rstrip("\n")) == len(_HINT) + 1:
        return len(line), line[4]
    return 0, ""


def _delimiter(text: str, start: int) -> str:
    """What parts the most rows into the same number of cells; "" when nothing does."""
    best, best_share = "", 0.5
    for delimiter in _DELIMITERS:
        widths = [len(record.cells) for record in _records(text, start, delimiter)]
        width = max(set(widths), key=lambda width: (widths.count(width), width), default=1)
        share = widths.count(width) / len(widths) if width > 1 else 0.0
        if share > best_share:
            best, best_share = delimiter, share
    return best


def _headings(text: str, start: int, delimiter: str) -> tuple[Heading, ...]:
    """The row of labels, and above it the title of the table where one stands alone in the first row."""
    records = list(_records(text, start, delimiter))
    width = min(_WIDEST, max((len(record.cells) for record in records), default=0))
    rows = [[" ".join(cell.split()) for cell in (*record.cells, *[""] * width)][:width] for record in records]
    found = find_header(rows)
    if found is None:
        return ()
    headings = []
    first = [cell for cell in rows[0] if cell]
    if found and len(first) == 1 and is_caption(first[0]):
        headings.append(Heading(1, clean_title(first[0]), records[0].start))
    headings.append(Heading(len(headings) + 1, clean_title(header_title(rows[found])), records[found].start))
    return tuple(headings)


def _records(text: str, start: int, delimiter: str) -> Iterator[_Record]:
    """The first records, blank ones left out; the last one only if it ends in the lines examined."""
    lines = list(_lines(text, start))
    offsets = [start]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    reader = csv.reader([*lines, "\n"], delimiter=delimiter)  # a record with an open quote takes in the added line
    taken = 0
    try:
        for cells in reader:
            if any(cells) and reader.line_num <= len(lines):
                yield _Record(offsets[taken], cells)
            taken = reader.line_num
    except csv.Error:
        return  # a field beyond the limit of the library: what came before it stands


def _lines(text: str, start: int) -> Iterator[str]:
    limit = start + _EXAMINED_CHARACTERS
    for _ in range(_EXAMINED_LINES):
        end = text.find("\n", start, limit) + 1
        if not end:
            if start < len(text) <= limit:
                yield text[start:]
            return
        yield text[start:end]
        start = end
