"""What a searcher is given of an open segment, and how it says that the file is bad."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Header, Section, SectionKind
from edgerag.index.hnsw.source import SegmentSource

if TYPE_CHECKING:
    from edgerag.errors import LibraryDamaged
    from edgerag.types import Vectors

Walk = Literal["nibbles", "bits"]
# By the names that people read, widest first.
WALK_TITLES: dict[Walk, str] = {"nibbles": "4-bit codes", "bits": "1-bit codes"}
HOT_SECTIONS: dict[Walk, tuple[SectionKind, ...]] = {
    "nibbles": (SectionKind.LEVELS, SectionKind.LINKS, SectionKind.NIBBLES),
    "bits": (SectionKind.LEVELS, SectionKind.LINKS, SectionKind.BITS),
}
Rows = NDArray[np.int64]
Similarities = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SegmentView:
    """An open segment file. ``hits`` counts the rows read in each block, ``absent`` is the residency's."""

    path: Path
    header: Header
    mapping: mmap.mmap
    source: SegmentSource
    is_encrypted: bool  # then not all of the mapping may be read, and rows are read from the source
    hits: NDArray[np.int64]  # (block count,)
    absent: NDArray[np.int64]  # (window count,)


@dataclass(frozen=True, slots=True)
class Found:
    """Chunk ids with their cosine similarities, best first, equal ones by id."""

    labels: Rows
    similarities: Similarities
    least: float = -math.inf  # the worst estimate that a walk kept, if it could not keep all
    compared: int = 0  # rows that were compared with the query, by codes or by full vectors; a row by both counts twice


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a walk tries."""

    limit: int  # rows wanted
    ef: int  # rows kept while walking
    rescore: int  # of them compared by their full vectors in any case
    # And those whose estimate comes so near to the worst of what was found: near-duplicates differ by less than the
    # codes can tell.
    margin: float
    exact: bool = False  # compare full vectors while walking too


@dataclass(frozen=True, slots=True)
class Room:
    """How much of the file a walk in slices may bring into memory."""

    first_bytes: int
    more_bytes: Callable[[], int]  # makes room; the bytes of the next slice


class Searcher(Protocol):
    """The searches of one segment; kernel.py and reference.py give the same hits."""

    def walk(
        self, query: Vectors, effort: Effort, *, walk: Walk, excluded: NDArray[np.bool_] | None, room: Room | None
    ) -> Found:
        """By the graph. ``excluded`` rows are walked through and never found."""
        ...

    def near_rows(self, query: Vectors, effort: Effort, *, walk: Walk, rows: Rows, room: Room | None) -> Found:
        """The best of some rows: their codes first, then the full vectors of the best."""
        ...

    def score_rows(self, query: Vectors, *, limit: int, rows: Rows) -> Found:
        """The exactly best of some rows, read from the file."""
        ...

    def scan(self, query: Vectors, *, limit: int, excluded: NDArray[np.bool_] | None) -> Found:
        """The exactly best of all rows, read through the mapping; their blocks must be verified."""
        ...

    def read_rows(self, rows: Rows) -> NDArray[np.uint8]:
        """(n, row bytes) of the full vectors, checked against the checksum of each row."""
        ...


def bad_link(view: SegmentView, row: int, level: int) -> LibraryDamaged:
    kind = SectionKind.LEVELS if level else SectionKind.LINKS
    section = view.header.section(kind)
    where = f", {_block_of(view.header, section, row)}" if section and not level else ""
    return layout.damaged(view.path, f"has a damaged link list (row {row}, level {level}{where})")


def bad_row(view: SegmentView, row: int) -> LibraryDamaged:
    section = view.header.section(SectionKind.VECTORS)
    where = _block_of(view.header, section, row) if section else "vectors"
    return layout.damaged(view.path, f"is damaged in {where} (checksum of row {row})")


def read_failed(view: SegmentView, number: int) -> LibraryDamaged:
    reason = os.strerror(number) if number else "it is shorter than it was"
    return layout.damaged(view.path, f"cannot be read: {reason}")


def _block_of(header: Header, section: Section, row: int) -> str:
    offset = row // section.rows_per_group * section.group_bytes
    return layout.block_name(header, header.blocks_of(section)[offset // header.block_bytes])
