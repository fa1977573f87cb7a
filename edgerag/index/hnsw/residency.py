"""Keeps the mapped index inside ``memory.budget``: knows what is resident, block by block, and lets the coldest go.

What counts is this process's resident pages, read from ``/proc/self/pagemap``. ``mincore`` tells something
else, what the kernel's page cache holds of the file (shared, reclaimable at any time, and not freed
by MADV_DONTNEED), and is reported apart. Where pagemap or madvise do not exist, nothing is enforced and
:attr:`Residency.limitation` says so.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_PAGE_BYTES = mmap.PAGESIZE
_PAGEMAP = Path("/proc/self/pagemap")
_PRESENT = np.uint64(1 << 63)
# A fault on a page that is in the page cache maps its neighbours too: 64 KiB, or a large folio
# (half a megabyte seen on Linux 6.18, on freshly written files). A guess, to know when to measure inside
# a long walk; at its end it is always measured.
_FAULT_BYTES = 256 * 1024
# Released down to this share of the budget, so that not every search has to release.
_TARGET_SHARE = 7 / 8


class BlockMap:
    """The blocks of one mapped file: where they are, when they were last used."""

    def __init__(self, mapping: mmap.mmap, spans: Sequence[tuple[int, int]], *, pinned: range) -> None:
        """``spans`` are the byte spans of the blocks in the mapping; blocks in ``pinned`` are never released."""
        self.mapping = mapping
        self.spans = list(spans)
        self.pinned = pinned
        self.size_bytes = len(mapping)
        self.last_use: NDArray[np.int64] = np.zeros(len(self.spans), dtype=np.int64)
        # np.frombuffer is how a read-only mapping's address is had without copying it.
        self.address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)


class Residency:
    """The resident bytes of all mapped segments of a library, under one budget."""

    def __init__(self, budget_bytes: int, *, pagemap: Path = _PAGEMAP) -> None:
        self.budget_bytes = budget_bytes
        self._pagemap = pagemap
        self._maps: list[BlockMap] = []
        self._clock = 0
        self._touched_bytes = 0  # may have become resident since the last measurement
        self.released_bytes = 0  # in all, for reports
        self.limitation = _limitation(pagemap)

    def add(self, blocks: BlockMap) -> None:
        self._maps.append(blocks)

    def remove(self, blocks: BlockMap) -> None:
        self._maps.remove(blocks)

    def touch(self, blocks: BlockMap, numbers: NDArray[np.int64] | int, row_count: int) -> None:
        """Notes that ``row_count`` rows in these blocks are about to be read; makes room when they are many."""
        self._clock += 1
        blocks.last_use[numbers] = self._clock
        self._touched_bytes += row_count * _FAULT_BYTES
        # Inside a long walk or scan too, not only after it.
        if self._touched_bytes > max(self.budget_bytes // 4, 16 * _FAULT_BYTES):
            self.settle()

    def settle(self) -> None:
        """Releases the coldest blocks until the resident bytes are inside the budget."""
        if self.limitation or sum(blocks.size_bytes for blocks in self._maps) <= self.budget_bytes:
            self._touched_bytes = 0
            return
        sizes = [self.block_resident_bytes(blocks) for blocks in self._maps]
        total = sum(int(size.sum()) for size in sizes)
        if total > self.budget_bytes:
            coldest = sorted(
                (int(blocks.last_use[number]), index, number)
                for index, blocks in enumerate(self._maps)
                for number in range(len(blocks.spans))
                if sizes[index][number] and number not in blocks.pinned
            )
            for _, index, number in coldest:
                if total <= self.budget_bytes * _TARGET_SHARE:
                    break
                self._release(self._maps[index], number)
                total -= int(sizes[index][number])
                self.released_bytes += int(sizes[index][number])
        self._touched_bytes = 0

    def _release(self, blocks: BlockMap, number: int) -> None:
        start, end = blocks.spans[number]
        start, end = -(-start // _PAGE_BYTES) * _PAGE_BYTES, -(-end // _PAGE_BYTES) * _PAGE_BYTES
        if start < end:
            blocks.mapping.madvise(mmap.MADV_DONTNEED, start, min(end, blocks.size_bytes) - start)

    def resident_bytes(self) -> int:
        """Pages of the mapped files that are in this process; 0 where it cannot be measured."""
        return sum(self.file_resident_bytes(blocks) for blocks in self._maps)

    def file_resident_bytes(self, blocks: BlockMap) -> int:
        return int(self._present(blocks).sum()) * _PAGE_BYTES

    def block_resident_bytes(self, blocks: BlockMap) -> NDArray[np.int64]:
        """(block count,) resident bytes of each block of a file."""
        present = np.concatenate([[0], np.cumsum(self._present(blocks))])
        last = len(present) - 1
        edges = np.array([(start // _PAGE_BYTES, min(-(-end // _PAGE_BYTES), last)) for start, end in blocks.spans])
        edges = edges.reshape(-1, 2)
        resident: NDArray[np.int64] = (present[edges[:, 1]] - present[edges[:, 0]]) * _PAGE_BYTES
        return resident

    def _present(self, blocks: BlockMap) -> NDArray[np.bool_]:
        """One flag per page of the file: mapped in this process."""
        pages = -(-blocks.size_bytes // _PAGE_BYTES)
        if self.limitation:
            return np.zeros(pages, dtype=np.bool_)
        descriptor = os.open(self._pagemap, os.O_RDONLY)
        try:
            raw = os.pread(descriptor, 8 * pages, 8 * (blocks.address // _PAGE_BYTES))
        finally:
            os.close(descriptor)
        entries = np.zeros(pages, dtype=np.uint64)
        read = np.frombuffer(raw, dtype=np.uint64)
        entries[: len(read)] = read
        present: NDArray[np.bool_] = (entries & _PRESENT) != 0
        return present

    def page_cache_bytes(self) -> int:
        """What the kernel holds of the mapped files, in this process or not (mincore); 0 where it cannot be told."""
        return sum(_in_page_cache(blocks) for blocks in self._maps)


def _limitation(pagemap: Path) -> str:
    """Why the budget cannot be enforced here; empty when it can."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return "this system cannot release mapped pages (no madvise)"
    try:
        with pagemap.open("rb", buffering=0) as file:
            file.read(8)
    except OSError as error:
        return f"resident pages cannot be measured ({pagemap}: {error.strerror})"
    return ""


def _in_page_cache(blocks: BlockMap) -> int:
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    flags = np.zeros(-(-blocks.size_bytes // _PAGE_BYTES), dtype=np.uint8)
    result = libc.mincore(
        ctypes.c_void_p(blocks.address), ctypes.c_size_t(blocks.size_bytes), ctypes.c_void_p(flags.ctypes.data)
    )
    return int((flags & 1).sum()) * _PAGE_BYTES if result == 0 else 0
