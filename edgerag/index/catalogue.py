"""Statements about vectors: those stored but not sealed, the segments, and the dead rows in them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import LibraryDamaged, UsageError
from edgerag.index import filters
from edgerag.index.row_sums import stored_vectors, with_sum
from edgerag.index.store import damaged_row

if TYPE_CHECKING:
    from edgerag.types import Filter, Vectors

# Vectors read from the table at a time: 1.5 MB at 384 dimensions.
_BATCH = 1024
_FILE_NAME = re.compile(r"[0-9]{8,}\.hnsw")
_PAIR = "(2,)i8"  # two numbers in a row of an array


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
    """All visible segments, oldest first. Raises LibraryDamaged for what was not written by :func:`add_segment`."""
    rows = db.execute(
        "SELECT s.id, s.file, s.row_count,"
        " (SELECT count(*) FROM tombstones t WHERE t.segment_id = s.id), s.size_bytes, s.block_count"
        " FROM segments s ORDER BY s.id"
    )
    entries = [SegmentEntry(*row) for row in rows]
    for entry in entries:
        numbers = (entry.id, entry.row_count, entry.dead_count, entry.size_bytes, entry.block_count)
        # SQLite keeps any value in any column, and a file outside of the folder is none of ours.
        if not all(isinstance(number, int) for number in numbers) or not 0 <= entry.dead_count <= entry.row_count:
            raise damaged_row(f"the numbers of segment {entry.id!r}")
        if not is_file_name(entry.file):
            raise damaged_row(f"{entry.file!r} is no name of a segment file")
    return entries


def is_file_name(value: object) -> bool:
    """Whether a segment may be called so."""
    return isinstance(value, str) and _FILE_NAME.fullmatch(value) is not None


def generation(db: sqlite3.Connection) -> int:
    """A number that changes with every segment, tombstone and tag, and with what a filter may ask of a document."""
    row = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return 0 if row is None else int(row[0])


def changed(db: sqlite3.Connection) -> None:
    """Gives the catalogue a new generation, so that readers look again."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('generation', ?)", (str(generation(db) + 1),))


def bury(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
    """Marks the rows of sealed chunks dead; to be called before the chunks are deleted."""
    cursor = db.executemany(
        "INSERT INTO tombstones (segment_id, segment_row)"
        " SELECT segment_id, segment_row FROM chunks WHERE id = ? AND state = 2",
        ((chunk_id,) for chunk_id in chunk_ids),
    )
    if cursor.rowcount > 0:
        changed(db)


def bury_rows(db: sqlite3.Connection, segment_id: int, rows: NDArray[np.int64]) -> None:
    """Marks rows of a segment dead whose chunks have moved to another one."""
    db.executemany(
        "INSERT INTO tombstones (segment_id, segment_row) VALUES (?, ?)", ((segment_id, int(row)) for row in rows)
    )
    changed(db)


def stray_states(db: sqlite3.Connection) -> int:
    """Chunks whose state does not agree with where their vector is; 0 in a whole library."""
    (count,) = db.execute(
        "SELECT count(*) FROM chunks c LEFT JOIN vectors v ON v.chunk_id = c.id"
        " WHERE (c.state = 1) <> (v.chunk_id IS NOT NULL)"
    ).fetchone()
    return int(count)


def dead_rows(db: sqlite3.Connection, segment_id: int) -> NDArray[np.int64]:
    rows = db.execute("SELECT segment_row FROM tombstones WHERE segment_id = ? ORDER BY segment_row", (segment_id,))
    return _numbers((row[0] for row in rows), dtype="i8")


def next_segment_id(db: sqlite3.Connection) -> int:
    """The id that the next add_segment will give; ids are never used again."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'segments'").fetchone()
    return 1 if row is None else int(row[0]) + 1


def add_segment(
    db: sqlite3.Connection, *, file: str, size_bytes: int, block_count: int, chunk_ids: NDArray[np.int64]
) -> int:
    """Makes a segment visible and moves its chunks there; row i holds the vector of ``chunk_ids[i]``. Its id."""
    cursor = db.execute(
        "INSERT INTO segments (file, row_count, size_bytes, block_count) VALUES (?, ?, ?, ?)",
        (file, len(chunk_ids), size_bytes, block_count),
    )
    segment_id = int(cursor.lastrowid or 0)
    db.executemany(
        "UPDATE chunks SET state = 2, segment_id = ?, segment_row = ? WHERE id = ?",
        ((segment_id, row, int(chunk_id)) for row, chunk_id in enumerate(chunk_ids)),
    )
    db.executemany("DELETE FROM vectors WHERE chunk_id = ?", ((int(chunk_id),) for chunk_id in chunk_ids))
    changed(db)
    return segment_id


def remove_segments(db: sqlite3.Connection, segment_ids: Sequence[int]) -> None:
    """Takes segments out of the catalogue; their live chunks must have moved elsewhere before."""
    for segment_id in segment_ids:
        db.execute("DELETE FROM tombstones WHERE segment_id = ?", (segment_id,))
        db.execute("DELETE FROM segments WHERE id = ?", (segment_id,))
    changed(db)


def adopt_segment(
    db: sqlite3.Connection,
    entry: SegmentEntry,
    *,
    file: str,
    rows: NDArray[np.int64],
    chunk_ids: NDArray[np.int64],
    dead_rows: NDArray[np.int64],
) -> None:
    """Makes a segment visible that was built in another database, under the name ``file``: row ``rows[i]`` holds the
    vector of ``chunk_ids[i]``, wherever that chunk's vector was before."""
    cursor = db.execute(
        "INSERT INTO segments (file, row_count, size_bytes, block_count) VALUES (?, ?, ?, ?)",
        (file, entry.row_count, entry.size_bytes, entry.block_count),
    )
    segment_id = int(cursor.lastrowid or 0)
    db.executemany(
        "UPDATE chunks SET state = 2, segment_id = ?, segment_row = ? WHERE id = ?",
        ((segment_id, row, chunk_id) for row, chunk_id in zip(rows.tolist(), chunk_ids.tolist(), strict=True)),
    )
    db.executemany(
        "INSERT INTO tombstones (segment_id, segment_row) VALUES (?, ?)",
        ((segment_id, row) for row in dead_rows.tolist()),
    )
    changed(db)


def forget_vectors(db: sqlite3.Connection, *, segments: Sequence[int]) -> None:
    """Takes out all unsealed vectors, and these segments, after every chunk has moved to another one. Raises
    LibraryDamaged when one has not."""
    marks = ",".join("?" * len(segments))
    # The text put into the statement is question marks only.
    (left,) = db.execute(
        f"SELECT count(*) FROM chunks WHERE state <> 2 OR segment_id IN ({marks})",  # noqa: S608
        list(segments),
    ).fetchone()
    if left:
        raise LibraryDamaged(
            f"{left} passages have no new vector.", remedy="Run `edgerag library reembed` again; nothing was changed."
        )
    db.execute("DELETE FROM vectors")
    remove_segments(db, segments)


def put_vectors(db: sqlite3.Connection, chunk_ids: Sequence[int], vectors: Vectors) -> None:
    """Stores one vector per chunk that has none yet. Raises UsageError for an id that is not pending."""
    for chunk_id, vector in zip(chunk_ids, vectors, strict=True):
        if db.execute("UPDATE chunks SET state = 1 WHERE id = ? AND state = 0", (chunk_id,)).rowcount != 1:
            raise UsageError(f"Chunk {chunk_id} is not waiting for a vector.")
        db.execute(
            "INSERT INTO vectors (chunk_id, vector) VALUES (?, ?)", (chunk_id, with_sum(vector.tobytes(), chunk_id))
        )


def unsealed_count(db: sqlite3.Connection) -> int:
    """Vectors in the table; cheap enough to be asked after every batch."""
    return int(db.execute("SELECT count(*) FROM chunks WHERE state = 1").fetchone()[0])


def unsealed_ids(db: sqlite3.Connection) -> NDArray[np.int64]:
    """Ids of the chunks whose vector is in the table, ascending."""
    rows = db.execute("SELECT id FROM chunks WHERE state = 1 ORDER BY id")
    return _numbers((row[0] for row in rows), dtype="i8")


def unsealed_vectors(
    db: sqlite3.Connection, *, dimension: int, first: int = 0, last: int = 2**63 - 1, where: Filter | None = None
) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """(chunk ids, vectors) in batches, by ascending id: of the ids from ``first`` to ``last``, of the documents
    that match ``where``."""
    chosen, parameters = "", tuple[object, ...]()
    if where is not None:
        documents = filters.matching(where)
        # CROSS JOIN keeps the order of the loops: there are few vectors here, and many chunks in a library.
        chosen = f" CROSS JOIN chunks c ON c.id = v.chunk_id AND c.document_id IN ({documents.select})"
        parameters = documents.parameters
    # The text put into the statement is fixed; what the user gave is in the parameters.
    cursor = db.execute(
        f"SELECT v.chunk_id, v.vector FROM vectors v{chosen}"  # noqa: S608
        " WHERE v.chunk_id BETWEEN ? AND ? ORDER BY v.chunk_id",
        (*parameters, first, last),
    )
    while rows := cursor.fetchmany(_BATCH):
        ids = np.array([row[0] for row in rows], dtype=np.int64)
        yield ids, stored_vectors(rows, dimension=dimension)


def placements(db: sqlite3.Connection, segment_id: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, chunk ids) that the catalogue holds for a segment, by row."""
    rows = db.execute("SELECT segment_row, id FROM chunks WHERE segment_id = ?", (segment_id,))
    pairs = _numbers(rows, dtype=_PAIR)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    return pairs[:, 0], pairs[:, 1]


def _numbers(values: Iterable[object], *, dtype: str) -> NDArray[np.int64]:
    """Raises LibraryDamaged for a value that is no whole number: SQLite keeps any value in any column."""
    try:
        return np.fromiter(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise damaged_row(str(error)) from error
