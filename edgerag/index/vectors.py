"""The vectors of chunks, wherever they are: still in the database, or sealed in a segment."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgerag.errors import LibraryDamaged
from edgerag.index.row_sums import stored_vectors
from edgerag.index.segments import OpenSegment, SegmentSet, refuse_cut
from edgerag.index.store import Store

if TYPE_CHECKING:
    from edgerag.types import Vectors

_BATCH = 500  # parameters of one statement


@dataclass(frozen=True, slots=True)
class Place:
    """Where the vector of a chunk is: row ``row`` of segment ``segment_id``, or with no segment, ``stored``."""

    chunk_id: int
    segment_id: int | None
    row: int | None
    stored: bytes | None


def vectors_of(store: Store, segments: SegmentSet, chunk_ids: Sequence[int], *, dimension: int) -> dict[int, Vectors]:
    """By chunk, its vector, (dim,) of unit length; chunks without one are left out.

    Raises LibraryDamaged for a segment that cannot be read or that disagrees with the catalogue, EmbedderMismatch when
    the library was given to another embedder.
    """
    opened, places = segments.view(store, lambda db: places_of(db, chunk_ids))
    return read_places(opened, places, dimension=dimension)


def read_places(opened: Iterable[OpenSegment], places: Sequence[Place], *, dimension: int) -> dict[int, Vectors]:
    """By chunk, the vector that is in its place. Raises LibraryDamaged as :func:`vectors_of` does."""
    found: dict[int, Vectors] = {}
    sealed: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (row, chunk) by segment
    for place in places:
        if place.segment_id is not None and place.row is not None:
            sealed[place.segment_id].append((place.row, place.chunk_id))
        else:
            (found[place.chunk_id],) = stored_vectors([(place.chunk_id, place.stored)], dimension=dimension)
    for each in opened:
        wanted = sorted(sealed.pop(each.entry.id, ()))
        if not wanted:
            continue
        refuse_cut(each.segment)
        vectors, labels = each.segment.read_rows(np.array([row for row, _ in wanted], dtype=np.int64))
        if labels.tolist() != [chunk_id for _, chunk_id in wanted]:
            raise LibraryDamaged(
                f"{each.segment.path} does not hold what the catalogue says.",
                remedy="Restore the library from a copy, or ingest again.",
            )
        # Of unit length again: a segment may keep vectors in f16.
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f4")
        found.update((chunk_id, vector) for (_, chunk_id), vector in zip(wanted, vectors, strict=True))
    return found


def places_of(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> list[Place]:
    """Of those of the chunks that have a vector."""
    found = []
    for start in range(0, len(chunk_ids), _BATCH):
        ids = [int(chunk_id) for chunk_id in chunk_ids[start : start + _BATCH]]
        marks = ",".join("?" * len(ids))
        # The text put into the statement is question marks only.
        rows = db.execute(
            "SELECT c.id, c.segment_id, c.segment_row, v.vector FROM chunks c"  # noqa: S608
            f" LEFT JOIN vectors v ON v.chunk_id = c.id WHERE c.state > 0 AND c.id IN ({marks})",
            ids,
        )
        found += [Place(*row) for row in rows]
    return found
