"""What is resident and what is cached, of a small mapped file, both ways of reading the page table."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from edgerag.machine import pages
from edgerag.machine.pages import PAGE_BYTES, WINDOW_BYTES

pytestmark = pytest.mark.skipif(bool(pages.PageTable().limitation), reason="needs Linux's page map")

PAGES = 4 * WINDOW_BYTES // PAGE_BYTES


@pytest.mark.parametrize("scans", [True, False])
def test_bytes_come_and_go_as_told(tmp_path: Path, scans: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (PAGES * PAGE_BYTES - 5))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
    table = pages.PageTable()
    table._scans = scans
    size = PAGES * PAGE_BYTES

    def resident() -> int:
        stretches = table.present(address, len(mapping))
        return int((stretches[:, 1] - stretches[:, 0]).sum())

    def cached() -> int:
        stretches = pages.cached(address, len(mapping))
        return int((stretches[:, 1] - stretches[:, 0]).sum())

    assert (resident(), cached()) == (0, size)
    pages.populate(address, size)
    assert resident() == size
    start = -address % WINDOW_BYTES + WINDOW_BYTES  # folios are mapped and let go as wholes
    pages.release(address + start, WINDOW_BYTES)
    assert table.present(address, len(mapping)).tolist() == [[0, start], [start + WINDOW_BYTES, size]]
    pages.release(address, size)
    assert (resident(), cached()) == (0, size)
    pages.drop_cache(descriptor, 0, size)
    assert (resident(), cached()) == (0, 0)
    os.close(descriptor)


def test_bytes_between_edges() -> None:
    stretches = np.array([[10, 20], [30, 35], [35, 40]])
    edges = np.array([0, 10, 15, 20, 25, 32, 35, 40, 90])
    assert pages.bytes_between(stretches, edges).tolist() == [0, 0, 5, 10, 10, 12, 15, 20, 20]
    assert pages.bytes_between(stretches[:0], edges).tolist() == [0] * 9


def test_more_stretches_than_one_call_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SCAN_REGIONS", 3)
    memory = mmap.mmap(-1, 64 * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE: pages come one by one
    for page in range(0, 64, 2):
        memory[page * PAGE_BYTES] = 1
    address = int(np.frombuffer(memory, dtype=np.uint8).ctypes.data)
    found = pages.PageTable().present(address, 64 * PAGE_BYTES)
    assert (found[:, 0] // PAGE_BYTES).tolist() == list(range(0, 64, 2))
