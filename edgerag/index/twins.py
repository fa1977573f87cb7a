"""Texts that stand in the library more than once are embedded once: the vector of the first serves the others."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgerag.errors import LibraryDamaged
from edgerag.index.segments import SegmentSet
from edgerag.index.store import Store

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
    found: dict[int, Vectors] = {}
    sealed: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # (row, twin, chunk) by segment
    for chunk_id, twin, segment_id, row, vector in twins:
        if segment_id is not None:
            sealed[segment_id].append((row, twin, chunk_id))
        elif vector is None or len(vector) != 4 * dimension:
            raise LibraryDamaged(
                "A stored vector has the wrong length.", remedy="Restore the library from a copy, or ingest again."
            )
        else:
            found[chunk_id] = np.frombuffer(vector, dtype="<f4")
    for each in opened:
        places = sorted(sealed.pop(each.entry.id, ()))
        if not places:
            continue
        rows = sorted({row for row, _, _ in places})
        vectors, labels = each.segment.read_rows(np.array(rows, dtype=np.int64))
        at = {row: number for number, row in enumerate(rows)}
        for row, twin, chunk_id in places:
            if int(labels[at[row]]) != twin:
                raise LibraryDamaged(
                    f"{each.segment.path} does not hold what the catalogue says.",
                    remedy="Restore the library from a copy, or ingest again.",
                )
            found[chunk_id] = _unit(vectors[at[row]])
    return found


def _twins(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> list[tuple[int, int, int | None, int, bytes | None]]:
    """(pending chunk, its twin, segment of the twin, row there, vector that is in no segment)."""
    found = []
    for start in range(0, len(chunk_ids), _BATCH):
        ids = [int(chunk_id) for chunk_id in chunk_ids[start : start + _BATCH]]
        marks = ",".join("?" * len(ids))
        # The text put into the statement is question marks only.
        found += db.execute(
            "SELECT c.id, t.id, t.segment_id, t.segment_row, v.vector FROM chunks c"  # noqa: S608
            " JOIN chunks t ON t.id = (SELECT k.id FROM chunks k WHERE k.embedding_key = c.embedding_key"
            " AND k.state > 0 ORDER BY k.id DESC LIMIT 1) LEFT JOIN vectors v ON v.chunk_id = t.id"
            f" WHERE c.state = 0 AND c.id IN ({marks})",
            ids,
        ).fetchall()
    return found


def _unit(vector: Vectors) -> Vectors:
    """Of unit length again: a segment may keep vectors in f16."""
    return (vector / np.linalg.norm(vector)).astype("<f4")
