"""What the budget manager promises, on real mapped files: a few blocks of a few megabytes."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from edgerag.index.hnsw.residency import WINDOW_BYTES, BlockMap, Residency
from edgerag.machine import pages
from edgerag.machine.pressure import Level, Pressure

BLOCK_BYTES, BLOCKS = 2 * WINDOW_BYTES, 8
CALM = Pressure(Level.CALM, "", None)

pytestmark = pytest.mark.skipif(bool(pages.PageTable().limitation), reason="needs Linux's page map")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def mapped(tmp_path: Path) -> Iterator[Callable[..., BlockMap]]:
    opened = []

    def make(name: str = "a", *, pinned: range = range(0)) -> BlockMap:
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(np.random.default_rng(1).bytes(BLOCK_BYTES) * BLOCKS)
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(path, os.O_RDONLY)
        opened.append(descriptor)
        mapping = mmap.mmap(descriptor, BLOCK_BYTES * BLOCKS, access=mmap.ACCESS_READ)
        spans = [(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES) for number in range(BLOCKS)]
        return BlockMap(mapping, spans, pinned=pinned, descriptor=descriptor)

    yield make
    for descriptor in opened:
        os.close(descriptor)


def residency_of(blocks: int, **options: object) -> Residency:
    options.setdefault("pressure", lambda: CALM)
    return Residency(blocks * BLOCK_BYTES, **options)  # type: ignore[arg-type]


def read(blocks: BlockMap, number: int, *, times: int = 1) -> None:
    """What a kernel does: reads rows of a block, and counts."""
    view = np.frombuffer(blocks.mapping, dtype=np.uint8)
    start, end = blocks.spans[number]
    assert view[start:end:4096].sum() > 0
    blocks.hits[number] += times


def held(residency: Residency, blocks: BlockMap) -> list[int]:
    return np.flatnonzero(residency.block_resident_bytes(blocks)).tolist()


def test_the_width_of_the_walk_follows_from_the_budget_and_all_maps(mapped: Callable[..., BlockMap]) -> None:
    demand = {"wide": 5 * BLOCK_BYTES, "middle": 3 * BLOCK_BYTES, "narrow": 2 * BLOCK_BYTES}
    residency = residency_of(6)
    first, second, third = mapped("a"), mapped("b"), mapped("c")
    residency.add(first, demand)
    assert (residency.walk(), residency.is_short, residency.hot_bytes) == ("wide", False, 5 * BLOCK_BYTES)
    residency.add(second, demand)
    assert (residency.walk(), residency.is_short) == ("middle", False)
    only_way = dict.fromkeys(demand, 3 * BLOCK_BYTES)  # a small segment, compared row by row in any case
    residency.add(third, only_way)
    assert (residency.walk(), residency.is_short) == ("narrow", True)
    residency.remove(first)
    other_order = residency_of(6)
    other_order.add(third, only_way)
    other_order.add(second, demand)
    assert residency.walk() == other_order.walk() == "middle"


def test_what_is_admitted_is_there_before_it_is_read(mapped: Callable[..., BlockMap]) -> None:
    residency, blocks = residency_of(4), mapped()
    residency.add(blocks, {"walk": 3 * BLOCK_BYTES})
    assert residency.resident_bytes() == 0
    assert residency.admit(blocks, (1, 2, 4)) is None
    assert held(residency, blocks) == [1, 2, 4]
    assert residency.resident_bytes() == 3 * BLOCK_BYTES


def test_room_is_made_by_releasing_the_coldest_never_the_entry_levels(mapped: Callable[..., BlockMap]) -> None:
    residency, blocks = residency_of(4), mapped(pinned=range(1))
    residency.add(blocks, {"walk": 3 * BLOCK_BYTES})
    residency.admit(blocks, (0, 1, 2, 3))
    read(blocks, 1, times=5)
    read(blocks, 2, times=1)
    read(blocks, 3, times=9)
    residency.admit(blocks, (4,))
    assert held(residency, blocks) == [0, 1, 3, 4], "block 0 was never read, but leads into the graph"
    read(blocks, 4)
    residency.admit(blocks, (5, 6))
    assert held(residency, blocks) == [0, 3, 5, 6]
    assert residency.resident_bytes() == residency.budget_bytes
    assert residency.released_bytes == 3 * BLOCK_BYTES


def test_old_hits_count_for_less_than_new_ones(mapped: Callable[..., BlockMap]) -> None:
    residency, blocks = residency_of(2), mapped()
    residency.add(blocks, {"walk": 2 * BLOCK_BYTES})
    residency.admit(blocks, (0, 1))
    read(blocks, 0, times=1000)
    blocks.heat(0)
    for _ in range(2000):
        residency.admit(blocks, (1,))
    read(blocks, 1, times=3)
    residency.admit(blocks, (2,))
    assert held(residency, blocks) == [1, 2]


def test_a_search_that_reads_after_its_blocks_were_released_is_found_out(mapped: Callable[..., BlockMap]) -> None:
    """Another thread's admission can release what a walk is reading: the next look puts it right."""
    clock = Clock()
    residency, blocks = residency_of(2, clock=clock), mapped()
    residency.add(blocks, {"walk": 2 * BLOCK_BYTES})
    residency.admit(blocks, (0, 1))
    residency.admit(blocks, (2, 3))
    read(blocks, 0)
    read(blocks, 1)
    assert residency.resident_bytes() == 4 * BLOCK_BYTES
    clock.now += 2
    residency.look()
    assert residency.resident_bytes() <= residency.budget_bytes


def test_entry_levels_that_end_inside_a_large_page_stay_whole(mapped: Callable[..., BlockMap]) -> None:
    blocks = mapped()
    odd = BlockMap(
        blocks.mapping,
        [(0, WINDOW_BYTES // 2), (WINDOW_BYTES // 2, 4 * WINDOW_BYTES)],
        pinned=range(1),
        descriptor=blocks.descriptor,
    )
    residency = residency_of(BLOCKS)
    residency.add(odd, {"walk": BLOCK_BYTES})
    residency.admit(odd, (0, 1))
    odd.release(1)
    resident = residency.block_resident_bytes(odd)
    assert resident[0] == WINDOW_BYTES // 2
    assert resident[1] <= WINDOW_BYTES


@pytest.mark.parametrize("scans", [True, False])
def test_a_walk_in_slices_stays_inside_the_budget(mapped: Callable[..., BlockMap], scans: bool) -> None:
    """As a kernel does it: each slice ends before it would enter more than the room that it was given."""
    residency, blocks = residency_of(4), mapped(pinned=range(1))
    residency._table._scans = scans
    residency.add(blocks, {"walk": BLOCKS * BLOCK_BYTES})
    assert residency.is_short
    room = residency.admit(blocks, range(BLOCKS))
    assert room is not None
    view = np.frombuffer(blocks.mapping, dtype=np.uint8)
    random = np.random.default_rng(3)
    most = 0
    for place in random.integers(len(blocks.mapping), size=2000).tolist():
        window = place // WINDOW_BYTES
        if blocks.absent[window] > room:
            most = max(most, residency.resident_bytes())
            room = residency.settle()
        room -= int(blocks.absent[window])
        blocks.absent[window] = 0
        assert view[place] >= 0
        blocks.hits[place // BLOCK_BYTES] += 1
    assert residency.budget_bytes // 2 < most <= residency.budget_bytes
    assert residency.released_bytes > 2 * residency.budget_bytes
    assert residency.block_resident_bytes(blocks)[0] == BLOCK_BYTES, "the entry levels stayed"


def test_a_release_that_only_moves_bytes_to_the_page_cache_is_not_called_freed(
    mapped: Callable[..., BlockMap],
) -> None:
    clock = Clock()
    residency, blocks = residency_of(BLOCKS, clock=clock), mapped(pinned=range(1))
    residency.add(blocks, {"walk": 6 * BLOCK_BYTES})
    residency.admit(blocks, (0, 1, 2, 3))
    assert residency.page_cache_bytes() == BLOCKS * BLOCK_BYTES, "just written"
    clock.now += 8
    residency.admit(blocks, (4, 5))
    read(blocks, 4)
    clock.now += 4
    soft = residency.relieve(Level.SOFT)
    assert (soft.released_bytes, soft.freed_bytes) == (4 * BLOCK_BYTES, 0)
    assert held(residency, blocks) == [0, 4], "the entry levels, and what was used just now"
    assert residency.page_cache_bytes() == BLOCKS * BLOCK_BYTES
    hard = residency.relieve(Level.HARD)
    assert (hard.released_bytes, hard.freed_bytes) == (0, (BLOCKS - 2) * BLOCK_BYTES)
    assert residency.page_cache_bytes() == 2 * BLOCK_BYTES
    assert (residency.released_bytes, residency.freed_bytes) == (4 * BLOCK_BYTES, 6 * BLOCK_BYTES)


def test_pressure_is_looked_at_once_a_second_and_narrows_the_budget_until_it_has_passed(
    mapped: Callable[..., BlockMap],
) -> None:
    clock = Clock()
    levels = [Level.HARD]
    asked = []

    def pressure() -> Pressure:
        asked.append(clock.now)
        return Pressure(levels[0], "the system has 5 MB left" if levels[0] else "", None)

    residency, blocks = residency_of(6, clock=clock, pressure=pressure), mapped()
    residency.add(blocks, {"wide": 5 * BLOCK_BYTES, "narrow": 2 * BLOCK_BYTES})
    numbers = (0, 1, 2, 3, 4)
    for _ in range(50):
        assert residency.admit(blocks, numbers) is None
    assert asked == []
    clock.now += 1.1
    assert residency.admit(blocks, numbers) is not None, "5 blocks do not fit half of 6: the walk is sliced"
    assert (residency.level, residency.reason) == (Level.HARD, "the system has 5 MB left")
    assert residency.walk() == "wide", "pressure changes no answer"
    assert residency.resident_bytes() <= 3 * BLOCK_BYTES
    levels[0] = Level.CALM
    clock.now += 5
    residency.look()
    assert residency.level is Level.HARD, "what was given back is not taken again at once"
    clock.now += 40
    assert residency.admit(blocks, numbers) is None
    assert (residency.level, residency.reason, len(asked)) == (Level.CALM, "", 3)
    assert held(residency, blocks) == [0, 1, 2, 3, 4]


def test_heat_tells_blocks_apart(mapped: Callable[..., BlockMap]) -> None:
    clock = Clock()
    residency, blocks = residency_of(BLOCKS, clock=clock), mapped()
    residency.add(blocks, {"walk": 2 * BLOCK_BYTES})
    residency.admit(blocks, (1, 2))
    clock.now += 3
    residency.admit(blocks, (1, 2))
    read(blocks, 1, times=7)
    clock.now += 5
    heat = residency.heat(blocks)
    assert heat.resident_bytes.tolist() == [0, BLOCK_BYTES, BLOCK_BYTES, 0, 0, 0, 0, 0]
    assert heat.cached_bytes.tolist() == [BLOCK_BYTES] * BLOCKS
    assert heat.hits.tolist() == [0, 7, 0, 0, 0, 0, 0, 0]
    assert heat.idle_s.tolist() == [8, 5, 8, 8, 8, 8, 8, 8]


def test_what_is_resident_of_a_file_is_counted_through_all_its_maps(mapped: Callable[..., BlockMap]) -> None:
    residency = residency_of(BLOCKS)
    looked, searched, other = mapped("a"), mapped("a"), mapped("b")
    for blocks in (looked, searched, other):
        residency.add(blocks, {"walk": 2 * BLOCK_BYTES})
    residency.admit(searched, (1, 2))
    residency.admit(other, (4,))
    read(searched, 1)
    read(searched, 2)
    read(other, 4)
    assert residency.file_resident_bytes(looked) == residency.heat(looked).resident_bytes.sum() == 2 * BLOCK_BYTES
    assert residency.resident_bytes() == 3 * BLOCK_BYTES


def test_threads_and_libraries_share_one_budget(mapped: Callable[..., BlockMap]) -> None:
    residency = residency_of(5)
    maps = [mapped("a"), mapped("b")]
    for blocks in maps:
        residency.add(blocks, {"walk": 2 * BLOCK_BYTES})
    failures: list[BaseException] = []

    def search(blocks: BlockMap, seed: int) -> None:
        try:
            random = np.random.default_rng(seed)
            for _ in range(150):
                numbers = tuple(random.choice(BLOCKS, size=2, replace=False).tolist())
                residency.admit(blocks, numbers)
                for number in numbers:
                    read(blocks, number)
                residency.heat(blocks)
        except BaseException as error:  # noqa: BLE001 -- shown by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=search, args=(blocks, seed)) for seed in (1, 2) for blocks in maps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    residency._next_look = 0.0
    residency.look()
    assert 0 < residency.resident_bytes() <= residency.budget_bytes
    for blocks in maps:
        residency.remove(blocks)
    assert residency.resident_bytes() == 0


def test_an_admission_that_changes_nothing_costs_microseconds(mapped: Callable[..., BlockMap]) -> None:
    import timeit

    residency, blocks = residency_of(4), mapped()
    residency.add(blocks, {"walk": 3 * BLOCK_BYTES})
    numbers = (0, 1, 2)
    seconds = min(timeit.repeat(lambda: residency.admit(blocks, numbers), number=2000, repeat=5)) / 2000
    assert seconds < 20e-6, "a measurement of the pages would take a hundred"


def test_where_nothing_can_be_measured_it_says_so_and_lets_everything_through(
    mapped: Callable[..., BlockMap], tmp_path: Path
) -> None:
    residency, blocks = Residency(1, pagemap=tmp_path / "missing"), mapped()
    residency.add(blocks, {"wide": 2 * BLOCK_BYTES, "narrow": BLOCK_BYTES})
    assert "cannot be measured" in residency.limitation
    assert (residency.walk(), residency.is_short, residency.admit(blocks, (0, 1))) == ("narrow", False, None)
    assert residency.settle() > 0
    assert residency.relieve(Level.HARD).released_bytes == residency.resident_bytes() == 0


_IN_A_GROUP = """
import mmap, os, sys
from pathlib import Path
import numpy as np
from edgerag.index.hnsw.residency import BlockMap, Residency
from edgerag.machine.pressure import Level, read_pressure
group, file = Path(sys.argv[1]), sys.argv[2]
descriptor = os.open(file, os.O_RDONLY)
os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # its pages are charged to whoever reads them
(group / "cgroup.procs").write_text("0")
size, block = os.fstat(descriptor).st_size, 8 * 2**20
mapping = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
spans = [(start, start + block) for start in range(0, size, block)]
blocks = BlockMap(mapping, spans, pinned=range(1), descriptor=descriptor)
seen = []
def pressure():
    seen.append(read_pressure())
    return seen[-1]
residency = Residency(int(sys.argv[3]), pressure=pressure)
residency.add(blocks, {"walk": size})
view = np.frombuffer(mapping, dtype=np.uint8)
most = total = 0
for number in list(range(len(spans))) * 3:
    residency._next_look = 0.0
    residency.admit(blocks, (number,))
    for start in range(*spans[number], 2**21):
        residency.settle()
        total += int(view[start : start + 2**21 : 4096].sum())
        most = max(most, residency.resident_bytes())
    blocks.hits[number] += 1
assert total > 0
usage = group / "memory.usage_in_bytes"
before = int(usage.read_text())
relief = residency.relieve(Level.HARD)
gone = before - int(usage.read_text())
print(most, max(each.room_bytes for each in seen), residency.released_bytes, relief.freed_bytes, gone)
"""


def test_inside_a_memory_group_the_budget_holds_and_the_limit_is_seen(tmp_path: Path) -> None:
    folder = Path("/sys/fs/cgroup/memory")
    group = folder / f"edgerag-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(120 * 2**20))
    except OSError:
        pytest.skip("no memory control group of version 1 that may be made here")
    try:
        file = tmp_path / "big"
        with file.open("wb") as stream:
            for _ in range(12):
                stream.write(np.random.default_rng(1).bytes(2**24))
            stream.flush()
            os.fsync(stream.fileno())
        budget_bytes = 48 * 2**20
        run = subprocess.run(
            [sys.executable, "-c", _IN_A_GROUP, str(group), str(file), str(budget_bytes)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        most, room, released, freed, gone = map(int, run.stdout.split())
        assert most <= budget_bytes
        assert released > budget_bytes
        assert room < 120 * 2**20, "the group's limit is seen, not the machine's memory"
        assert 0 < freed <= gone + 2**20, "what is called freed is gone from the group's account"
        assert "oom_kill 0" in (group / "memory.oom_control").read_text()
    finally:
        group.rmdir()
