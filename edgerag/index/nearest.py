"""The vector leg: the nearest chunks by cosine, sealed or not, all as of one commit."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

from edgerag.errors import TooLate, UsageError
from edgerag.index import catalogue
from edgerag.index.chunks import sample_ids
from edgerag.index.hnsw.reference import fixed_products
from edgerag.index.hnsw.search import widened
from edgerag.index.segments import Flags, SegmentSet, refuse_cut
from edgerag.index.store import Store
from edgerag.index.vectors import places_of, read_places
from edgerag.types import CancelCheck, EmbedderIdentity, Filter, LegHit, SearchWork, VectorType

if TYPE_CHECKING:
    from edgerag.types import Vectors

# float32 rounding of an embedder's normalisation stays far inside this.
_UNIT_TOLERANCE = 1e-2


def checked_vectors(vectors: Vectors, *, rows: int, identity: EmbedderIdentity) -> Vectors:
    """(rows, dim) float32, contiguous. Raises UsageError naming what is wrong: shape, NaN, a length that is not 1."""
    if vectors.shape != (rows, identity.dimension):
        raise UsageError(
            f"Vectors of shape {vectors.shape} were given where ({rows}, {identity.dimension}) was expected.",
            remedy=f"The library was made with {identity.name!r}, which gives {identity.dimension} dimensions.",
        )
    checked = np.ascontiguousarray(vectors, dtype="<f4")
    lengths = np.sqrt(np.einsum("ij,ij->i", checked, checked, dtype=np.float64))
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE))  # true for NaN too
    if len(wrong):
        raise UsageError(
            f"Vector {int(wrong[0])} of {rows} has length {float(lengths[wrong[0]]):g}; vectors must have length 1."
        )
    return checked


def storable_vectors(vectors: Vectors, *, rows: int, identity: EmbedderIdentity, vector_type: VectorType) -> Vectors:
    """As :func:`checked_vectors`, rounded to what a segment keeps: now and not when they are sealed, so that sealing
    changes no score."""
    checked = checked_vectors(vectors, rows=rows, identity=identity)
    return checked.astype("<f2").astype("<f4") if vector_type == "f16" else checked


def search(
    store: Store,
    segments: SegmentSet,
    query: Vectors,
    *,
    limit: int,
    ef_search: int,
    where: Filter | None,
    out_of_time: CancelCheck,
    work: SearchWork | None = None,
) -> list[LegHit]:
    """The ``limit`` nearest chunks among the documents of ``where``, best first; equal scores by id. What it took is
    added to ``work``.

    ``query`` is (dim,), of unit length. Raises LibraryDamaged naming file and block, TooLate once ``out_of_time()``,
    which is asked before each segment.
    """
    if limit < 1:
        return []

    def read(db: sqlite3.Connection) -> tuple[list[LegHit], list[Flags] | None]:
        excluded = None if where is None else segments.excluded(db, where)
        return _unsealed_hits(db, query, limit=limit, where=where, work=work), excluded

    opened, (hits, excluded) = segments.view(store, read)
    for number, each in enumerate(opened):
        if out_of_time():
            raise TooLate
        refuse_cut(each.segment)
        flags = each.dead if excluded is None else excluded[number]
        ef = widened(ef_search, each.segment.row_count)
        hits += each.segment.search(query, limit=limit, ef_search=ef, excluded=flags, work=work)
    hits.sort(key=lambda hit: (-hit.score, hit.chunk_id))
    return hits[:limit]


def mean_vector(store: Store, segments: SegmentSet, *, dimension: int, sampled: int) -> tuple[Vectors, int]:
    """((dim,) the mean of so many vectors that lie evenly through the library, not of unit length; how many they were).

    Raises LibraryDamaged naming file and block.
    """

    opened, places = segments.view(store, lambda db: places_of(db, sample_ids(db, sampled)))
    vectors = list(read_places(opened, places, dimension=dimension).values())
    mean: Vectors = np.mean(vectors, axis=0, dtype=np.float64).astype("<f4") if vectors else np.zeros(dimension, "<f4")
    return mean, len(vectors)


def _unsealed_hits(
    db: sqlite3.Connection, query: Vectors, *, limit: int, where: Filter | None, work: SearchWork | None
) -> list[LegHit]:
    """The best of each batch of the table, compared one by one."""
    hits: list[LegHit] = []
    for ids, stored in catalogue.unsealed_vectors(db, dimension=len(query), where=where):
        scores = fixed_products(stored, query)
        if work is not None:
            work.distances += len(ids)
        hits += [LegHit(int(ids[i]), float(scores[i])) for i in np.lexsort((ids, -scores))[:limit]]
    return hits
