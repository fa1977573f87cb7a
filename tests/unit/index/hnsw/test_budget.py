"""Invariant 4: the resident pages of a segment stay inside the budget, and a budget changes no answer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import LibraryDamaged
from edgerag.index.hnsw.format import SectionKind
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.machine import pages

pytestmark = pytest.mark.skipif(bool(pages.PageTable().limitation), reason="needs Linux's page map")

ROWS, DIMENSION, BLOCK_BYTES = 200_000, 64, 2**21


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory, make_segment: Any) -> Any:
    """50 MB whose links are drawn by lot, so that a walk goes everywhere."""
    random = np.random.default_rng(8)
    vectors = random.normal(size=(ROWS, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    links = random.integers(ROWS, size=(ROWS, 33), dtype=np.uint32)
    links[:, 0] = 32
    upper = np.sort(random.choice(ROWS, size=12_000, replace=False)).astype(np.uint32)
    levels = np.zeros((len(upper), 18), dtype=np.uint32)
    levels[:, 0], levels[:, 1] = upper, 16
    levels[:, 2:] = upper[random.integers(len(upper), size=(len(upper), 16))]
    graph = Graph(m=16, m0=32, entry_point=int(upper[0]), level_counts=(len(upper),), levels=levels, links=links)
    folder = tmp_path_factory.mktemp("spread")
    made = make_segment(folder / "s", vectors, graph=graph, block_bytes=BLOCK_BYTES, order="given")
    assert made.hot_bytes("bits") > 18_000_000
    return made


def questions(count: int) -> Any:
    rows = np.random.default_rng(9).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Sampled(Residency):
    """Notes what is resident whenever room is asked for: then all that the slice before could read was read. Goes in
    slices however little fits."""

    most = 0
    is_far_short = False  # type: ignore[assignment]

    def settle(self) -> int:
        self.most = max(self.most, self.resident_bytes())
        return super().settle()


# The instructions do not matter here: the reference, and the best that there is.
@pytest.mark.parametrize("name", ["reference", ""])
@pytest.mark.parametrize("budget_bytes", [4096, 6_000_000, 14_000_000])
def test_the_budget_holds_inside_a_search_and_changes_no_answer(spread: Any, name: str, budget_bytes: int) -> None:
    roomy = spread.open(name, walk="bits")
    residency = Sampled(budget_bytes)
    tight = spread.open(name, walk="bits", residency=residency)
    assert residency.is_short
    limit = budget_bytes + BLOCK_BYTES
    if budget_bytes == 4096:  # the entry levels are never released, and a page table knows 2 MiB and no less
        limit += spread.header.section(SectionKind.LEVELS).length + BLOCK_BYTES
    stop, seen = threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            seen.append(residency.resident_bytes())
            stop.wait(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for query in questions(1 if budget_bytes == 4096 else 2 if name else 20):
            for excluded in (None, np.arange(ROWS) % 3 == 0):
                options = {"limit": 10, "ef_search": 40, "excluded": excluded}
                assert tight.search(query, **options) == roomy.search(query, **options)
    finally:
        stop.set()
        watcher.join()
    assert residency.released_bytes > budget_bytes // 2, "what was read did not fit"
    assert max(budget_bytes // 2, 1) < residency.most <= limit
    assert max(seen) <= limit
    levels = spread.header.blocks_of(spread.header.section(SectionKind.LEVELS))
    assert residency.block_resident_bytes(tight.blocks)[levels.start] > 0, "the entry levels stay"
    tight.close()
    assert residency.resident_bytes() == 0
    roomy.close()


@pytest.mark.parametrize("name", ["reference", ""])
@pytest.mark.parametrize("budget_bytes", [4096, 6_000_000, 14_000_000])
def test_where_much_less_fits_rows_are_read_from_the_file(spread: Any, name: str, budget_bytes: int) -> None:
    """And not in slices, each of which releases what the next ones read again: nothing comes in but the levels."""
    roomy = spread.open(name, walk="bits")
    residency = Residency(budget_bytes)
    tight = spread.open(name, walk="bits", residency=residency)
    assert residency.is_far_short
    levels = spread.header.section(SectionKind.LEVELS).length
    for query in questions(2 if name else 10):
        for share in (0, 0.3, 0.965):  # all, some left out, so many that the rest is compared one by one
            excluded = np.random.default_rng(11).random(ROWS) < share if share else None
            options = {"limit": 10, "ef_search": 40, "excluded": excluded}
            assert tight.search(query, **options) == roomy.search(query, **options)
            assert residency.resident_bytes() <= levels + 2 * BLOCK_BYTES
    many = questions(3)
    for found, wanted in zip(
        tight.search_many(many, limit=5, ef_search=20), roomy.search_many(many, limit=5, ef_search=20), strict=True
    ):
        assert found.tolist() == wanted.tolist()
    assert residency.released_bytes <= levels + 2 * BLOCK_BYTES
    tight.close()
    roomy.close()


def test_where_nearly_all_fits_walks_go_in_slices(spread: Any) -> None:
    hot_bytes = spread.hot_bytes("bits")
    assert Residency(hot_bytes).is_far_short is False
    for share, is_far in ((0.95, False), (0.85, True)):
        residency = Residency(int(share * hot_bytes))
        segment = spread.open(walk="bits", residency=residency)
        assert (residency.is_short, residency.is_far_short) == (True, is_far)
        segment.close()


def test_a_damaged_row_is_named_when_it_is_read_from_the_file(spread: Any, tmp_path: Path) -> None:
    """As it is through the mapping: blocks are verified before anything of them is used."""
    damaged = tmp_path / "damaged.hnsw"
    data = bytearray(spread.path.read_bytes())
    links = spread.header.section(SectionKind.LINKS)
    data[links.offset + links.length // 2] ^= 1
    damaged.write_bytes(data)
    segment = Segment(damaged, identity=spread.identity, residency=Residency(4_000_000))
    with pytest.raises(LibraryDamaged, match="links"):
        segment.search(questions(1)[0], limit=10, ef_search=40, excluded=None)
    segment.close()


@pytest.mark.parametrize("name", ["reference", ""])
def test_a_budget_changes_no_answer_under_a_sparse_filter_either(spread: Any, name: str) -> None:
    """Few rows in question are compared one by one, in slices too: what is found may not depend on the memory."""
    roomy = spread.open(name, walk="bits")
    residency = Sampled(6_000_000)
    tight = spread.open(name, walk="bits", residency=residency)
    assert residency.is_short
    excluded = np.random.default_rng(11).random(ROWS) < 0.965
    assert 5_000 < np.count_nonzero(~excluded) < ROWS / 16
    for query in questions(4):
        answer = tight.search(query, limit=10, ef_search=20, excluded=excluded)
        assert answer == roomy.search(query, limit=10, ef_search=20, excluded=excluded)
    assert 0 < residency.most <= 6_000_000 + BLOCK_BYTES
    tight.close()
    roomy.close()


def test_no_time_is_lost_where_everything_fits(spread: Any) -> None:
    residency = Sampled(10**9)
    segment = spread.open(residency=residency)
    for query in questions(5):
        segment.search(query, limit=10, ef_search=40, excluded=None)
    assert residency.most == 0, "nothing was measured"
    assert 0 < residency.resident_bytes() <= spread.hot_bytes("nibbles") + BLOCK_BYTES
    segment.close()


@pytest.mark.parametrize("way", ["exact", "few", "vectors"])
def test_full_vectors_are_read_past_the_mapping(spread: Any, searcher: str, way: str) -> None:
    residency = Residency(10**9)
    segment = spread.open(searcher, residency=residency, flat_rows=10**9 if way == "exact" else 5_000)
    excluded = np.arange(ROWS) % (30 if way == "exact" else 100) != 0
    if way == "vectors":
        rows = np.random.default_rng(1).permutation(ROWS)[:3000]
        assert np.array_equal(segment.labels(rows), spread.labels[rows])
    else:
        assert len(segment.search(questions(1)[0], limit=10, ef_search=40, excluded=excluded)) == 10
    assert residency.resident_bytes() == 0
    segment.close()


def test_opening_and_verifying_bring_nothing_into_memory(spread: Any) -> None:
    residency = Residency(10**9)
    segment = spread.open(residency=residency)
    assert residency.resident_bytes() == 0
    assert segment.damage() == []
    assert residency.resident_bytes() == 0
    segment.close()


def test_a_segment_without_a_graph_that_does_not_fit_is_read_in_pieces(
    tmp_path: Path, make_segment: Any, searcher: str
) -> None:
    vectors = np.random.default_rng(1).normal(size=(4000, 768)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = make_segment(tmp_path / "flat", vectors, with_graph=False, block_bytes=2**21)
    roomy, residency = made.open(searcher), Sampled(2_000_000)
    tight = made.open(searcher, residency=residency)
    hits = tight.search(vectors[5], limit=10, ef_search=1, excluded=None)
    assert hits == roomy.search(vectors[5], limit=10, ef_search=1, excluded=None)
    assert hits[0].chunk_id == 22
    assert residency.resident_bytes() <= 2_000_000
    tight.close()
    roomy.close()
