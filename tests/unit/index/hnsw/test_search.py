"""What a search of one segment promises, against exact search; for the reference and every path of the kernel."""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import LibraryDamaged
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.format import FIXED_BYTES, SECTION_BYTES, Header, SectionKind, block_spans
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.kernel import load_kernel
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.write import write_segment
from edgerag.types import EmbedderIdentity, SearchWork

ROWS = 20_000


def recall(made: Any, segment: Any, queries: Any, *, ef: int, excluded: Any = None, limit: int = 10) -> float:
    found = 0
    for query in queries:
        hits = segment.search(query, limit=limit, ef_search=ef, excluded=excluded)
        assert len({hit.chunk_id for hit in hits}) == limit
        found += len({hit.chunk_id for hit in hits} & set(made.exact(query, limit, excluded)))
    return found / (limit * len(queries))


@pytest.mark.parametrize("walk", ["nibbles", "bits"])
def test_recall_of_the_walk(clustered: Any, queries: Any, walk: Any) -> None:
    """Over narrow codes too: what they are less sure of is compared by the full vectors."""
    segment = clustered.open(walk=walk)
    assert segment.walk_name == {"nibbles": "4-bit codes", "bits": "1-bit codes"}[walk]
    assert recall(clustered, segment, queries, ef=80) >= 0.95
    assert recall(clustered, segment, queries, ef=10) < recall(clustered, segment, queries, ef=80)
    segment.close()


def test_scores_are_cosines(clustered: Any, queries: Any, searcher: str) -> None:
    segment = clustered.open(searcher)
    for query in queries[:10]:
        for hit in segment.search(query, limit=10, ef_search=60, excluded=None):
            given = clustered.given[(hit.chunk_id - 7) // 3].astype(np.float64)
            assert hit.score == pytest.approx(float(given @ query.astype(np.float64)), abs=1e-3)
    segment.close()


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_walk_among_the_dead_still_returns_as_many_as_asked(clustered: Any, queries: Any, share: float) -> None:
    segment = clustered.open()
    excluded = np.random.default_rng(1).random(ROWS) < share
    assert recall(clustered, segment, queries, ef=80, excluded=excluded) >= 0.95
    segment.close()


@pytest.mark.parametrize("walk", ["nibbles", "bits"])
@pytest.mark.parametrize("dead", [0.0, 0.5, 0.97])
def test_all_searchers_say_how_much_they_compared_and_read(
    clustered: Any, queries: Any, searcher: str, walk: Any, dead: float
) -> None:
    excluded = np.random.default_rng(5).random(ROWS) < dead if dead else None
    asked: dict[str, SearchWork] = {}
    for name in (searcher, "reference"):
        segment = clustered.open(name, walk=walk)
        work = asked[name] = SearchWork()
        for query in queries[:3]:
            segment.search(query, limit=10, ef_search=40, excluded=excluded, work=work)
        blocks = sum(block.hits > 0 for block in segment.block_heat())
        assert blocks <= work.blocks <= 3 * blocks
        segment.close()
    assert asked[searcher] == asked["reference"]
    assert asked[searcher].segments == 3
    assert 3 * 10 <= asked[searcher].distances < (3 * ROWS if dead < 0.97 else 2 * 3 * ROWS)


def test_an_exact_search_compares_every_row_once(clustered: Any, queries: Any, searcher: str) -> None:
    segment = clustered.open(searcher, flat_rows=10**9)
    work = SearchWork()
    segment.search(queries[0], limit=5, ef_search=1, excluded=None, work=work)
    assert work.distances == ROWS
    segment.close()


def test_few_live_rows_are_compared_exactly(clustered: Any, queries: Any, searcher: str) -> None:
    segment = clustered.open(searcher, flat_rows=5_000)
    excluded = np.random.default_rng(2).random(ROWS) < 0.9
    assert recall(clustered, segment, queries[:20], ef=10, excluded=excluded) == 1.0
    excluded[:] = True
    excluded[[5, 77]] = False
    hits = segment.search(queries[0], limit=10, ef_search=10, excluded=excluded)
    assert {hit.chunk_id for hit in hits} == set(clustered.labels[[5, 77]].tolist())
    excluded[:] = True
    assert segment.search(queries[0], limit=10, ef_search=10, excluded=excluded) == []
    assert segment.search(queries[0], limit=0, ef_search=10, excluded=None) == []
    segment.close()


def test_where_few_may_be_found_their_codes_are_compared(clustered: Any, queries: Any, searcher: str) -> None:
    """A walk would pass through thirty others for each of them, and may miss some."""
    segment = clustered.open(searcher)
    excluded = np.random.default_rng(2).random(ROWS) < 0.97
    assert recall(clustered, segment, queries[:20], ef=40, excluded=excluded) >= 0.99
    segment.close()


def test_the_exact_search_equals_sorting_everything(clustered: Any, queries: Any, searcher: str) -> None:
    segment = clustered.open(searcher, flat_rows=10**9)
    for query in queries[:3]:
        hits = segment.search(query, limit=50, ef_search=1, excluded=None)
        assert [hit.chunk_id for hit in hits] == clustered.exact(query, 50)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    segment.close()


def test_many_threads_share_a_segment_and_get_the_same_answers(clustered: Any, queries: Any) -> None:
    segment = clustered.open()
    ask = lambda query: segment.search(query, limit=10, ef_search=40, excluded=None)  # noqa: E731
    expected = [ask(query) for query in queries]
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(number for number, query in enumerate(queries) if ask(query) != expected[number])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    segment.close()


def test_a_larger_limit_than_ef_is_served(clustered: Any, queries: Any, searcher: str) -> None:
    segment = clustered.open(searcher)
    assert len(segment.search(queries[0], limit=300, ef_search=10, excluded=None)) == 300
    segment.close()


def test_arrays_of_another_shape_are_refused(clustered: Any, queries: Any) -> None:
    """The kernel could not tell, and would read beyond them."""
    segment = clustered.open()
    with pytest.raises(ValueError, match=r"queries of shape \(31,\) were given where \(32,\) was expected"):
        segment.search(queries[0, :31], limit=1, ef_search=10, excluded=None)
    with pytest.raises(ValueError, match=r"queries of shape \(100, 16\)"):
        segment.search_many(queries[:, :16], limit=1, ef_search=10)
    with pytest.raises(ValueError, match=r"flags of shape \(3,\) were given where \(20000,\) was expected"):
        segment.search(queries[0], limit=1, ef_search=10, excluded=np.zeros(3, dtype=np.bool_))
    segment.close()


def test_arrays_in_any_order_of_memory_are_read_right(clustered: Any, queries: Any) -> None:
    segment = clustered.open()
    flags = np.zeros((ROWS, 2), dtype=np.bool_)
    flags[:, 0] = np.random.default_rng(1).random(ROWS) < 0.5
    wide = np.zeros((32, 2), dtype=np.float64)
    wide[:, 0] = queries[0]
    strange = segment.search(wide[:, 0], limit=10, ef_search=40, excluded=flags[:, 0])
    assert strange == segment.search(queries[0], limit=10, ef_search=40, excluded=flags[:, 0].copy())
    segment.close()


@pytest.mark.parametrize("searcher_name", ["reference", ""])
def test_a_search_that_fails_spoils_no_later_one(
    make_segment: Any, material: Any, tmp_path: Path, searcher_name: str
) -> None:
    """What a failed search leaves in the working memory is not taken for the next one's."""
    vectors = material.clustered(3000, dimension=32)
    made = make_segment(tmp_path / "s", vectors, m=16, block_bytes=2**20, order="given")
    raw = bytearray(made.path.read_bytes())
    links = made.header.section(SectionKind.LINKS)
    for row in range(0, 3000, 100):
        group, place = divmod(row, links.rows_per_group)
        at = links.offset + group * links.group_bytes + place * links.row_bytes
        packed = int.from_bytes(raw[at : at + links.row_bytes], "little") & ~0xFFFF
        packed |= 32 | 0xFFF << (16 + 12 * 31)  # of its 32 links the last leads nowhere
        raw[at : at + links.row_bytes] = packed.to_bytes(links.row_bytes, "little")
    forge_checksums(raw, made.header)
    made.path.write_bytes(raw)

    def ask(segment: Any, query: Any) -> Any:
        try:
            return segment.search(query, limit=10, ef_search=20, excluded=None)
        except LibraryDamaged as error:
            return "has a damaged link list" in error.message

    queries = vectors[1::8]
    expected = []
    for query in queries:
        fresh = made.open(searcher_name)
        expected.append(ask(fresh, query))
        fresh.close()
    used = made.open(searcher_name)
    assert 0 < expected.count(True) < len(queries)
    assert [ask(used, query) for query in queries] == expected
    used.close()


def forge_checksums(raw: bytearray, header: Header) -> None:
    """Right checksums of all blocks and of the header over what stands there now."""
    table = FIXED_BYTES + 4 * header.max_level + SECTION_BYTES * len(header.sections)
    table = -(-(table + len(header.model_name.encode()) + len(header.weights_sha256)) // 4) * 4
    crcs = [zlib.crc32(raw[start:end]) for start, end in block_spans(header)]
    struct.pack_into(f"<{len(crcs)}I", raw, table, *crcs)
    struct.pack_into("<I", raw, 16, 0)
    struct.pack_into("<I", raw, 16, zlib.crc32(raw[: header.sections[0].offset]))


def test_an_unlinked_file_is_searched_to_the_end(clustered: Any, queries: Any, tmp_path: Path, searcher: str) -> None:
    import dataclasses

    copy = tmp_path / "copy"
    copy.write_bytes(clustered.path.read_bytes())
    segment = dataclasses.replace(clustered, path=copy).open(searcher)
    expected = segment.search(queries[0], limit=10, ef_search=40, excluded=None)
    copy.unlink()
    assert segment.search(queries[0], limit=10, ef_search=40, excluded=None) == expected
    segment.close()
    segment.close()
    gc.collect()


def test_a_file_cut_while_it_is_open_is_an_error_of_reading(clustered: Any, tmp_path: Path, searcher: str) -> None:
    import dataclasses

    copy = tmp_path / "copy"
    copy.write_bytes(clustered.path.read_bytes())
    segment = dataclasses.replace(clustered, path=copy).open(searcher)
    os.truncate(copy, clustered.header.file_bytes - 2**18)
    with pytest.raises(LibraryDamaged, match="copy cannot be read: it is shorter than it was"):
        segment.vectors(np.arange(ROWS))
    segment.close()


def test_where_residency_cannot_be_measured_it_says_so_and_search_works(
    clustered: Any, queries: Any, tmp_path: Path, searcher: str
) -> None:
    residency = Residency(1, pagemap=tmp_path / "missing")
    assert "cannot be measured" in residency.limitation
    segment = clustered.open(searcher, walk="bits", residency=residency)
    assert len(segment.search(queries[0], limit=10, ef_search=40, excluded=None)) == 10
    assert residency.resident_bytes() == 0
    segment.close()


def test_searching_needs_no_hnswlib() -> None:
    """A machine that only searches need not have it."""
    script = "import sys, edgerag.index.library; sys.exit('hnswlib' in sys.modules)"
    root = Path(__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", script], cwd=root, check=False).returncode == 0


@pytest.mark.parametrize("budget_bytes", [10**9, 300_000], ids=["4-bit codes", "1-bit codes"])
def test_near_duplicates_are_told_apart_though_the_codes_cannot(tmp_path: Path, budget_bytes: int) -> None:
    """Forms and logs: their vectors differ by less than an estimate errs, and the one asked for is still found."""
    random = np.random.default_rng(4)
    rows, dimension = 2_000, 384
    vectors = random.normal(size=dimension) + 0.1 * random.normal(size=(rows, dimension))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    identity = EmbedderIdentity("forms", "33" * 32, dimension, ("*",))
    graph = build_graph(vectors, scratch=tmp_path / "scratch", settings=GraphSettings())
    write_segment(tmp_path / "s", labels=np.arange(rows), vectors=vectors, graph=graph, identity=identity)
    segment = Segment(tmp_path / "s", identity=identity, residency=Residency(budget_bytes), flat_rows=100)
    queries = vectors[::40]
    found, right = 0, 0
    for number, query in enumerate(queries):
        hits = segment.search(query, limit=10, ef_search=40, excluded=None)
        found += hits[0].chunk_id == 40 * number
        exact = np.argsort(-(vectors @ query))[:10]
        right += len({hit.chunk_id for hit in hits} & set(exact.tolist()))
    many, _ = segment.search_many(queries, limit=10, ef_search=40)
    one_by_one = [segment.search(query, limit=10, ef_search=40, excluded=None) for query in queries]
    assert many.tolist() == [[hit.chunk_id for hit in hits] for hits in one_by_one]
    # Few rows in question are compared one by one, and by the codes are as hard to tell apart.
    labels = segment.labels(np.arange(rows))  # rows lie in an order of their own
    for query in queries[:10]:
        hits = segment.search(query, limit=10, ef_search=40, excluded=labels % 16 != 8)
        exact = np.argsort(np.where(np.arange(rows) % 16 == 8, -(vectors @ query), 2))[:10]
        assert len({hit.chunk_id for hit in hits} & set(exact.tolist())) >= 9
    segment.close()
    assert found >= 0.9 * len(queries)
    assert right >= 0.8 * 10 * len(queries)


def test_a_graph_without_upper_levels_is_searched_and_whole(tmp_path: Path) -> None:
    """hnswlib draws the level of each row by lot: a few rows may all stay on the ground."""
    vectors = np.eye(8, 64, dtype=np.float32)
    identity = EmbedderIdentity("few", "44" * 32, 64, ("*",))
    links = np.zeros((8, 33), dtype=np.uint32)
    links[:, 0] = 1
    links[:, 1] = np.roll(np.arange(8), -1)
    graph = Graph(m=16, m0=32, entry_point=0, level_counts=(), levels=np.zeros((0, 18), dtype=np.uint32), links=links)
    write_segment(tmp_path / "s", labels=np.arange(8), vectors=vectors, graph=graph, identity=identity)
    for kernel in (None, load_kernel()):
        segment = Segment(tmp_path / "s", identity=identity, residency=Residency(10**9), flat_rows=0, kernel=kernel)
        assert segment.damage() == []
        assert segment.search(vectors[5], limit=1, ef_search=8, excluded=None)[0].chunk_id == 5
        segment.close()
