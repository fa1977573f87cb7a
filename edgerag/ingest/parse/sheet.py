"""A sheet as its readers give it: rows of shown cells, bounded, with merged cells spread to the rows they cover."""

from __future__ import annotations

import bisect
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from edgerag.errors import DocumentDamaged, DocumentEncrypted, DocumentUnsupported

# About 120 bytes each while a sheet is held: half a gigabyte of the parser's two.
_MOST_CELLS = 4_000_000
# One string of 32,767 characters may be shown by every cell of a sheet: what is written out is bounded.
_MOST_CHARACTERS = 200_000_000
# One part of the package unpacked. It is read as a stream; more is a bomb.
_MOST_PART_BYTES = 1_000_000_000
_HEAD_BYTES = 4096
_ENCRYPTED = 0x1  # flag of a zip entry


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged range, edges included; rows count from 1 as they are shown, columns from 0."""

    row_first: int
    row_last: int
    column_first: int
    column_last: int


@dataclass(slots=True)
class Row:
    """``number`` as the spreadsheet program shows it; ``cells`` has a column (from 0) for each that is not blank."""

    number: int
    cells: dict[int, str]
    hidden: bool = False
    blended: frozenset[int] = frozenset()  # columns of cells whose text has the colour of what it stands on


@dataclass(slots=True)
class Sheet:
    """``rows`` in order of their numbers, each with something in it."""

    name: str
    hidden: bool
    rows: list[Row] = field(default_factory=list)
    uncalculated: int = 0  # formulas without a stored result
    hidden_columns: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Budget:
    """What all sheets of one file may hold together."""

    cells: int = 0
    characters: int = 0

    def spend(self, text: str) -> str:
        """``text``, counted as a cell. Raises DocumentUnsupported when the file holds too much."""
        self.cells += 1
        self.characters += len(text)
        if self.cells > _MOST_CELLS or self.characters > _MOST_CHARACTERS:
            raise DocumentUnsupported(
                f"The spreadsheet is too large: more than {_MOST_CELLS:,} cells or {_MOST_CHARACTERS:,} characters.",
                remedy="Save its sheets as CSV files, which are read whatever their size.",
            )
        return text


_A_TO_Z = 26


def column_letters(column: int) -> str:
    """The column from 0 as a spreadsheet program names it: "A", "AB"."""
    letters = ""
    while column >= 0:
        letters = chr(ord("A") + column % _A_TO_Z) + letters
        column = column // _A_TO_Z - 1
    return letters


def shown_text(text: str) -> str:
    """The text of a cell on one line."""
    return " ".join(text.split())


def spread(sheet: Sheet, merges: Iterable[Merge], budget: Budget) -> None:
    """Gives every row of a vertically merged cell its text, as a person reads it.

    Only one column wide, and only in rows that have something else to say: a title over a whole block is said once.
    """
    rows = sheet.rows
    numbers = [row.number for row in rows]
    for merge in merges:
        if merge.row_last <= merge.row_first or merge.column_last != merge.column_first:
            continue
        index = bisect.bisect_left(numbers, merge.row_first)
        if index == len(rows) or rows[index].number != merge.row_first or len(rows[index].cells) < 2:
            continue
        text = rows[index].cells.get(merge.column_first)
        if text is None:
            continue
        for row in rows[index + 1 : bisect.bisect_right(numbers, merge.row_last)]:
            if merge.column_first not in row.cells:
                row.cells[merge.column_first] = budget.spend(text)


class Package:
    """The parts of a zip-based spreadsheet, read as streams of bounded length."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.lower(): name for name in archive.namelist()}

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def names(self, start: str) -> list[str]:
        return [name for name in self._names if name.startswith(start)]

    def open(self, name: str) -> Stream:
        """Raises DocumentDamaged when there is no part of that name."""
        if not self.has(name):
            raise DocumentDamaged(
                f"The spreadsheet has no part {name}.", remedy="Open it in a spreadsheet program and save it again."
            )
        info = self._archive.getinfo(self._names[name.lower()])
        if info.flag_bits & _ENCRYPTED:
            raise DocumentEncrypted("It is a spreadsheet in an encrypted zip.", remedy="Save it without the password.")
        return Stream(name, self._archive.open(info))

    def elements(self, name: str, *tags: str, starts: bool = False) -> Iterator[tuple[str, Any]]:
        """``("end", element)`` for every element of these tags of a part that is XML, and ``"start"`` where asked for.
        What the caller is done with it should ``forget``."""
        with self.open(name) as stream:
            events = ("start", "end") if starts else ("end",)
            yield from etree.iterparse(
                stream, events=events, tag=tags, resolve_entities=False, no_network=True, huge_tree=False
            )


class Stream:
    """Bytes of one part, until they are more than any real part has."""

    def __init__(self, name: str, file: Any) -> None:
        self._name = name
        self._file = file
        self._count = 0

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if not self._count and b"<!DOCTYPE" in data[:_HEAD_BYTES]:
            raise DocumentDamaged(f"{self._name} defines entities, which no spreadsheet program writes.")
        self._count += len(data)
        if self._count > _MOST_PART_BYTES:
            raise DocumentDamaged(f"{self._name} unpacks to more than {_MOST_PART_BYTES // 1_000_000} MB.")
        return data

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def forget(element: Any) -> None:
    """Frees an element that was read, and those before it."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def local_name(element: Any) -> str:
    """The tag without its namespace, of which strict files have another; "" for comments."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
