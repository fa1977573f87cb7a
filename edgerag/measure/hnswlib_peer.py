"""hnswlib as the peer: it builds the graph that both search, and searches it all in memory.

Both search the same graph, so the figures compare the searching alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import hnswlib
import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.build import GraphSettings
from edgerag.measure.searchers import Searcher

if TYPE_CHECKING:
    from edgerag.types import Vectors

OPENER = f"{__name__}:open_hnswlib"
_SEED = 100
# Names of the functions that hnswlib compiles for each; they stay in a module that is not stripped.
_INSTRUCTIONS = {"AVX-512": b"ExtAVX512", "AVX": b"ExtAVX", "SSE": b"ExtSSE"}


def instructions() -> str:
    """The widest instructions that the installed hnswlib was compiled for, which it uses without asking: a build
    for any processor has SSE alone, and is half as fast as one for this processor."""
    code = Path(hnswlib.__file__).read_bytes()
    return next((name for name, mark in _INSTRUCTIONS.items() if mark in code), "unknown")


def build_file(file: Path, vectors: Vectors, *, settings: GraphSettings) -> None:
    """Writes hnswlib's file of ``vectors`` (n, dim), labelled by row."""
    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(
        max_elements=len(vectors), M=settings.m, ef_construction=settings.ef_construction, random_seed=_SEED
    )
    index.add_items(vectors, np.arange(len(vectors)), num_threads=settings.threads)
    index.save_index(str(file))


def open_hnswlib(file: Path, *, dimension: int, budget_bytes: int) -> Searcher:  # noqa: ARG001 (it knows no budget)
    """hnswlib's file, loaded whole."""
    return _HnswlibSearcher(file, dimension)


class _HnswlibSearcher:
    def __init__(self, file: Path, dimension: int) -> None:
        self._index = hnswlib.Index(space="ip", dim=dimension)
        self._index.load_index(str(file))

    @property
    def walk(self) -> str:
        return "f32 vectors in memory"

    def search_many(self, queries: Vectors, *, limit: int, ef: int) -> NDArray[np.int64]:
        self._index.set_ef(max(ef, limit))
        labels, _ = self._index.knn_query(queries, limit, num_threads=1)
        found: NDArray[np.int64] = labels.astype(np.int64)
        return found

    def search_one(self, query: Vectors, *, limit: int, ef: int) -> None:
        self._index.set_ef(max(ef, limit))
        self._index.knn_query(query[None], limit, num_threads=1)

    def close(self) -> None:
        del self._index
