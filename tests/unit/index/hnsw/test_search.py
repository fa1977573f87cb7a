"""The reference kernel against exact search, over real segment files."""

from __future__ import annotations

import dataclasses
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.index.hnsw import kernel
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.write import write_segment

ROWS, DIMENSION, QUERIES = 20_000, 32, 100


@dataclasses.dataclass
class Built:
    path: Path
    identity: Any
    vectors: Any
    queries: Any

    def exact(self, query: Any, limit: int, dead: Any = None) -> list[int]:
        scores = kernel.exact_similarities(self.vectors, query)
        if dead is not None:
            scores = np.where(dead, -2.0, scores)
        return np.lexsort((np.arange(ROWS), -scores))[:limit].tolist()

    def open(self, budget_bytes: int = 10**9, **options: Any) -> Segment:
        return Segment(self.path, identity=self.identity, residency=Residency(budget_bytes), **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    random = np.random.default_rng(5)
    centres = random.normal(size=(200, DIMENSION))
    rows = centres[random.integers(200, size=ROWS + QUERIES)] + 0.8 * random.normal(size=(ROWS + QUERIES, DIMENSION))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    vectors, queries = np.ascontiguousarray(rows[:ROWS]), rows[ROWS:]
    folder = tmp_path_factory.mktemp("segment")
    graph = build_graph(vectors, scratch=folder / "scratch", settings=GraphSettings(ef_construction=100))
    from edgerag.types import EmbedderIdentity

    identity = EmbedderIdentity("clusters", "11" * 32, DIMENSION, ("*",))
    write_segment(
        folder / "s", labels=np.arange(ROWS), vectors=vectors, graph=graph, identity=identity, block_bytes=2**18
    )
    yield Built(folder / "s", identity, vectors, queries)


def recall(built: Built, segment: Segment, *, ef: int, dead: Any = None, limit: int = 10) -> float:
    found = 0
    for query in built.queries:
        hits = segment.search(query, limit=limit, ef_search=ef, dead=dead)
        assert len(hits) == limit
        assert len({hit.chunk_id for hit in hits}) == limit
        found += len({hit.chunk_id for hit in hits} & set(built.exact(query, limit, dead)))
    return found / (limit * QUERIES)


def test_recall_of_the_walk(built: Built) -> None:
    segment = built.open()
    assert recall(built, segment, ef=80) >= 0.95
    assert recall(built, segment, ef=10) < recall(built, segment, ef=80) + 0.01
    segment.close()


def test_a_walk_among_the_dead_still_returns_as_many_as_asked(built: Built) -> None:
    segment = built.open()
    for share in (0.3, 0.7):
        dead = np.random.default_rng(1).random(ROWS) < share
        assert recall(built, segment, ef=80, dead=dead) >= 0.95
    segment.close()


def test_few_live_rows_are_compared_exactly(built: Built) -> None:
    segment = built.open()
    dead = np.random.default_rng(2).random(ROWS) < 0.9
    assert recall(built, segment, ef=10, dead=dead) == 1.0
    dead[:] = True
    dead[[5, 77]] = False
    hits = segment.search(built.queries[0], limit=10, ef_search=10, dead=dead)
    assert {hit.chunk_id for hit in hits} == {5, 77}
    dead[:] = True
    assert segment.search(built.queries[0], limit=10, ef_search=10, dead=dead) == []
    segment.close()


def test_the_scan_equals_sorting_everything(built: Built) -> None:
    segment = built.open(flat_rows=10**9)
    for query in built.queries[:20]:
        hits = segment.search(query, limit=50, ef_search=1, dead=None)
        assert [hit.chunk_id for hit in hits] == built.exact(query, 50)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    segment.close()


def test_the_same_question_gets_the_same_answer(built: Built) -> None:
    first, second = built.open(), built.open()
    for query in built.queries[:20]:
        answer = first.search(query, limit=10, ef_search=40, dead=None)
        assert answer == second.search(query, limit=10, ef_search=40, dead=None)
        assert answer == first.search(query, limit=10, ef_search=40, dead=None)
    first.close()
    second.close()


def test_a_larger_limit_than_ef_is_served(built: Built) -> None:
    segment = built.open()
    assert len(segment.search(built.queries[0], limit=300, ef_search=10, dead=None)) == 300
    segment.close()


def test_a_budget_smaller_than_the_segment_holds_and_changes_no_answer(built: Built) -> None:
    """Invariant 4."""
    roomy = built.open()
    block_bytes = roomy.header.block_bytes
    budget_bytes = roomy.header.file_bytes // 4
    tight = built.open(budget_bytes)
    residency = tight._residency
    assert not residency.limitation
    most = 0
    dead = np.zeros(ROWS, dtype=np.bool_)
    dead[: ROWS - 2000] = True  # a scan
    for query in built.queries:
        for flags in (None, dead):
            expected = roomy.search(query, limit=10, ef_search=60, dead=flags)
            assert tight.search(query, limit=10, ef_search=60, dead=flags) == expected
            most = max(most, residency.resident_bytes())
    assert 0 < most <= budget_bytes + block_bytes
    assert residency.released_bytes > budget_bytes
    assert residency.page_cache_bytes() > budget_bytes, "released from this process, not from the page cache"
    assert roomy._residency.resident_bytes() > 2 * budget_bytes
    tight.close()
    assert residency.resident_bytes() == 0
    roomy.close()


BIG_ROWS, BIG_DIMENSION, BIG_BLOCK_BYTES = 60_000, 256, 2**18


@pytest.fixture(scope="module")
def big_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of some 70 MB in small blocks; its links are drawn by lot, so that a walk goes everywhere."""
    from edgerag.index.hnsw.write import Graph

    random = np.random.default_rng(8)
    vectors = random.normal(size=(BIG_ROWS, BIG_DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    links = random.integers(BIG_ROWS, size=(BIG_ROWS, 33), dtype=np.uint32)
    links[:, 0] = 32
    levels = np.zeros((1, 18), dtype=np.uint32)  # one node above, linked to nothing
    graph = Graph(m=16, m0=32, entry_point=0, level_counts=(1,), levels=levels, links=links)
    path = tmp_path_factory.mktemp("big") / "s"
    write_segment(
        path,
        labels=np.arange(BIG_ROWS),
        vectors=vectors,
        graph=graph,
        identity=_big_identity(),
        block_bytes=BIG_BLOCK_BYTES,
    )
    return path


def _big_identity() -> Any:
    from edgerag.types import EmbedderIdentity

    return EmbedderIdentity("by lot", "22" * 32, BIG_DIMENSION, ("*",))


@pytest.mark.parametrize("way", ["walk", "scan", "sparse scan", "vectors"])
def test_the_budget_holds_inside_a_search_too(big_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Invariant 4: measured after every single read of the file."""
    budget_bytes = 12_000_000
    residency = Residency(budget_bytes)
    segment = Segment(big_path, identity=_big_identity(), residency=residency, flat_rows=5000)
    assert segment.header.file_bytes > 5 * budget_bytes > 100 * BIG_BLOCK_BYTES
    seen: list[int] = []
    touch = Residency.touch

    def measured(self: Residency, *arguments: Any) -> None:
        seen.append(self.resident_bytes())  # when everything noted before was read
        touch(self, *arguments)

    monkeypatch.setattr(Residency, "touch", measured)
    random = np.random.default_rng(9)
    dead = None if way == "walk" else random.random(BIG_ROWS) < (0.5 if way == "scan" else 0.93)
    for _ in range(2):
        query = random.normal(size=BIG_DIMENSION).astype(np.float32)
        if way == "vectors":
            rows = random.permutation(BIG_ROWS)[:3000]
            assert np.array_equal(segment.vectors(rows), segment.vectors(np.sort(rows))[np.argsort(np.argsort(rows))])
            continue
        segment._flat_rows = BIG_ROWS if way == "scan" else 5000
        assert len(segment.search(query / np.linalg.norm(query), limit=10, ef_search=80, dead=dead)) == 10
    assert residency.released_bytes > budget_bytes, "the reads did not fit"
    assert budget_bytes // 2 < max(seen) <= budget_bytes + BIG_BLOCK_BYTES
    segment.close()


def test_the_entry_levels_are_never_released(built: Built) -> None:
    segment = built.open(4096)
    for query in built.queries[:5]:
        segment.search(query, limit=10, ef_search=60, dead=None)
    resident = segment._residency.block_resident_bytes(segment.blocks)
    assert segment.blocks.pinned
    assert resident[segment.blocks.pinned.start] > 0
    assert resident.sum() <= 4096 + segment.header.block_bytes
    segment.close()


def test_opening_and_verifying_bring_nothing_into_memory(built: Built) -> None:
    segment = built.open()
    assert segment._residency.resident_bytes() <= 4096
    segment.verify_blocks(np.arange(len(segment.header.block_crcs)))
    assert segment._residency.resident_bytes() <= 4096
    segment.close()


def test_an_unlinked_file_is_searched_to_the_end(built: Built, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(built.path.read_bytes())
    segment = dataclasses.replace(built, path=copy).open()
    expected = segment.search(built.queries[0], limit=10, ef_search=40, dead=None)
    copy.unlink()
    assert segment.search(built.queries[0], limit=10, ef_search=40, dead=None) == expected
    segment.close()
    segment.close()
    gc.collect()


def test_where_residency_cannot_be_measured_it_says_so_and_search_works(built: Built, tmp_path: Path) -> None:
    residency = Residency(1, pagemap=tmp_path / "missing")
    assert "cannot be measured" in residency.limitation
    segment = Segment(built.path, identity=built.identity, residency=residency)
    assert len(segment.search(built.queries[0], limit=10, ef_search=40, dead=None)) == 10
    assert residency.resident_bytes() == 0
    segment.close()


def test_searching_needs_no_hnswlib() -> None:
    """A machine that only searches need not have it."""
    script = "import sys, edgerag.index.library; sys.exit('hnswlib' in sys.modules)"
    root = Path(__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", script], cwd=root, check=False).returncode == 0
