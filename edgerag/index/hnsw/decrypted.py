"""The blocks of an encrypted segment in memory: decrypted when a walk needs them, gone when they are released.

The mapping of an encrypted segment is private memory of the size of its plaintext, empty at first. A block is decrypted
into it when it is admitted. Released memory of this kind does not come back from the file as a mapped file does: it
reads as zeros. So a walk reads only what is whole, and nothing is released under it: walks hold the gate together, who
decrypts or releases holds it alone. The lock of Residency is taken before the gate, never behind it, so a walk that
holds the gate asks nothing of Residency.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.blockmap import BlockMap
from edgerag.index.hnsw.source import UnitSource

# Most of the mapping is never filled: full vectors are read otherwise. Without a name in Python 3.11.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


class Gate:
    """Many together, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._alone = False

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._changed:
            while self._alone:
                self._changed.wait()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            while self._alone or self._inside:
                self._changed.wait()
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


class DecryptedBlocks(BlockMap):
    """As a BlockMap; ``bring`` decrypts, ``release`` forgets."""

    def __init__(self, source: UnitSource, spans: Sequence[tuple[int, int]], *, pinned: range) -> None:
        """Raises OSError where the address space is used up."""
        mapping = mmap.mmap(-1, source.size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        with suppress(AttributeError, OSError):  # no such advice here: then a core dump would hold it
            mapping.madvise(mmap.MADV_DONTDUMP)
        super().__init__(mapping, spans, pinned=pinned, descriptor=source.descriptor)
        self._source = source
        self.gate = Gate()
        self._decrypted: NDArray[np.bool_] = np.zeros(len(self.spans), dtype=np.bool_)

    def bring(self, number: int, *, eagerly: bool) -> None:  # noqa: ARG002 - nothing comes in by being read
        """Raises UnitDamaged, OSError; then the block is not there."""
        with self.gate.alone():
            if self._decrypted[number]:
                return
            start, end = self.spans[number]
            with memoryview(self.mapping) as whole, whole[start:end] as part:
                self._source.read_into(part, start)
            self._decrypted[number] = True

    def release(self, number: int, *, share: float = 1.0) -> None:
        """Waits for the walks that are going on."""
        with self.gate.alone():
            self._decrypted[number] = False  # a part that is gone reads as zeros
            super().release(number, share=share)

    @contextmanager
    def held(self, numbers: Sequence[int]) -> Iterator[bool]:
        """Whether all of these blocks are whole; they stay so while the block lasts."""
        with self.gate.together():
            yield bool(self._decrypted[list(numbers)].all())
