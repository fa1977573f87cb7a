"""The measured process of the "classic" scenario: opens an index, asks every query of a file, prints its memory.

    python bench/classic_process.py edgerag|hnswlib|bare INDEX QUERIES.npy EF BUDGET_BYTES

It imports what a program must import to search in that way, and no more. ``bare`` opens nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

K = 10


def main() -> None:
    engine, index, queries_file, ef, budget_bytes = sys.argv[1:]
    queries = np.load(queries_file)
    if engine == "edgerag":
        search_edgerag(Path(index), queries, ef=int(ef), budget_bytes=int(budget_bytes))
    elif engine == "hnswlib":
        search_hnswlib(index, queries, ef=int(ef))
    else:
        print_memory()


def search_edgerag(index: Path, queries: NDArray[np.float32], *, ef: int, budget_bytes: int) -> None:
    from edgerag.measure.searchers import open_edgerag

    searcher = open_edgerag(index, dimension=queries.shape[1], budget_bytes=budget_bytes)
    for query in queries:
        searcher.search_one(query, limit=K, ef=ef)
    print_memory()
    searcher.close()


def search_hnswlib(index: str, queries: NDArray[np.float32], *, ef: int) -> None:
    import hnswlib

    loaded = hnswlib.Index(space="ip", dim=queries.shape[1])
    loaded.load_index(index)
    loaded.set_ef(ef)
    for query in queries:
        loaded.knn_query(query[None], K, num_threads=1)
    print_memory()


def print_memory() -> None:
    """RSS in bytes, before anything is given back."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            print(int(line.split()[1]) * 1024, flush=True)


if __name__ == "__main__":
    main()
