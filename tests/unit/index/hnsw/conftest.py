"""Segments of every shape, and every searcher that this processor can run: the numpy reference and each path of the
kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from edgerag.encryption.keys import LibraryKey
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.format import Header
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.kernel import Kernel, load_kernel, supported_paths
from edgerag.index.hnsw.reference import fixed_products
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.view import HOT_SECTIONS, Walk
from edgerag.index.hnsw.write import VectorType, write_segment
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors

KERNEL = load_kernel()
PATHS = list(supported_paths(KERNEL.library)) if KERNEL else []
REFERENCE = "reference"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "searcher" in metafunc.fixturenames:
        metafunc.parametrize("searcher", [REFERENCE, *PATHS])
    if "path_name" in metafunc.fixturenames:
        metafunc.parametrize("path_name", PATHS)


def kernel_of(searcher: str) -> Kernel | None:
    return None if searcher == REFERENCE else load_kernel(searcher)


@dataclass(frozen=True)
class Made:
    """A segment file and what is in it."""

    path: Path
    identity: EmbedderIdentity
    header: Header
    given: Vectors  # by label's place, as they were before they were stored
    labels: Any
    key: LibraryKey | None = None

    def hot_bytes(self, walk: Walk) -> int:
        return sum(section.length for section in self.header.sections if section.kind in HOT_SECTIONS[walk])

    def open(
        self,
        searcher: str = "",
        *,
        walk: Walk = "nibbles",
        residency: Residency | None = None,
        flat_rows: int = 0,
    ) -> Segment:
        """Opened so that it is walked over these codes; ``searcher`` "" for the best."""
        residency = residency or Residency(10**9 if walk == "nibbles" else self.hot_bytes("bits"))
        kernel: Any = kernel_of(searcher) if searcher else "best"
        segment = Segment(
            self.path, identity=self.identity, residency=residency, flat_rows=flat_rows, kernel=kernel, key=self.key
        )
        assert not self.header.has_graph or residency.walk() == walk
        return segment

    def exact(self, query: Vectors, limit: int, excluded: Any = None) -> list[int]:
        """Chunk ids by comparing everything that is stored."""
        scores = fixed_products(self.stored(), query)
        if excluded is not None:
            scores = np.where(excluded, -3, scores)
            limit = min(limit, int((~excluded).sum()))
        return self.labels[np.lexsort((self.labels, -scores))[:limit]].tolist()

    @functools.cache  # noqa: B019 -- a few segments a session
    def stored(self) -> Vectors:
        """(n, dim) by row."""
        segment = self.open(REFERENCE, walk="nibbles", residency=Residency(10**9))
        stored = segment.vectors(np.arange(len(self.labels)))
        segment.close()
        return stored

    def __hash__(self) -> int:
        return hash(self.path)


def make(
    path: Path,
    vectors: Vectors,
    *,
    graph: Graph | None = None,
    labels: Any = None,
    m: int = 8,
    with_graph: bool = True,
    block_bytes: int = 4096,
    vector_type: VectorType = "f16",
    order: Literal["local", "given"] = "local",
    key: LibraryKey | None = None,
) -> Made:
    if graph is None and with_graph:
        settings = GraphSettings(m=m, ef_construction=80)
        graph = build_graph(vectors, scratch=path.with_name("scratch") if key is None else None, settings=settings)
    identity = EmbedderIdentity("by rule", "11" * 32, vectors.shape[1], ("*",))
    written = write_segment(
        path,
        labels=np.arange(len(vectors)) * 3 + 7 if labels is None else labels,
        vectors=vectors,
        graph=graph,
        identity=identity,
        block_bytes=block_bytes,
        vector_type=vector_type,
        order=order,
        key=key,
    )
    return Made(path, identity, written.header, vectors, written.labels, key)


@pytest.fixture(scope="session")
def make_segment() -> Callable[..., Made]:
    return make


@pytest.fixture(scope="session")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """20,000 rows in 200 clusters, 100 more of the same kind to ask with."""
    rows = clusters(20_000, 32, seed=5)
    return make(tmp_path_factory.mktemp("clustered") / "s", rows, m=16, block_bytes=2**18)


def clusters(count: int, dimension: int, *, seed: int) -> Vectors:
    """(count, dimension) unit rows; the clusters are the same for each seed."""
    centres = np.random.default_rng(11).normal(size=(200, dimension))
    random = np.random.default_rng(seed)
    rows = centres[random.integers(200, size=count)] + 0.8 * random.normal(size=(count, dimension))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.fixture(scope="session")
def queries() -> Vectors:
    return clusters(100, 32, seed=6)
