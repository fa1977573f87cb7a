"""Links the nodes of a graph that its walk could not reach.

hnswlib prunes links in one direction, and some nodes end up with none that leads to them; a search
would never find them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.graph import Graph

if TYPE_CHECKING:
    from edgerag.types import Vectors

_COMPARED_ROWS = 16_384  # at a time: 25 MB at 384 dimensions


def link_unreachable(graph: Graph, vectors: Vectors) -> Graph:
    """The graph with every node reachable from the entry point on level 0.

    An unreachable node gets a link from the most similar reachable node near it that has room for one, or from any
    such node; if all are full, the most similar one gives its last link to the node, which takes over
    what it led to.
    """
    links = graph.links.copy()
    reached = np.zeros(len(links), dtype=np.bool_)
    _spread(links, reached, np.array([graph.entry_point]))
    for node in np.flatnonzero(~reached).tolist():
        if reached[node]:
            continue  # through a node that was linked before it
        _attach(links, reached, node, vectors, m0=graph.m0)
        _spread(links, reached, np.array([node]))
    return replace(graph, links=links)


def _attach(links: NDArray[np.uint32], reached: NDArray[np.bool_], node: int, vectors: Vectors, *, m0: int) -> None:
    near = _near(links, node)
    room = near[reached[near] & (links[near, 0] < m0)]
    if not len(room):
        room = np.flatnonzero(reached & (links[:, 0] < m0))
    if len(room):
        from_row = _most_similar(room, node, vectors)
        count = int(links[from_row, 0])
        links[from_row, 1 + count] = node
        links[from_row, 0] = count + 1
        return
    from_row = _most_similar(np.flatnonzero(reached), node, vectors)
    taken_over = int(links[from_row, m0])
    links[from_row, m0] = node
    own_count = int(links[node, 0])
    if taken_over not in links[node, 1 : 1 + own_count]:
        # A full list loses its last link: nothing was reached through this node before.
        slot = min(own_count, m0 - 1)
        links[node, 1 + slot] = taken_over
        links[node, 0] = slot + 1


def _near(links: NDArray[np.uint32], node: int) -> NDArray[np.int64]:
    """What the node links to, directly and over one other: where its likes are, without comparing all rows."""
    first = links[node, 1 : 1 + int(links[node, 0])].astype(np.int64)
    records = links[first]
    second = records[:, 1:][np.arange(links.shape[1] - 1) < records[:, :1]].astype(np.int64)
    return np.unique(np.concatenate([first, second]))


def _most_similar(rows: NDArray[np.int64], node: int, vectors: Vectors) -> int:
    """Of ``rows`` (at least one), compared in pieces."""
    best_row, best = int(rows[0]), -np.inf
    for start in range(0, len(rows), _COMPARED_ROWS):
        part = rows[start : start + _COMPARED_ROWS]
        similarities = vectors[part] @ vectors[node]
        place = int(np.argmax(similarities))
        if similarities[place] > best:
            best_row, best = int(part[place]), float(similarities[place])
    return best_row


def _spread(links: NDArray[np.uint32], reached: NDArray[np.bool_], frontier: NDArray[np.int64]) -> None:
    """Marks everything that links lead to from ``frontier``, it included."""
    reached[frontier] = True
    width = links.shape[1] - 1
    while len(frontier):
        records = links[frontier]
        targets = records[:, 1:][np.arange(width) < records[:, :1]]
        frontier = np.unique(targets[~reached[targets]]).astype(np.int64)
        reached[frontier] = True
