from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edgerag.measure.memory import (
    Memory,
    high_water_bytes,
    page_cache_bytes,
    read_memory,
    reset_high_water,
    sampled_peak,
)

MEGABYTE = 10**6
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")


def fresh_array(size_bytes: int) -> np.ndarray:
    """Ones in memory from the system: what the allocator kept of other tests is not used again."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    array = np.frombuffer(mmap.mmap(-1, size_bytes, flags=private), dtype=np.uint8)
    array[:] = 1
    return array


@linux
def test_new_arrays_are_anonymous_memory_and_mapped_files_are_not(tmp_path: Path) -> None:
    before = read_memory()
    array = fresh_array(50 * MEGABYTE)
    grown = read_memory().since(before)
    assert grown.anonymous_bytes is not None and grown.anonymous_bytes > 45 * MEGABYTE
    array.tofile(tmp_path / "file")
    mapped = np.memmap(tmp_path / "file", dtype=np.uint8, mode="r")
    before = read_memory()
    assert int(mapped.sum(dtype=np.int64)) == 50 * MEGABYTE
    grown = read_memory().since(before)
    assert grown.file_bytes is not None and grown.file_bytes > 45 * MEGABYTE
    assert grown.anonymous_bytes is not None and grown.anonymous_bytes < 5 * MEGABYTE


@linux
def test_a_file_just_written_is_in_the_page_cache_and_asking_maps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(20 * MEGABYTE))
    before = read_memory()
    assert page_cache_bytes(tmp_path / "file") >= 20 * MEGABYTE
    assert read_memory().since(before).rss_bytes < 10 * MEGABYTE


def test_the_difference_keeps_what_is_unknown_unknown() -> None:
    assert Memory(5, None, None).since(Memory(3, 1, 1)) == Memory(2, None, None)


def touch(size_bytes: int) -> None:
    """Takes memory from the system and gives it back: what the allocator kept of other tests is not used again."""
    with mmap.mmap(-1, size_bytes) as memory:
        for start in range(0, size_bytes, mmap.PAGESIZE):
            memory[start] = 1


@linux
def test_the_high_water_is_what_was_held_since_the_reset() -> None:
    touch(80 * MEGABYTE)
    reset_high_water()
    before = read_memory().rss_bytes
    touch(30 * MEGABYTE)
    highest = high_water_bytes()
    assert highest is not None and 25 * MEGABYTE < highest - before < 60 * MEGABYTE


@linux
def test_memory_that_was_given_back_is_still_in_the_peak() -> None:
    before = read_memory()
    with sampled_peak() as peak:
        array = fresh_array(50 * MEGABYTE)
        seen = peak.samples
        while peak.samples < seen + 2:  # one sample may have begun before the array was there
            time.sleep(0.001)
        del array
    assert peak.rss_bytes - before.rss_bytes > 45 * MEGABYTE
