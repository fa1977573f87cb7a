"""An HNSW graph in memory, between its building and its file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Graph:
    """An HNSW graph in rows. Links beyond a row's count are zero."""

    m: int
    m0: int
    entry_point: int
    level_counts: tuple[int, ...]  # nodes on level 1, 2, ...
    levels: NDArray[np.uint32]  # (sum of level_counts, 2 + m): node, count, links; by level, then node
    links: NDArray[np.uint32]  # (n, 1 + m0): count, links


def reordered(graph: Graph, rows: NDArray[np.int64]) -> Graph:
    """The graph with row i taken from ``rows[i]``; ``rows`` (n,) is a permutation."""
    place = np.empty(len(rows), dtype=np.uint32)
    place[rows] = np.arange(len(rows), dtype=np.uint32)
    links = graph.links[rows]
    used = np.arange(graph.m0) < links[:, :1]
    links[:, 1:][used] = place[links[:, 1:][used]]
    levels = graph.levels.copy()
    levels[:, 0] = place[levels[:, 0]]
    used = np.arange(graph.m) < levels[:, 1:2]
    levels[:, 2:][used] = place[levels[:, 2:][used]]
    numbers = np.repeat(np.arange(len(graph.level_counts)), graph.level_counts)
    levels = levels[np.lexsort((levels[:, 0], numbers))]
    return replace(graph, entry_point=int(place[graph.entry_point]), levels=levels, links=links)
