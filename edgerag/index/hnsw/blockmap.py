"""The blocks of one mapped segment file: where they are, how much they are used, how they are released."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgerag.machine import pages
from edgerag.machine.pages import PAGE_BYTES, WINDOW_BYTES

# A block's heat halves in so many searches: long enough to keep what every search needs through a scan of
# something else, short enough that the blocks of yesterday's subject go first (bench/block_policies.py).
HALF_LIFE_SEARCHES = 128
WHOLE = ""  # the walk of a map that names none: all of its file is needed


class BlockMap:
    """The blocks of one mapped file: where they are, and how much they were used."""

    def __init__(
        self, mapping: mmap.mmap, spans: Sequence[tuple[int, int]], *, pinned: range, descriptor: int = -1
    ) -> None:
        """``spans`` are the byte spans of the blocks in the mapping, ascending; blocks in ``pinned`` (the entry
        levels) are never released. ``descriptor`` is the open file; it is used, not closed."""
        self.mapping = mapping
        self.spans = list(spans)
        self.pinned = pinned
        self.descriptor = descriptor
        # Two mappings of one file are two maps, and one demand: a program searches through one of them.
        status = os.fstat(descriptor) if descriptor >= 0 else None
        self.file = (status.st_dev, status.st_ino) if status else (-1, id(self))
        self.size_bytes = len(mapping)
        # np.frombuffer is how a read-only mapping's address is had without copying it.
        self.address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
        # (block count,) rows read. A kernel adds to it through its address, without a lock: a lost
        # count among millions changes no decision.
        self.hits: NDArray[np.int64] = np.zeros(len(self.spans), dtype=np.int64)
        # (window count,) bytes of each window of WINDOW_BYTES of the file that may become resident by reading
        # there. A kernel that walks in slices sums and clears what it enters, and ends the slice before
        # the sum exceeds the room that settle() gave.
        self.absent: NDArray[np.int64] = np.zeros(-(-len(mapping) // WINDOW_BYTES), dtype=np.int64)
        self.last_use: NDArray[np.float64] = np.zeros(len(self.spans))  # seconds of the clock of Residency
        self.admitted: NDArray[np.bool_] = np.zeros(len(self.spans), dtype=np.bool_)
        # Pages on which a block begins and ends; the end of one is the start of the next, or not.
        starts = np.array([start for start, _ in self.spans], dtype=np.int64)
        ends = np.array([end for _, end in self.spans], dtype=np.int64)
        self.starts: NDArray[np.int64] = starts // PAGE_BYTES * PAGE_BYTES
        self.ends: NDArray[np.int64] = -(-ends // PAGE_BYTES) * PAGE_BYTES
        self.sizes: NDArray[np.int64] = self.ends - self.starts
        # Blocks that were ever admitted: no other is read through the mapping, so no other need be measured.
        # Never cleared, because a walk that goes on may read a block after its release.
        self.reachable: NDArray[np.bool_] = np.zeros(len(self.spans), dtype=np.bool_)
        self.ready: Sequence[int] | None = None  # the blocks of the last walk, while all of them are admitted
        self.searched_at = 0.0  # seconds; the last admission
        self.demand: Mapping[str, int] = {WHOLE: self.size_bytes}  # bytes that each walk needs
        self._heat: NDArray[np.float64] = np.zeros(len(self.spans), dtype=np.float64)
        self._counted = self.hits.copy()
        self._counted_at = 0  # searches
        self._spare_pinned()
        self._hands = self._release_from.copy()  # where the next partial release of a block begins

    def _spare_pinned(self) -> None:
        """Sets which part of each block a release takes: not the windows that it shares with a pinned block.

        A release of part of a 2 MiB folio that is mapped as one takes all of it out (seen on Linux 6.18).
        """
        self._release_from, self._release_to = self.starts.copy(), self.ends.copy()
        if not len(self.pinned):
            return
        first, after = int(self.starts[self.pinned.start]), int(self.ends[self.pinned.stop - 1])
        for number in range(len(self.spans)):
            start, end = int(self.starts[number]), int(self.ends[number])
            if start >= after:
                start = max(start, -(-after // WINDOW_BYTES) * WINDOW_BYTES)
            elif end <= first:
                end = min(end, first // WINDOW_BYTES * WINDOW_BYTES)
            if self.sizes[number] >= 2 * WINDOW_BYTES:  # of smaller blocks too much would stay
                self._release_from[number], self._release_to[number] = start, end

    def demand_of(self, walk: str) -> int:
        """Bytes that this walk, or else the narrowest there is, needs of this file."""
        return self.demand.get(walk, min(self.demand.values()))

    def begin(self, demand: Mapping[str, int], *, searches: int, now: float) -> None:
        """Sets what depends on the budget that the map comes under."""
        self.demand = demand
        self._counted_at = searches
        self.last_use[:] = self.searched_at = now
        self.note_absent(np.zeros((0, 2), dtype=np.int64))

    def heat(self, searches: int) -> NDArray[np.float64]:
        """(block count,) hits, each halved every HALF_LIFE_SEARCHES since it was made (LRFU: Lee et al., 2001)."""
        now = self.hits.copy()
        fresh = now - self._counted
        self._heat *= 0.5 ** ((searches - self._counted_at) / HALF_LIFE_SEARCHES)
        self._heat += fresh
        self.last_use[fresh > 0] = self.searched_at
        self._counted, self._counted_at = now, searches
        return self._heat

    def per_block(self, stretches: NDArray[np.int64]) -> NDArray[np.int64]:
        """(block count,) bytes of the stretches in each block."""
        within: NDArray[np.int64] = pages.bytes_between(stretches, self.ends)
        within -= pages.bytes_between(stretches, self.starts)
        return within

    def present(self, table: pages.PageTable, *, everything: bool = False) -> NDArray[np.int64]:
        """(n, 2) resident stretches of the file, of the blocks that may be read through the mapping, or of all."""
        if everything:
            return table.present(self.address, self.size_bytes)
        found = [np.zeros((0, 2), dtype=np.int64)]
        for first, last in self._runs():
            start = int(self.starts[first])
            found.append(table.present(self.address + start, int(self.ends[last]) - start) + start)
        return np.concatenate(found)

    def _runs(self) -> list[tuple[int, int]]:
        turns = np.flatnonzero(np.diff(self.reachable.view(np.int8), prepend=np.int8(0), append=np.int8(0)))
        return [(first, after - 1) for first, after in turns.reshape(-1, 2).tolist()]

    def note_absent(self, stretches: NDArray[np.int64]) -> None:
        """Writes :attr:`absent` from what is resident."""
        edges = np.arange(len(self.absent) + 1, dtype=np.int64) * WINDOW_BYTES
        edges[-1] = -(-self.size_bytes // PAGE_BYTES) * PAGE_BYTES
        self.absent[:] = np.diff(edges) - np.diff(pages.bytes_between(stretches, edges))

    def bring(self, number: int, *, eagerly: bool) -> None:
        """Makes a block ready to be read; ``eagerly``: all of it is to be resident now."""
        if eagerly:
            pages.populate(self.address + int(self.starts[number]), int(self.sizes[number]))

    def release(self, number: int, *, share: float = 1.0) -> None:
        """Takes a block, or about this share of it in whole windows, out of this process."""
        self.admitted[number] = False
        self.ready = None
        start, end = int(self._release_from[number]), int(self._release_to[number])
        # The hand goes round, so that each part of the block stays for as long as the others.
        hand = int(self._hands[number])
        length = -(-int((end - start) * share) // WINDOW_BYTES) * WINDOW_BYTES
        if length >= end - start:
            hand, length = start, end - start
        before_end = min(length, end - hand)
        pages.release(self.address + hand, before_end)
        pages.release(self.address + start, length - before_end)
        self._hands[number] = start + (hand - start + length) % max(1, end - start)
