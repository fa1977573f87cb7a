"""Every path of the kernel gives the hits of the numpy reference, bit for bit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.view import Effort

ROWS = 300
WALKS = ("nibbles", "bits")


@pytest.fixture(scope="session")
def shaped(tmp_path_factory: pytest.TempPathFactory, make_segment: Any) -> Callable[..., Any]:
    """Segments by dimension and number type, made once."""
    folder = tmp_path_factory.mktemp("shaped")

    @functools.cache
    def shape(dimension: int, vector_type: str, *, flat: bool = False) -> Any:
        rows = np.random.default_rng(dimension).normal(size=(ROWS, dimension)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        path = folder / f"{dimension}-{vector_type}-{flat}"
        return make_segment(path, rows, with_graph=not flat, vector_type=vector_type, block_bytes=2**14)

    return shape


def questions(dimension: int, count: int = 2) -> Any:
    rows = np.random.default_rng(99).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def dead(share: float, rows: int = ROWS) -> Any:
    return None if not share else np.random.default_rng(3).random(rows) < share


def answers(made: Any, searcher: str, *, efforts: tuple[tuple[int, int], ...], flat: bool) -> dict[str, Any]:
    """Everything a segment can be asked, with the float of every hit."""
    found: dict[str, Any] = {}
    asked = questions(made.header.dimension)
    for walk in WALKS[: 1 if flat else 2]:
        segment = made.open(searcher, walk=walk)
        for share in (0, 0.3, 0.7, 0.97):
            for limit, ef in efforts:
                for number, query in enumerate(asked):
                    hits = segment.search(query, limit=limit, ef_search=ef, excluded=dead(share))
                    found[f"{walk}, {share:.0%} dead, limit {limit}, ef {ef}, query {number}"] = hits
        labels, similarities = segment.search_many(asked, limit=10, ef_search=30)
        found[f"{walk}, many"] = (labels.tolist(), similarities.tolist())
        segment.close()
    exact = made.open(searcher, flat_rows=10**9)
    found["exact"] = exact.search(asked[0], limit=50, ef_search=1, excluded=dead(0.3))
    rows = np.random.default_rng(1).integers(ROWS, size=100)
    found["rows"] = (exact.vectors(rows).tolist(), exact.labels(rows).tolist())
    exact.close()
    return found


@functools.cache
def of_the_reference(made: Any, efforts: tuple[tuple[int, int], ...], flat: bool) -> dict[str, Any]:
    return answers(made, "reference", efforts=efforts, flat=flat)


def assert_same(made: Any, path_name: str, *, efforts: tuple[tuple[int, int], ...] = ((5, 20),), flat: bool) -> None:
    expected = of_the_reference(made, efforts, flat)
    found = answers(made, path_name, efforts=efforts, flat=flat)
    for question, hits in expected.items():
        assert found[question] == hits, question
        assert len(hits) > 0, question


@pytest.mark.parametrize("vector_type", ["f16", "f32"])
@pytest.mark.parametrize("dimension", [1, 7, 24, 64, 100, 384, 768, 1000, 1024])
def test_at_every_dimension(shaped: Any, path_name: str, dimension: int, vector_type: str) -> None:
    assert_same(shaped(dimension, vector_type), path_name, flat=False)


@pytest.mark.parametrize("dimension", [7, 100])
def test_without_a_graph(shaped: Any, path_name: str, dimension: int) -> None:
    assert_same(shaped(dimension, "f16", flat=True), path_name, flat=True)


def test_at_every_effort(shaped: Any, path_name: str) -> None:
    efforts = ((1, 1), (1, 50), (10, 1), (50, 10), (ROWS, 10), (ROWS + 50, 1000), (ROWS - 1, 10**6))
    assert_same(shaped(24, "f16"), path_name, efforts=efforts, flat=False)


def test_equal_rows_come_by_their_chunk_id(
    tmp_path_factory: pytest.TempPathFactory, make_segment: Any, searcher: str
) -> None:
    rows = np.repeat(questions(40, 30), 10, axis=0)
    labels = np.random.default_rng(4).permutation(300) + 1000
    made = make_segment(tmp_path_factory.mktemp("equal") / "s", rows, labels=labels, m=16)
    for walk in WALKS:
        segment = made.open(searcher, walk=walk)
        for number in range(0, 30, 7):
            hits = segment.search(rows[10 * number], limit=10, ef_search=100, excluded=None)
            assert [hit.chunk_id for hit in hits] == sorted(labels[10 * number : 10 * number + 10].tolist())
        segment.close()


def test_the_estimates_are_the_same_in_their_whole_order(shaped: Any, path_name: str) -> None:
    """The query is rotated, rounded and compared as codes.py does it: each row takes the same place."""
    for dimension in (1, 100, 384, 1000):
        made = shaped(dimension, "f16")
        query = questions(dimension, 1)[0]
        rows = np.arange(0, ROWS, 7)
        for walk in WALKS:
            orders = []
            for searcher in ("reference", path_name):
                segment = made.open(searcher)
                found = [
                    set(
                        segment._searcher.near_rows(
                            query, Effort(ROWS, ROWS, best, 0.0), walk=walk, rows=rows, room=None
                        ).labels.tolist()
                    )
                    for best in range(1, len(rows) + 1)
                ]
                orders.append(found)
                segment.close()
            assert orders[0] == orders[1], (dimension, walk)
            assert [len(best) for best in orders[0]] == list(range(1, len(rows) + 1))


def test_many_questions_at_once_are_answered_as_one_by_one(shaped: Any, searcher: str) -> None:
    made = shaped(64, "f16")
    asked = questions(64, 20)
    for flat_rows, limit in ((0, 10), (10**9, 10), (0, ROWS + 5)):
        segment = made.open(searcher, flat_rows=flat_rows)
        labels, similarities = segment.search_many(asked, limit=limit, ef_search=40)
        for number, query in enumerate(asked):
            hits = segment.search(query, limit=limit, ef_search=40, excluded=None)
            assert labels[number].tolist() == [hit.chunk_id for hit in hits] + [-1] * (limit - len(hits))
            assert similarities[number, : len(hits)].tolist() == [hit.score for hit in hits]
        assert segment.search_many(asked, limit=0, ef_search=0)[0].shape == (20, 0)
        assert segment.search_many(asked[:0], limit=5, ef_search=5)[0].shape == (0, 5)
        segment.close()


def test_a_walk_in_slices_gives_the_same_hits(shaped: Any, searcher: str) -> None:
    class Sliced(Residency):
        """As if every page came anew each time and never more than one fitted."""

        pauses = 0

        def admit(self, blocks: Any, numbers: Any) -> int | None:
            self.blocks = blocks
            return self.settle()

        def settle(self) -> int:
            self.pauses += 1
            self.blocks.absent[:] = 1
            return 1

    made = shaped(384, "f16")
    roomy, residency = made.open(searcher), Sliced(10**9)
    sliced, oracle = made.open(searcher, residency=residency), made.open("reference", residency=Sliced(10**9))
    for share in (0, 0.3, 0.7, 0.97):
        for query in questions(384, 3):
            options = {"limit": 5, "ef_search": 40, "excluded": dead(share)}
            hits = sliced.search(query, **options)
            assert hits == oracle.search(query, **options)
            # Where few rows are left, a walk in slices goes on walking where another compares the codes of the few.
            if share < 0.9:
                assert hits == roomy.search(query, **options)
    assert residency.pauses > 12
    for segment in (roomy, sliced, oracle):
        segment.close()
