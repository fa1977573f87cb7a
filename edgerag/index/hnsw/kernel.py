"""The reference searcher: HNSW over a graph that lies in a file, and exact search, in numpy.

It never sees a file: a graph is whatever answers :class:`Graph`. A compiled kernel may replace it for
speed; this one stays as its oracle and where nothing can be compiled. Algorithm: Malkov and Yashunin,
"Efficient and robust approximate nearest neighbor search using HNSW graphs" (arXiv:1603.09320),
algorithms 2 and 5. Same graph, same query, same result: ties are broken by row.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edgerag.types import Vectors

Rows = NDArray[np.int64]
Similarities = NDArray[np.float32]

# Rows compared at a time in a scan: 6 MB at 384 dimensions.
_SCAN_ROWS = 4096


class VectorRows(Protocol):
    """The vectors of a segment, by row."""

    @property
    def row_count(self) -> int: ...

    def take(self, rows: Rows) -> Vectors:
        """(len(rows), dim) float32; rows must be in range."""
        ...


class Graph(Protocol):
    """The links of a segment. What it gives is in range: it checks."""

    @property
    def entry_point(self) -> int: ...

    @property
    def max_level(self) -> int: ...

    def neighbours(self, level: int, row: int) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Found:
    """Rows with their cosine similarities, best first, equal ones by row."""

    rows: Rows
    similarities: Similarities


def search_graph(
    graph: Graph, vectors: VectorRows, query: Vectors, *, ef: int, dead: NDArray[np.bool_] | None
) -> Found:
    """The (approximately) best ``ef`` live rows. Dead rows are walked through but never returned.

    ``query`` (dim,) float32, unit length; ``dead`` (n,) flags or None.
    """
    visited = np.zeros(vectors.row_count, dtype=np.bool_)
    row = graph.entry_point
    similarity = float((vectors.take(np.array([row])) @ query)[0])
    for level in range(graph.max_level, 0, -1):
        row, similarity = _descend(graph, vectors, query, level=level, row=row, similarity=similarity)

    visited[row] = True
    candidates = [(-similarity, row)]  # nearest first
    best: list[tuple[float, int]] = []  # worst first; equal similarities: the higher row is worse
    if dead is None or not dead[row]:
        best.append((similarity, -row))
    while candidates:
        distance, row = heapq.heappop(candidates)
        if len(best) >= ef and -distance < best[0][0]:
            break
        links = graph.neighbours(0, row)
        links = links[~visited[links]]
        if not len(links):
            continue
        visited[links] = True
        similarities = vectors.take(links) @ query
        if len(best) >= ef:
            near = similarities >= best[0][0]
            links, similarities = links[near], similarities[near]
        for similarity, link in zip(similarities.tolist(), links.tolist(), strict=True):
            if len(best) >= ef and (similarity, -link) < best[0]:
                continue
            heapq.heappush(candidates, (-similarity, link))
            if dead is None or not dead[link]:
                (heapq.heappush if len(best) < ef else heapq.heappushpop)(best, (similarity, -link))
    return _ordered(
        np.array([-negative for _, negative in best], dtype=np.int64), np.array([s for s, _ in best], dtype=np.float32)
    )


def _descend(
    graph: Graph, vectors: VectorRows, query: Vectors, *, level: int, row: int, similarity: float
) -> tuple[int, float]:
    """The local best of one upper level, greedily."""
    while True:
        links = graph.neighbours(level, row)
        if not len(links):
            return row, similarity
        similarities = vectors.take(links) @ query
        best = int(np.argmax(similarities))
        if float(similarities[best]) <= similarity:
            return row, similarity
        row, similarity = int(links[best]), float(similarities[best])


def search_flat(vectors: VectorRows, query: Vectors, *, limit: int, live: Rows) -> Found:
    """The exactly best ``limit`` of the rows ``live`` (ascending)."""
    kept = Found(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
    for start in range(0, len(live), _SCAN_ROWS):
        rows = live[start : start + _SCAN_ROWS]
        similarities = vectors.take(rows) @ query
        rows, similarities = (
            np.concatenate([kept.rows, rows]),
            np.concatenate([kept.similarities, similarities]),
        )
        if len(rows) > limit:
            worst_kept = np.partition(similarities, len(rows) - limit)[len(rows) - limit]
            near = similarities >= worst_kept
            rows, similarities = rows[near], similarities[near]
        ordered = _ordered(rows, similarities)
        kept = Found(ordered.rows[:limit], ordered.similarities[:limit])
    return kept


def exact_similarities(vectors: Vectors, query: Vectors) -> Similarities:
    """Similarities that do not depend on which other rows are compared at the same time.

    A BLAS product may differ in the last bit with the position of a row, which would put equal
    vectors in a random order.
    """
    similarities: Similarities = (vectors * query).sum(axis=1, dtype=np.float32)
    return similarities


def _ordered(rows: Rows, similarities: Similarities) -> Found:
    order = np.lexsort((rows, -similarities))
    return Found(rows[order], similarities[order])
