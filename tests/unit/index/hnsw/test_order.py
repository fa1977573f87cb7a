"""The order of rows: a permutation that brings linked rows together, and changes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.index.hnsw import order
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.graph import Graph, reordered


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    random = np.random.default_rng(5)
    rows = random.normal(size=(60, 24))[random.integers(60, size=4000)] + 0.6 * random.normal(size=(4000, 24))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    scratch = tmp_path_factory.mktemp("order") / "scratch"
    return build_graph(rows, scratch=scratch, settings=GraphSettings(m=8, ef_construction=60))


def mean_log_gap(graph: Graph) -> float:
    """Mean log2 of how far apart linked rows lie: how many halvings of the file stand between them."""
    used = np.arange(graph.m0) < graph.links[:, :1]
    gaps = np.abs(graph.links[:, 1:].astype(np.int64) - np.arange(len(graph.links))[:, None])[used]
    return float(np.log2(np.maximum(gaps, 1)).mean())


@pytest.mark.parametrize("way", ["kernel", "without it"])
def test_linked_rows_come_together(graph: Graph, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way != "kernel":
        monkeypatch.setattr(order, "load_kernel", lambda: None)
    rows = order.local_order(graph.links, start=graph.entry_point)
    assert np.array_equal(np.sort(rows), np.arange(len(graph.links)))
    assert rows[0] == graph.entry_point
    assert np.array_equal(rows, order.local_order(graph.links, start=graph.entry_point))
    gain = mean_log_gap(graph) - mean_log_gap(reordered(graph, rows))
    assert gain > (2.5 if way == "kernel" else 0.2)


@pytest.mark.parametrize("way", ["kernel", "without it"])
def test_rows_that_nothing_leads_to_are_placed_too(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way != "kernel":
        monkeypatch.setattr(order, "load_kernel", lambda: None)
    for links in (
        np.zeros((1, 3), dtype=np.uint32),
        np.zeros((50, 1), dtype=np.uint32),
        np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [2, 3, 3]], dtype=np.uint32),  # to itself, twice
        np.array([[1, 0]] * 5000, dtype=np.uint32),  # a crowd around one row
    ):
        rows = order.local_order(links, start=len(links) - 1)
        assert np.array_equal(np.sort(rows), np.arange(len(links)))


def test_a_reordered_graph_is_the_same_graph(graph: Graph) -> None:
    rows = np.random.default_rng(1).permutation(len(graph.links))
    moved = reordered(graph, rows)
    assert rows[moved.entry_point] == graph.entry_point
    for row in range(0, len(rows), 97):
        count = int(moved.links[row, 0])
        assert rows[moved.links[row, 1 : 1 + count]].tolist() == graph.links[rows[row], 1 : 1 + count].tolist()
    start = 0
    for nodes in graph.level_counts:
        before = {int(r[0]): r[2 : 2 + int(r[1])].tolist() for r in graph.levels[start : start + nodes]}
        part = moved.levels[start : start + nodes]
        assert (np.diff(part[:, 0].astype(np.int64)) > 0).all()
        after = {int(rows[r[0]]): rows[r[2 : 2 + int(r[1])]].tolist() for r in part}
        assert after == before
        start += nodes


def test_the_order_in_the_file_changes_no_exact_answer(tmp_path: Path, make_segment: Any, material: Any) -> None:
    vectors = material.clustered(500, dimension=24)
    answers = []
    for name in ("local", "given"):
        made = make_segment(tmp_path / name, vectors, order=name)
        segment = made.open(flat_rows=10**9)
        assert np.array_equal(segment.labels(np.arange(500)), made.labels)
        assert np.array_equal(made.labels, np.sort(made.labels)) == (name == "given")
        assert np.array_equal(segment.vectors(np.arange(500)), vectors[(made.labels - 7) // 3].astype(np.float16))
        answers.append(
            [segment.search(vectors[row], limit=20, ef_search=1, excluded=None) for row in range(0, 500, 50)]
        )
        segment.close()
    assert answers[0] == answers[1]
