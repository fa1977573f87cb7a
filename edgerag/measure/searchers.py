"""What is measured, behind one face: :class:`Searcher`. Here is edgerag's own; hnswlib's is in hnswlib_peer.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.kernel import load_kernel
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors


class Searcher(Protocol):
    """An opened index, for any number of threads. Labels are the rows that the vectors had when it was built."""

    @property
    def walk(self) -> str:
        """What is compared on the way, and with which instructions, for people."""

    def search_many(self, queries: Vectors, *, limit: int, ef: int) -> NDArray[np.int64]:
        """(queries, limit) labels, best first, in this thread; -1 where fewer were found."""

    def search_one(self, query: Vectors, *, limit: int, ef: int) -> None:
        """One search, as the program makes it."""

    def close(self) -> None: ...


def identity_of(dimension: int) -> EmbedderIdentity:
    """The embedder that segments made for measuring are said to come from."""
    return EmbedderIdentity(name="measured", weights_sha256="0" * 64, dimension=dimension, languages=("*",))


def open_edgerag(file: Path, *, dimension: int, budget_bytes: int) -> Searcher:
    """A segment file under a memory budget."""
    return _SegmentSearcher(file, dimension, Residency(budget_bytes))


class _SegmentSearcher:
    def __init__(self, file: Path, dimension: int, residency: Residency) -> None:
        self._segment = Segment(file, identity=identity_of(dimension), residency=residency)

    @property
    def walk(self) -> str:
        kernel = load_kernel()
        return f"{self._segment.walk_name}, {kernel.path_name if kernel else 'numpy without a kernel'}"

    def search_many(self, queries: Vectors, *, limit: int, ef: int) -> NDArray[np.int64]:
        return self._segment.search_many(queries, limit=limit, ef_search=ef)[0]

    def search_one(self, query: Vectors, *, limit: int, ef: int) -> None:
        self._segment.search(query, limit=limit, ef_search=ef, excluded=None)

    def close(self) -> None:
        self._segment.close()
