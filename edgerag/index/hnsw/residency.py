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
_PRESENT = 0x80  # in the highest byte of an entry
# A fault on a page that is in the page cache maps its whole folio: seen on Linux 6.18 up to 2 MiB, which is
# the largest, and aligned in the file. So a read can bring in what is absent of the windows that it enters,
# and nothing else.
WINDOW_BYTES = 2 * 2**20
_WINDOW_PAGES = WINDOW_BYTES // _PAGE_BYTES
# Released down to this share of the budget; what is left is the room for reading between measurements.
_TARGET_SHARE = 3 / 4


class BlockMap:
    """The blocks of one mapped file: where they are, when they were last used."""

    def __init__(self, mapping: mmap.mmap, spans: Sequence[tuple[int, int]], *, pinned: range) -> None:
        """``spans`` are the byte spans of the blocks in the mapping; blocks in ``pinned`` are never released."""
        self.mapping = mapping
        self.spans = list(spans)
        self.pinned = pinned
        self.size_bytes = len(mapping)
        self.last_use: NDArray[np.int64] = np.zeros(len(self.spans), dtype=np.int64)
        # (window count,) bytes of each window that may become resident by reading there.
        self.absent: NDArray[np.int64] = np.zeros(-(-len(mapping) // WINDOW_BYTES), dtype=np.int64)
        # np.frombuffer is how a read-only mapping's address is had without copying it.
        self.address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)


class Residency:
    """The resident bytes of all mapped segments of a library, under one budget."""

    def __init__(self, budget_bytes: int, *, pagemap: Path = _PAGEMAP) -> None:
        self.budget_bytes = budget_bytes
        self._pagemap = pagemap
        self._maps: list[BlockMap] = []
        self._mapped_bytes = 0
        self._clock = 0
        self._measured_bytes = 0  # resident at the last measurement
        self._touched_bytes = 0  # may have become resident since
        # A read that may bring in more than this is to be made in pieces.
        self.room_bytes = max(int(budget_bytes * (1 - _TARGET_SHARE)), WINDOW_BYTES)
        self.released_bytes = 0  # in all, for reports
        self.limitation = _limitation(pagemap)

    def add(self, blocks: BlockMap) -> None:
        self._maps.append(blocks)
        self._mapped_bytes += blocks.size_bytes
        self._measured_bytes = self.budget_bytes + 1  # to be measured at the next read

    def remove(self, blocks: BlockMap) -> None:
        self._maps.remove(blocks)
        self._mapped_bytes -= blocks.size_bytes

    def touch(self, blocks: BlockMap, numbers: NDArray[np.int64], windows: NDArray[np.int64]) -> None:
        """Notes that rows in these blocks, in these windows of the file, are about to be read.

        Makes room before they are, inside a long walk or scan too: what was resident at the last measurement
        and all that may have come since must be inside the budget.
        """
        self._clock += 1
        blocks.last_use[numbers] = self._clock
        if not self.is_short:
            return
        windows = np.unique(windows)
        coming = int(blocks.absent[windows].sum())
        if self._measured_bytes + self._touched_bytes + coming > self.budget_bytes:
            self._settle(int(self.budget_bytes * _TARGET_SHARE))
            coming = int(blocks.absent[windows].sum())
        blocks.absent[windows] = 0
        self._touched_bytes += coming

    def settle(self) -> None:
        """Releases the coldest blocks until the resident bytes are inside the budget."""
        self._settle(self.budget_bytes)

    def _settle(self, most: int) -> None:
        """Measures; releases the coldest blocks, down to the target, if more than ``most`` bytes are resident."""
        self._touched_bytes = 0
        self._measured_bytes = 0
        if not self.is_short:
            return
        present = [self._present(blocks) for blocks in self._maps]
        sizes = [_block_bytes(blocks, flags) for blocks, flags in zip(self._maps, present, strict=True)]
        total = sum(int(size.sum()) for size in sizes)
        if total > most:
            coldest = sorted(
                (int(blocks.last_use[number]), index, number)
                for index, blocks in enumerate(self._maps)
                for number in range(len(blocks.spans))
                if sizes[index][number] and number not in blocks.pinned
            )
            for _, index, number in coldest:
                if total <= self.budget_bytes * _TARGET_SHARE:
                    break
                self._release(self._maps[index], number, present[index])
                total -= int(sizes[index][number])
                self.released_bytes += int(sizes[index][number])
        self._measured_bytes = total
        for blocks, flags in zip(self._maps, present, strict=True):
            starts = np.arange(len(blocks.absent)) * _WINDOW_PAGES
            blocks.absent[:] = np.add.reduceat(~flags, starts, dtype=np.int64) * _PAGE_BYTES

    @property
    def is_short(self) -> bool:
        """Whether the budget can be exceeded at all, and can be kept."""
        return not self.limitation and self._mapped_bytes > self.budget_bytes

    def _release(self, blocks: BlockMap, number: int, present: NDArray[np.bool_]) -> None:
        start, end = blocks.spans[number]
        start, end = -(-start // _PAGE_BYTES) * _PAGE_BYTES, -(-end // _PAGE_BYTES) * _PAGE_BYTES
        if start < end:
            blocks.mapping.madvise(mmap.MADV_DONTNEED, start, min(end, blocks.size_bytes) - start)
            present[start // _PAGE_BYTES : end // _PAGE_BYTES] = False

    def resident_bytes(self) -> int:
        """Pages of the mapped files that are in this process; 0 where it cannot be measured."""
        return sum(self.file_resident_bytes(blocks) for blocks in self._maps)

    def file_resident_bytes(self, blocks: BlockMap) -> int:
        return int(self._present(blocks).sum()) * _PAGE_BYTES

    def block_resident_bytes(self, blocks: BlockMap) -> NDArray[np.int64]:
        """(block count,) resident bytes of each block of a file."""
        return _block_bytes(blocks, self._present(blocks))

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
        present = np.zeros(pages, dtype=np.bool_)
        read = np.frombuffer(raw, dtype="<u8").view(np.uint8)[7::8]  # the bytes that hold bit 63
        present[: len(read)] = read >= _PRESENT
        return present

    def page_cache_bytes(self) -> int:
        """What the kernel holds of the mapped files, in this process or not (mincore); 0 where it cannot be told."""
        return sum(_in_page_cache(blocks) for blocks in self._maps)


def _block_bytes(blocks: BlockMap, present: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = np.concatenate([[0], np.cumsum(present)])
    last = len(counts) - 1
    edges = np.array([(start // _PAGE_BYTES, min(-(-end // _PAGE_BYTES), last)) for start, end in blocks.spans])
    edges = edges.reshape(-1, 2)
    resident: NDArray[np.int64] = (counts[edges[:, 1]] - counts[edges[:, 0]]) * _PAGE_BYTES
    return resident


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
