"""The one row of ``latent_space``: a library's latent space as it was last made, and whether it is to be made anew.

It is made of the passages as they are: of all, or of so many that lie evenly through the library. Nothing but the order
of what is found depends on it, so a damaged one is as good as none, and ``verify`` names it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgerag.index import chunks, evidence
from edgerag.index.latent_space import LatentSpace, make_space, stop_if
from edgerag.index.row_sums import row_sum
from edgerag.index.store import Store
from edgerag.types import CancelCheck, PassageWords

# Made anew at once where that takes a second; a larger one when a quarter of its passages went or came.
_SMALL = 2_000
_CHANGED_SHARE = 0.25
# More teach nothing: of a large library so many are read.
_MOST_PASSAGES = 20_000
_BATCH = 500

# Of how a space is made, words included: one of another method is made anew.
_METHOD = 1

_CONTENT = "method, passage_count, last_chunk_id, dimension, terms, weights, directions"


@dataclass(frozen=True, slots=True)
class SpaceKey:
    """Which space is stored: it changes whenever another one is made."""

    sum: int
    method: int
    passage_count: int
    last_chunk_id: int


def key_of(db: sqlite3.Connection) -> SpaceKey | None:
    """Read for each question: the columns lie before the large ones."""
    row = db.execute("SELECT sum, method, passage_count, last_chunk_id FROM latent_space").fetchone()
    return SpaceKey(*row) if row and all(isinstance(number, int) for number in row) else None


def read_space(db: sqlite3.Connection) -> LatentSpace | None:
    """None where there is none, or it is not what was stored."""
    row = _row(db)
    if row is None or not _is_whole(row):
        return None
    dimension, terms, weights, directions = row[4:]
    if not dimension:
        return None  # of too little to learn from
    words = terms.decode("utf-8").split("\n")
    return LatentSpace(
        terms={word: number for number, word in enumerate(words)},
        weights=np.frombuffer(weights, dtype="<f4"),
        directions=np.frombuffer(directions, dtype=np.int8).reshape(-1, dimension),
    )


def is_damaged(db: sqlite3.Connection) -> bool:
    row = _row(db)
    return row is not None and not _is_whole(row)


def _row(db: sqlite3.Connection) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = db.execute(f"SELECT sum, {_CONTENT} FROM latent_space").fetchone()  # noqa: S608
    return row


def _is_whole(row: Sequence[Any]) -> bool:
    return row[0] == row_sum(row[1:]) and all(isinstance(blob, bytes) for blob in row[5:])


def is_due(db: sqlite3.Connection) -> bool:
    """Whether it is to be made: there is none, it is damaged, or the library is not what it was made of any more."""
    key = key_of(db)
    if key is None or key.method != _METHOD or is_damaged(db):
        return not chunks.is_empty(db)
    count = chunks.chunk_count(db)
    kept = int(db.execute("SELECT count(*) FROM chunks WHERE id <= ?", (key.last_chunk_id,)).fetchone()[0])
    changed = key.passage_count - kept + count - kept
    return changed > (0 if count <= _SMALL else _CHANGED_SHARE * key.passage_count)


def make(store: Store, *, cancelled: CancelCheck) -> None:
    """Makes it of the passages that are there, and stores it in one transaction; one that is not finished changes
    nothing. Raises Cancelled."""
    with store.reading() as db:
        count = chunks.chunk_count(db)
        ids = chunks.sample_ids(db, _MOST_PASSAGES) if count > _MOST_PASSAGES else chunks.all_ids(db)
        last = int(db.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()[0])
        space = make_space(_passages(db, ids, cancelled), cancelled=cancelled)
    with store.writing() as db:
        _write(db, space, passage_count=count, last_chunk_id=last)


def _passages(db: sqlite3.Connection, ids: list[int], cancelled: CancelCheck) -> Iterator[PassageWords]:
    for start in range(0, len(ids), _BATCH):
        stop_if(cancelled)
        batch = ids[start : start + _BATCH]
        found = evidence.passage_words(db, batch)
        yield from (found[chunk_id] for chunk_id in batch if chunk_id in found)


def _write(db: sqlite3.Connection, space: LatentSpace | None, *, passage_count: int, last_chunk_id: int) -> None:
    content: tuple[object, ...] = (_METHOD, passage_count, last_chunk_id, 0, b"", b"", b"")
    if space is not None:
        words = sorted(space.terms, key=space.terms.__getitem__)
        blobs = ("\n".join(words).encode("utf-8"), space.weights.astype("<f4").tobytes(), space.directions.tobytes())
        content = (_METHOD, passage_count, last_chunk_id, space.dimension, *blobs)
    db.execute(
        f"INSERT OR REPLACE INTO latent_space (id, {_CONTENT}, sum) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (*content, row_sum(content)),
    )


def forget(db: sqlite3.Connection) -> None:
    """For who makes words anew: the space is of those that were."""
    db.execute("DELETE FROM latent_space")
