"""usearch as a peer: f32 vectors in its own file, opened with ``view`` (mapped, not loaded).

usearch is wanted by the benches alone and is optional: ``pip install usearch`` beside the product. Where it is
absent, :func:`missing` says so and the results hold that sentence in its place.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from vector_sets import cached

from edgerag.index.hnsw.build import GraphSettings
from edgerag.measure.sets import VectorSet

if TYPE_CHECKING:
    from edgerag.measure.searchers import Searcher
    from edgerag.types import Vectors

OPENER = f"{__name__}:open_usearch"


def missing() -> str:
    """Why it cannot be measured; "" when it can."""
    return "" if find_spec("usearch") else "usearch is not installed here (pip install usearch)"


def usearch_file(data: VectorSet, *, threads: int = 2) -> Path:
    """usearch's saved index with the connectivity and expansion of ours; built if it is not there."""
    file = cached(f"{data.name}.usearch")
    if not file.exists():
        build_usearch(file, data.base, threads=threads)
    return file


def build_usearch(file: Path, vectors: Vectors, *, threads: int) -> None:
    index = _new_index(vectors.shape[1])
    index.add(np.arange(len(vectors), dtype=np.uint64), np.ascontiguousarray(vectors), threads=threads)
    partial = file.with_suffix(".part")
    index.save(str(partial))
    partial.rename(file)


def open_usearch(file: Path, *, dimension: int, budget_bytes: int) -> Searcher:  # noqa: ARG001 (it knows no budget)
    return _UsearchSearcher(file, dimension)


class _UsearchSearcher:
    def __init__(self, file: Path, dimension: int) -> None:
        self._index = _new_index(dimension)
        self._index.view(str(file))

    @property
    def walk(self) -> str:
        return "f32 vectors in the file"

    def search_many(self, queries: Vectors, *, limit: int, ef: int) -> NDArray[np.int64]:
        self._index.expansion_search = max(ef, limit)
        found: NDArray[np.int64] = self._index.search(queries, limit, threads=1).keys.astype(np.int64)
        return found

    def search_one(self, query: Vectors, *, limit: int, ef: int) -> None:
        self._index.expansion_search = max(ef, limit)
        self._index.search(query, limit, threads=1)

    def close(self) -> None:
        self._index.reset()


def _new_index(dimension: int) -> Any:
    from usearch.index import Index

    settings = GraphSettings()
    return Index(
        ndim=dimension,
        metric="ip",
        dtype="f32",
        connectivity=settings.m,
        expansion_add=settings.ef_construction,
        enable_key_lookups=False,
    )
