from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import StorageFull
from edgerag.index.hnsw.build import BuildCancelled, GraphSettings, build_graph, read_graph
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.repair import link_unreachable

ROOT = Path(__file__).parents[4]


def build(vectors: Any, folder: Path, *, m: int = 8) -> Graph:
    graph = build_graph(vectors, scratch=folder / "scratch", settings=GraphSettings(m=m, ef_construction=60))
    assert list(folder.iterdir()) == [], "the scratch file is gone"
    return graph


def reachable(graph: Graph) -> set[int]:
    seen = {graph.entry_point}
    frontier = [graph.entry_point]
    while frontier:
        row = frontier.pop()
        count, *links = graph.links[row].tolist()
        for link in links[:count]:
            if link not in seen:
                seen.add(link)
                frontier.append(link)
    return seen


def test_the_same_vectors_give_the_same_graph(tmp_path: Path, material: Any) -> None:
    vectors = material.vectors(800)
    first, second = build(vectors, tmp_path), build(vectors, tmp_path)
    assert np.array_equal(first.links, second.links)
    assert np.array_equal(first.levels, second.levels)
    assert (first.entry_point, first.level_counts) == (second.entry_point, second.level_counts)


def test_levels_are_exported_in_order(tmp_path: Path, material: Any) -> None:
    graph = build(material.vectors(800), tmp_path)
    assert sum(graph.level_counts) == len(graph.levels)
    assert graph.level_counts == tuple(sorted(graph.level_counts, reverse=True))
    start = 0
    below = set(range(800))
    for count in graph.level_counts:
        records = graph.levels[start : start + count]
        nodes = records[:, 0].tolist()
        assert nodes == sorted(set(nodes))
        assert set(nodes) <= below
        for record in records.tolist():
            assert set(record[2 : 2 + record[1]]) <= set(nodes)
        below = set(nodes)
        start += count
    assert graph.entry_point in below


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiny_sets_have_a_graph_too(tmp_path: Path, material: Any, rows: int) -> None:
    assert reachable(build(material.vectors(rows), tmp_path)) == set(range(rows))


def test_duplicates_are_all_reachable(tmp_path: Path, material: Any) -> None:
    vectors = np.repeat(material.vectors(5), 200, axis=0)
    assert reachable(build(vectors, tmp_path, m=4)) == set(range(1000))


def test_unreachable_nodes_are_linked_from_their_nearest(tmp_path: Path, material: Any) -> None:
    vectors = material.vectors(300)
    graph = build(vectors, tmp_path)
    cut_off = {17, 200, 201}
    links = graph.links.copy()
    for row, (count, *targets) in enumerate(graph.links.tolist()):
        kept = [target for target in targets[:count] if target not in cut_off]
        links[row] = [len(kept), *kept, *[0] * (graph.m0 - len(kept))]
    assert not cut_off & reachable(dataclasses.replace(graph, links=links))
    repaired = link_unreachable(dataclasses.replace(graph, links=links), vectors)
    assert reachable(repaired) == set(range(300))
    for node in cut_off:
        nearest = np.argsort(-(vectors @ vectors[node]))[1:6]
        assert any(node in repaired.links[row, 1 : 1 + repaired.links[row, 0]] for row in nearest)


def test_unreachable_nodes_are_linked_even_where_no_list_has_room(material: Any) -> None:
    # A ring of full lists, and three nodes that nothing leads to.
    links = np.array([[1, (row + 1) % 10] for row in range(10)] + [[0, 0], [1, 3], [1, 10]], dtype=np.uint32)
    graph = Graph(m=1, m0=1, entry_point=0, level_counts=(), levels=np.empty((0, 3), dtype=np.uint32), links=links)
    assert reachable(link_unreachable(graph, material.vectors(13))) == set(range(13))


LIMITED_SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
from edgerag.errors import StorageFull
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.write import write_segment
from edgerag.index.store import translated
from edgerag.types import EmbedderIdentity
folder = Path(sys.argv[1])
vectors = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
graph = build_graph(vectors, scratch=folder / "scratch", settings=GraphSettings())
for limit in (0, 50, 4096, 100_000, 400_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        build_graph(vectors, scratch=folder / "scratch", settings=GraphSettings())
    except StorageFull as error:
        print("graph", limit)
for limit in (0, 4096, 100_000, 250_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with translated(folder / "segment"):
            write_segment(folder / "segment", labels=np.arange(2000), vectors=vectors, graph=graph,
                          identity=EmbedderIdentity("x", "00", 16, ()), block_bytes=4096)
    except StorageFull as error:
        print("segment", limit)
    (folder / "segment").unlink()
"""


def test_a_save_that_the_disk_refuses_is_noticed(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LIMITED_SCRIPT, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:-1] == [
        *(f"graph {limit}" for limit in (0, 50, 4096, 100_000, 400_000)),
        *(f"segment {limit}" for limit in (0, 4096, 100_000, 250_000)),
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_build_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path, material: Any) -> None:
    vectors = material.vectors(5000, dimension=4)
    settings = GraphSettings(m=4, ef_construction=10)
    told: list[tuple[int, int]] = []
    build_graph(vectors, scratch=tmp_path / "scratch", settings=settings, progress=lambda *done: told.append(done))
    assert told[-1] == (5000, 5000)
    assert told == sorted(set(told))
    assert len(told) > 1
    wishes = iter([False, True])
    with pytest.raises(BuildCancelled):
        build_graph(vectors, scratch=tmp_path / "scratch", settings=settings, cancelled=lambda: next(wishes))
    assert list(tmp_path.iterdir()) == []


def linked_to_the_nearest(graph: Graph, vectors: Any) -> float:
    """Of the rows, the share whose most similar other row is among their links."""
    similarities = vectors @ vectors.T
    np.fill_diagonal(similarities, -2)
    nearest = similarities.argmax(axis=1)
    return float(
        np.mean([nearest[row] in graph.links[row, 1 : 1 + graph.links[row, 0]] for row in range(len(vectors))])
    )


def test_a_graph_of_several_threads_has_the_rows_in_their_places(tmp_path: Path, material: Any) -> None:
    vectors = material.clustered(3000, dimension=16)
    graph = build_graph(vectors, scratch=tmp_path / "scratch", settings=GraphSettings(ef_construction=60, threads=3))
    assert reachable(graph) == set(range(3000))
    assert linked_to_the_nearest(graph, vectors) > 0.95


def test_rows_that_were_saved_in_another_order_are_put_in_their_places(tmp_path: Path, material: Any) -> None:
    import hnswlib

    vectors = material.clustered(1000, dimension=16)
    order = np.random.default_rng(2).permutation(1000)
    index = hnswlib.Index(space="ip", dim=16)
    index.init_index(max_elements=1000, M=8, ef_construction=60, random_seed=1)
    index.add_items(vectors[order], order, num_threads=1)
    index.save_index(str(tmp_path / "saved"))
    graph = read_graph(tmp_path / "saved", count=1000, dimension=16, settings=GraphSettings(m=8))
    assert linked_to_the_nearest(graph, vectors) > 0.95
    start, below = 0, set(range(1000))
    for count in graph.level_counts:
        nodes = graph.levels[start : start + count, 0].tolist()
        assert nodes == sorted(nodes)
        assert set(nodes) <= below
        start, below = start + count, set(nodes)
    assert graph.entry_point in below


def test_a_folder_that_is_gone_is_noticed(tmp_path: Path, material: Any) -> None:
    with pytest.raises(StorageFull, match="could not be saved"):
        build_graph(material.vectors(10), scratch=tmp_path / "gone" / "scratch", settings=GraphSettings())
