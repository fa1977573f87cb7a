"""Links the nodes of a graph that its walk could not reach.

hnswlib prunes links in one direction, and some nodes end up with none that leads to them; a search
would never find them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.write import Graph

if TYPE_CHECKING:
    from edgerag.types import Vectors


def link_unreachable(graph: Graph, vectors: Vectors) -> Graph:
    """The graph with every node reachable from the entry point on level 0.

    An unreachable node gets a link from the most similar reachable node that has room for one; if all
    are full, the most similar one gives its last link to the node, which takes over what it led to.
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
    room = reached & (links[:, 0] < m0)
    open_rows = np.flatnonzero(room)
    if len(open_rows):
        from_row = int(open_rows[np.argmax(vectors[open_rows] @ vectors[node])])
        count = int(links[from_row, 0])
        links[from_row, 1 + count] = node
        links[from_row, 0] = count + 1
        return
    full_rows = np.flatnonzero(reached)
    from_row = int(full_rows[np.argmax(vectors[full_rows] @ vectors[node])])
    taken_over = int(links[from_row, m0])
    links[from_row, m0] = node
    own_count = int(links[node, 0])
    if taken_over not in links[node, 1 : 1 + own_count]:
        # A full list loses its last link: nothing was reached through this node before.
        slot = min(own_count, m0 - 1)
        links[node, 1 + slot] = taken_over
        links[node, 0] = slot + 1


def _spread(links: NDArray[np.uint32], reached: NDArray[np.bool_], frontier: NDArray[np.int64]) -> None:
    """Marks everything that links lead to from ``frontier``, it included."""
    reached[frontier] = True
    width = links.shape[1] - 1
    while len(frontier):
        records = links[frontier]
        targets = records[:, 1:][np.arange(width) < records[:, :1]]
        frontier = np.unique(targets[~reached[targets]]).astype(np.int64)
        reached[frontier] = True
