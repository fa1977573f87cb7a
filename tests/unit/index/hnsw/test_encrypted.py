"""Encrypted segments: the same hits as plain ones whatever the budget and whoever searches meanwhile; nothing readable
on the disk; a damaged or foreign unit is named and never searched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.encryption.keys import new_library_key
from edgerag.encryption.units import HEADER_BYTES, TAG_BYTES, UNIT_BYTES, is_unit_file
from edgerag.errors import LibraryDamaged
from edgerag.index.hnsw.decrypted import DecryptedBlocks, Gate
from edgerag.index.hnsw.residency import Residency
from edgerag.machine import pages
from edgerag.machine.pressure import Level, Pressure

KEY = new_library_key()
needs_page_map = pytest.mark.skipif(bool(pages.PageTable().limitation), reason="needs Linux's page map")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, make_segment: Any) -> Any:
    """(plain, encrypted) of the same 6,000 rows, in blocks of 64 KiB."""
    from tests.unit.index.hnsw.conftest import clusters

    rows = clusters(6_000, 48, seed=5)
    folder = tmp_path_factory.mktemp("pair")
    return [make_segment(folder / name, rows, m=16, block_bytes=2**16, key=key) for name, key in _NAMES]


_NAMES = (("plain.hnsw", None), ("encrypted.hnsw", KEY))


@pytest.fixture
def both(pair: Any) -> Iterator[Any]:
    opened = []

    def open_both(searcher: str = "", **options: Any) -> Any:
        opened.extend([made.open(searcher, **{"flat_rows": 100} | options) for made in pair])
        return opened[-2:]

    yield open_both
    for segment in opened:
        segment.close()


def questions(count: int, *, seed: int = 9) -> Any:
    from tests.unit.index.hnsw.conftest import clusters

    return clusters(count, 48, seed=seed)


EXCLUDED = {
    "all": lambda rows: None,
    "every third": lambda rows: np.arange(rows) % 3 == 0,
    "nearly all": lambda rows: np.arange(rows) % 40 != 0,
    "all but a few": lambda rows: np.arange(rows) % 900 != 0,
}


@pytest.mark.parametrize("walk", ["nibbles", "bits"])
@pytest.mark.parametrize("excluded", EXCLUDED)
def test_the_same_hits_as_the_plain_one(both: Any, searcher: str, walk: Any, excluded: str) -> None:
    plain, encrypted = both(searcher, walk=walk)
    flags = EXCLUDED[excluded](plain.row_count)
    for query in questions(5 if searcher == "reference" else 30):
        options = {"limit": 10, "ef_search": 60, "excluded": flags}
        assert encrypted.search(query, **options) == plain.search(query, **options)
    assert (encrypted.blocks.hits > 0).any() == (excluded != "all but a few"), "few are compared one by one"


def test_many_queries_in_one_call(both: Any) -> None:
    plain, encrypted = both()
    expected, found = (each.search_many(questions(50), limit=10, ef_search=60) for each in (plain, encrypted))
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def test_near_duplicates_are_told_apart_by_their_full_vectors(tmp_path: Path, make_segment: Any) -> None:
    """The walk that reads full vectors at each step, through the same decryption."""
    random = np.random.default_rng(3)
    rows = np.ones((2_000, 48)) + 1e-3 * random.normal(size=(2_000, 48))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    plain, encrypted = (
        make_segment(tmp_path / name, rows, m=16, block_bytes=2**16, vector_type="f32", key=key).open(flat_rows=100)
        for name, key in _NAMES
    )
    options = {"limit": 5, "ef_search": 40, "excluded": None}
    assert encrypted.search(rows[17], **options) == plain.search(rows[17], **options)
    plain.close()
    encrypted.close()


def test_rows_and_a_segment_without_a_graph(both: Any, tmp_path: Path, make_segment: Any) -> None:
    plain, encrypted = both()
    rows = np.random.default_rng(1).permutation(plain.row_count)[:500]
    for expected, found in zip(plain.read_rows(rows), encrypted.read_rows(rows), strict=True):
        assert np.array_equal(found, expected)
    few = questions(300)
    small = [make_segment(tmp_path / name, few, with_graph=False, key=key).open() for name, key in _NAMES]
    for query in questions(5, seed=1):
        expected, found = (each.search(query, limit=7, ef_search=9, excluded=None) for each in small)
        assert found == expected
    for each in small:
        each.close()


@needs_page_map
@pytest.mark.parametrize("budget_bytes", [4096, 100_000, 300_000])
def test_a_budget_far_too_small_changes_no_answer(both: Any, pair: Any, budget_bytes: int) -> None:
    roomy, _ = both(walk="bits")
    residency = Residency(budget_bytes)
    tight = pair[1].open(walk="bits", residency=residency, flat_rows=100)
    assert residency.is_short
    asked = questions(12)
    expected = [roomy.search(query, limit=10, ef_search=40, excluded=None) for query in asked]
    wrong: list[int] = []

    def ask() -> None:
        for number, query in enumerate(asked):
            if tight.search(query, limit=10, ef_search=40, excluded=None) != expected[number]:
                wrong.append(number)

    in_threads(ask, 3)
    assert not wrong
    levels = tight.header.sections[0].length
    assert residency.resident_bytes() <= budget_bytes + levels + pages.PAGE_BYTES
    tight.close()


@needs_page_map
def test_releases_under_searching_threads_change_no_answer(both: Any, pair: Any) -> None:
    """What is released reads as zeros: no walk may come upon it."""
    roomy, _ = both(walk="nibbles")
    now = [0.0]
    residency = Residency(10**9, pressure=lambda: Pressure(Level.CALM, "", 0), clock=lambda: now[0])
    segment = pair[1].open(walk="nibbles", residency=residency, flat_rows=100)
    asked = questions(40)
    expected = [roomy.search(query, limit=10, ef_search=40, excluded=None) for query in asked]
    wrong: list[int] = []
    searching = threading.Event()
    searching.set()

    def ask() -> None:
        for _ in range(100):
            if residency.released_bytes > 3 * segment.blocks.size_bytes:
                return
            for number, query in enumerate(asked):
                if segment.search(query, limit=10, ef_search=40, excluded=None) != expected[number]:
                    wrong.append(number)

    def let_go() -> None:
        while searching.is_set():
            now[0] += 100.0  # everything counts as idle
            residency.relieve(Level.SOFT)
            residency.relieve(Level.CALM)

    releaser = threading.Thread(target=let_go)
    releaser.start()
    try:
        in_threads(ask, 3)
    finally:
        searching.clear()
        releaser.join()
    assert not wrong
    assert residency.released_bytes > 2 * segment.blocks.size_bytes, "blocks came and went all the time"
    segment.close()
    assert residency.resident_bytes() == 0


def in_threads(work: Any, count: int) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told in the thread of the test
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@needs_page_map
@pytest.mark.parametrize("let_go_of", ["all", "one"])
def test_what_is_released_before_the_walk_begins_is_not_read(both: Any, pair: Any, let_go_of: str) -> None:
    """Between the admission of its blocks and the walk itself, every time: then rows are decrypted one by one."""
    roomy, _ = both(walk="nibbles")
    segment = pair[1].open(walk="nibbles", residency=Residency(10**9), flat_rows=100)
    admit = segment._residency.admit

    def admitted_and_released(blocks: Any, numbers: Any) -> Any:
        room = admit(blocks, numbers)
        for number in numbers if let_go_of == "all" else [numbers[len(numbers) // 2]]:
            blocks.release(number)
        return room

    segment._residency.admit = admitted_and_released
    for query in questions(3):
        options = {"limit": 10, "ef_search": 40, "excluded": None}
        assert segment.search(query, **options) == roomy.search(query, **options)
    segment.close()


@needs_page_map
def test_released_blocks_give_their_memory_back_and_count_as_gone(pair: Any) -> None:
    residency = Residency(10**9)
    segment = pair[1].open(walk="nibbles", residency=residency, flat_rows=100)
    segment.search(questions(1)[0], limit=5, ef_search=20, excluded=None)
    assert isinstance(segment.blocks, DecryptedBlocks)
    assert residency.resident_bytes() > 100_000
    numbers = range(len(segment.blocks.spans))
    for number in numbers:
        segment.blocks.release(number)
    assert residency.resident_bytes() == 0
    with segment.blocks.held(numbers) as all_there:
        assert not all_there
    segment.close()


def test_whoever_is_alone_is_alone() -> None:
    gate, inside, most = Gate(), [0, 0], [0, 0]

    def together() -> None:
        for _ in range(300):
            with gate.together():
                inside[0] += 1
                most[0] = max(most[0], inside[1])
                inside[0] -= 1

    def alone() -> None:
        for _ in range(300):
            with gate.alone():
                inside[1] += 1
                most[1] = max(most[1], inside[1])
                inside[1] -= 1

    threads = [threading.Thread(target=work) for work in (together, alone, together, alone)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [0, 1]


def test_the_file_says_nothing(pair: Any) -> None:
    plain, encrypted = (made.path.read_bytes() for made in pair)
    assert is_unit_file(pair[1].path)
    assert not is_unit_file(pair[0].path)
    for what in (b"by rule", b"\x89ERAG", plain[-4000:-3900]):
        assert what in plain
        assert what not in encrypted
    assert abs(len(encrypted) - len(plain)) < len(plain) // 200 + 200


def test_no_flipped_bit_is_searched(pair: Any, tmp_path: Path, make_segment: Any) -> None:
    """Each is told by verifying, and by a search that comes upon it; a search that does not is right."""
    plain = pair[0].open(flat_rows=100)
    raw = pair[1].path.read_bytes()
    random = np.random.default_rng(4)
    query = questions(1)[0]
    expected = plain.search(query, limit=10, ef_search=40, excluded=None)
    told = 0
    for place in random.integers(0, len(raw), size=25).tolist():
        path = tmp_path / "encrypted.hnsw"
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        damaged = type(pair[1])(path, pair[1].identity, pair[1].header, pair[1].given, pair[1].labels, KEY)
        try:
            segment = damaged.open(flat_rows=100)
        except LibraryDamaged as error:
            assert str(path) in str(error)
            told += 1
            continue
        try:
            assert segment.search(query, limit=10, ef_search=40, excluded=None) == expected
        except LibraryDamaged as error:
            assert "does not open" in str(error)
            told += 1
        assert 1 <= len(segment.damage()) <= 2, "a unit may lie in two blocks"
        segment.close()
    assert told
    plain.close()


def test_a_unit_of_another_segment_is_refused(pair: Any, tmp_path: Path, make_segment: Any) -> None:
    """Of the same library, the same size and the same place."""
    other = make_segment(tmp_path / "other.hnsw", pair[1].given, m=16, block_bytes=2**16, key=KEY).path.read_bytes()
    raw = bytearray(pair[1].path.read_bytes())
    assert len(other) == len(raw)
    place = HEADER_BYTES + 3 * (UNIT_BYTES + TAG_BYTES)
    raw[place : place + UNIT_BYTES + TAG_BYTES] = other[place : place + UNIT_BYTES + TAG_BYTES]
    path = tmp_path / "encrypted.hnsw"
    path.write_bytes(raw)
    segment = type(pair[1])(path, pair[1].identity, pair[1].header, pair[1].given, pair[1].labels, KEY).open()
    assert "unit 3" in segment.damage()[0]
    segment.close()


def test_without_the_key_or_with_another_it_is_not_opened(pair: Any) -> None:
    made = pair[1]
    for key in (None, new_library_key()):
        stranger = type(made)(made.path, made.identity, made.header, made.given, made.labels, key)
        with pytest.raises(LibraryDamaged):
            stranger.open()
    plain = type(made)(pair[0].path, made.identity, made.header, made.given, made.labels, KEY)
    with pytest.raises(LibraryDamaged, match="no encrypted file"):
        plain.open()
