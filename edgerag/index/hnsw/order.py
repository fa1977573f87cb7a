"""The order of rows in a segment: linked ones near each other, so that a walk stays on few pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.kernel import load_kernel

# Rows that Gorder looks back on; its paper finds no gain beyond five.
_WINDOW = 5


def local_order(links: NDArray[np.uint32], *, start: int) -> NDArray[np.int64]:
    """(n,) rows; ``links`` (n, 1 + m0): count, links in range.

    Gorder (Wei et al., SIGMOD 2016) in the kernel; without it breadth first, which gains little.
    """
    kernel = load_kernel()
    return kernel.local_order(links, window=_WINDOW, start=start) if kernel else breadth_first(links, start=start)


def breadth_first(links: NDArray[np.uint32], *, start: int) -> NDArray[np.int64]:
    """(n,) rows by their distance from ``start`` in links; those that it does not reach come last."""
    width = links.shape[1] - 1
    seen = np.zeros(len(links), dtype=np.bool_)
    frontier = np.array([start], dtype=np.int64)
    order = []
    while len(frontier):
        seen[frontier] = True
        order.append(frontier)
        records = links[frontier]
        targets = records[:, 1:][np.arange(width) < records[:, :1]].astype(np.int64)
        targets = targets[~seen[targets]]
        first = np.unique(targets, return_index=True)[1]
        frontier = targets[np.sort(first)]
    return np.concatenate([*order, np.flatnonzero(~seen)])
