"""Texts that stand in the library more than once are embedded once: the vector of the first serves the others."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgerag.index.segments import SegmentSet
from edgerag.index.store import Store
from edgerag.index.vectors import Place, read_places

if TYPE_CHECKING:
    from edgerag.types import Vectors

_BATCH = 500  # parameters of one statement


def known_vectors(
    store: Store, segments: SegmentSet, chunk_ids: Sequence[int], *, dimension: int
) -> dict[int, Vectors]:
    """By pending chunk, the vector of another chunk with the same embedding text, (dim,) of unit length.

    Raises LibraryDamaged for a segment that cannot be read or that disagrees with the catalogue.
    """
    opened, twins = segments.view(store, lambda db: _twins(db, chunk_ids))
    vectors = read_places(opened, list({place.chunk_id: place for _, place in twins}.values()), dimension=dimension)
    return {chunk_id: vectors[place.chunk_id] for chunk_id, place in twins}


def _twins(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> list[tuple[int, Place]]:
    """Pending chunks, and where the vector of a twin of each is."""
    found = []
    for start in range(0, len(chunk_ids), _BATCH):
        ids = [int(chunk_id) for chunk_id in chunk_ids[start : start + _BATCH]]
        marks = ",".join("?" * len(ids))
        # The text put into the statement is question marks only.
        rows = db.execute(
            "SELECT c.id, t.id, t.segment_id, t.segment_row, v.vector FROM chunks c"  # noqa: S608
            " JOIN chunks t ON t.id = (SELECT k.id FROM chunks k WHERE k.embedding_key = c.embedding_key"
            " AND k.state > 0 ORDER BY k.id DESC LIMIT 1) LEFT JOIN vectors v ON v.chunk_id = t.id"
            f" WHERE c.state = 0 AND c.id IN ({marks})",
            ids,
        )
        found += [(row[0], Place(*row[1:])) for row in rows]
    return found
