"""Statements about vectors: those stored but not sealed, the segments, and the dead rows in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import LibraryDamaged, UsageError

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Vectors read from the table at a time: 1.5 MB at 384 dimensions.
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One segment as the catalogue knows it."""

    id: int
    file: str  # name inside the library's segments folder
    row_count: int
    dead_count: int
    size_bytes: int
    block_count: int

    @property
    def live_count(self) -> int:
        return self.row_count - self.dead_count


def segments(db: sqlite3.Connection) -> list[SegmentEntry]:
    """All visible segments, oldest first."""
    rows = db.execute(
        "SELECT s.id, s.file, s.row_count,"
        " (SELECT count(*) FROM tombstones t WHERE t.segment_id = s.id), s.size_bytes, s.block_count"
        " FROM segments s ORDER BY s.id"
    )
    return [SegmentEntry(*row) for row in rows]


def generation(db: sqlite3.Connection) -> int:
    """A number that changes whenever a segment or a tombstone comes or goes."""
    row = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return 0 if row is None else int(row[0])


def _changed(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('generation', ?)", (str(generation(db) + 1),))


def bury(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
    """Marks the rows of sealed chunks dead; to be called before the chunks are deleted."""
    cursor = db.executemany(
        "INSERT INTO tombstones (segment_id, segment_row)"
        " SELECT segment_id, segment_row FROM chunks WHERE id = ? AND state = 2",
        ((chunk_id,) for chunk_id in chunk_ids),
    )
    if cursor.rowcount > 0:
        _changed(db)


def stray_states(db: sqlite3.Connection) -> int:
    """Chunks whose state does not agree with where their vector is; 0 in a whole library."""
    (count,) = db.execute(
        "SELECT count(*) FROM chunks c LEFT JOIN vectors v ON v.chunk_id = c.id"
        " WHERE (c.state = 1) <> (v.chunk_id IS NOT NULL)"
    ).fetchone()
    return int(count)


def dead_rows(db: sqlite3.Connection, segment_id: int) -> NDArray[np.int64]:
    rows = db.execute("SELECT segment_row FROM tombstones WHERE segment_id = ? ORDER BY segment_row", (segment_id,))
    return np.fromiter((row[0] for row in rows), dtype=np.int64)


def next_segment_id(db: sqlite3.Connection) -> int:
    """The id that the next add_segment will give; ids are never used again."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'segments'").fetchone()
    return 1 if row is None else int(row[0]) + 1


def add_segment(
    db: sqlite3.Connection, *, file: str, size_bytes: int, block_count: int, chunk_ids: NDArray[np.int64]
) -> None:
    """Makes a segment visible and moves its chunks there; row i holds the vector of ``chunk_ids[i]``."""
    cursor = db.execute(
        "INSERT INTO segments (file, row_count, size_bytes, block_count) VALUES (?, ?, ?, ?)",
        (file, len(chunk_ids), size_bytes, block_count),
    )
    segment_id = int(cursor.lastrowid or 0)
    ids = chunk_ids.tolist()
    db.executemany(
        "UPDATE chunks SET state = 2, segment_id = ?, segment_row = ? WHERE id = ?",
        ((segment_id, row, chunk_id) for row, chunk_id in enumerate(ids)),
    )
    db.executemany("DELETE FROM vectors WHERE chunk_id = ?", ((chunk_id,) for chunk_id in ids))
    _changed(db)


def remove_segments(db: sqlite3.Connection, segment_ids: Sequence[int]) -> None:
    """Takes segments out of the catalogue; their live chunks must have moved elsewhere before."""
    for segment_id in segment_ids:
        db.execute("DELETE FROM tombstones WHERE segment_id = ?", (segment_id,))
        db.execute("DELETE FROM segments WHERE id = ?", (segment_id,))
    _changed(db)


def put_vectors(db: sqlite3.Connection, chunk_ids: Sequence[int], vectors: Vectors) -> None:
    """Stores one vector per chunk that has none yet. Raises UsageError for an id that is not pending."""
    for chunk_id, vector in zip(chunk_ids, vectors, strict=True):
        if db.execute("UPDATE chunks SET state = 1 WHERE id = ? AND state = 0", (chunk_id,)).rowcount != 1:
            raise UsageError(f"Chunk {chunk_id} is not waiting for a vector.")
        db.execute("INSERT INTO vectors (chunk_id, vector) VALUES (?, ?)", (chunk_id, vector.tobytes()))


def unsealed_ids(db: sqlite3.Connection) -> NDArray[np.int64]:
    """Ids of the chunks whose vector is in the table, ascending."""
    rows = db.execute("SELECT chunk_id FROM vectors ORDER BY chunk_id")
    return np.fromiter((row[0] for row in rows), dtype=np.int64)


def unsealed_vectors(
    db: sqlite3.Connection, *, dimension: int, first: int = 0, last: int = 2**63 - 1
) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """(chunk ids, vectors) in batches, by ascending id, of the ids from ``first`` to ``last``."""
    cursor = db.execute(
        "SELECT chunk_id, vector FROM vectors WHERE chunk_id BETWEEN ? AND ? ORDER BY chunk_id", (first, last)
    )
    while rows := cursor.fetchmany(_BATCH):
        if any(len(row[1]) != 4 * dimension for row in rows):
            raise LibraryDamaged(
                "A stored vector has the wrong length.", remedy="Restore the library from a copy, or ingest again."
            )
        ids = np.array([row[0] for row in rows], dtype=np.int64)
        yield ids, np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(-1, dimension)


def placements(db: sqlite3.Connection, segment_id: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, chunk ids) that the catalogue holds for a segment, by row."""
    rows = db.execute("SELECT segment_row, id FROM chunks WHERE segment_id = ? ORDER BY segment_row", (segment_id,))
    pairs = np.array(rows.fetchall(), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
