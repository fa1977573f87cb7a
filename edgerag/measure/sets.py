"""Vectors to measure on: made here or read from a file, with queries and the exact answer to each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import UsageError

if TYPE_CHECKING:
    from edgerag.types import Vectors

K = 10  # recall is counted over so many hits
_SPREAD = 0.7  # length of the noise beside a centre of length 1
_ROWS_PER_CENTRE = 100
_MADE_AT_ONCE = 50_000  # rows; part of what a seed means
_COMPARED_AT_ONCE = 20_000
_QUERY_SHARE, _MOST_QUERIES = 50, 1_000  # of a file without queries: one row in so many, at most so many
_UNIT_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class VectorSet:
    name: str
    base: Vectors  # (n, dim) float32, unit rows; may be mapped from a file
    queries: Vectors  # (queries, dim) float32, unit rows
    truth: NDArray[np.int64]  # (queries, K) rows of base, best first; fewer columns when there are fewer rows


def clustered_set(rows: int, *, dimension: int = 384, queries: int = 2_000, seed: int = 1) -> VectorSet:
    base, asked = clustered(rows, dimension=dimension, queries=queries, seed=seed)
    return VectorSet("clustered", base, asked, exact_truth(base, asked))


def clustered(rows: int, *, dimension: int, queries: int, seed: int) -> tuple[Vectors, Vectors]:
    """((rows, dim), (queries, dim)) float32 unit vectors around one random centre per 100 rows."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, rows // _ROWS_PER_CENTRE), dimension), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)

    def around(count: int) -> Vectors:
        made = np.empty((count, dimension), dtype=np.float32)
        for start in range(0, count, _MADE_AT_ONCE):
            end = min(count, start + _MADE_AT_ONCE)
            picked = centres[random.integers(0, len(centres), end - start)]
            noise = random.standard_normal((end - start, dimension), dtype=np.float32)
            part = picked + (_SPREAD / np.sqrt(dimension)) * noise
            made[start:end] = part / np.linalg.norm(part, axis=1, keepdims=True)
        return made

    return around(rows), around(queries)


def file_set(file: Path, *, rows: int | None) -> VectorSet:
    """The vectors of a .npy file, (n, dim); the last rows are held out as queries.

    ``NAME.base.npy`` with ``NAME.q.npy`` beside it brings its own queries. Raises UsageError for a file that
    cannot be read or does not hold vectors.
    """
    base = _read(file)
    queries_file = file.with_name(file.name.removesuffix(".base.npy") + ".q.npy")
    if file.name.endswith(".base.npy") and queries_file.exists():
        queries = _read(queries_file)
        if queries.shape[1] != base.shape[1]:
            raise UsageError(f"{queries_file} has {queries.shape[1]} dimensions, {file} has {base.shape[1]}.")
    else:
        held_out = max(1, min(_MOST_QUERIES, len(base) // _QUERY_SHARE))
        base, queries = base[:-held_out], base[-held_out:]
    base, queries = unit_rows(base[:rows], file), unit_rows(queries, file)
    return VectorSet(file.name, base, queries, exact_truth(base, queries))


def exact_truth(base: Vectors, queries: Vectors, *, k: int = K) -> NDArray[np.int64]:
    """(queries, min(k, n)) rows of the largest inner products, best first, by comparing with every row."""
    rows = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(base), _COMPARED_AT_ONCE):
        part = queries @ np.asarray(base[start : start + _COMPARED_AT_ONCE]).T
        numbers = np.broadcast_to(np.arange(start, start + part.shape[1]), part.shape)
        scores, rows = np.concatenate([scores, part], axis=1), np.concatenate([rows, numbers], axis=1)
        kept = np.argpartition(-scores, min(k, scores.shape[1]) - 1, axis=1)[:, :k]
        scores, rows = np.take_along_axis(scores, kept, 1), np.take_along_axis(rows, kept, 1)
    order = np.argsort(-scores, axis=1, kind="stable")
    truth: NDArray[np.int64] = np.take_along_axis(rows, order, 1)
    return truth


def recall(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The share of the true neighbours (queries, k) that are among those found (queries, any number)."""
    hits = sum(len(set(row) & set(true)) for row, true in zip(found.tolist(), truth.tolist(), strict=True))
    return hits / truth.size


def unit_rows(vectors: Vectors, origin: Path) -> Vectors:
    """``vectors`` at unit length, untouched where they are already. Raises UsageError for zero or NaN."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        row = int(np.argmin(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
        raise UsageError(f"Row {row} of {origin} is not a vector with a direction.")
    if (np.abs(lengths - 1) < _UNIT_TOLERANCE).all():
        return vectors
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit


def _read(file: Path) -> Vectors:
    try:
        vectors = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as a .npy file: {error}") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) < 2 or not vectors.shape[1]:
        raise UsageError(
            f"{file} holds {vectors.dtype} of shape {vectors.shape}.", remedy="Give rows of vectors: (n, dim) floats."
        )
    floats: Vectors = vectors if vectors.dtype == np.float32 else vectors.astype(np.float32)
    return floats
