"""What the kernel does with the pages of a mapped file: asks which are here, brings them in, lets them go.

Two different things are told apart everywhere. *Resident*: mapped in this process, counted in its RSS; read
from the page table. *Cached*: held by the kernel's page cache, for whoever reads the file; read with mincore.
What is resident is cached too, the reverse does not hold.

Addresses and lengths are bytes. Nothing here raises because advice was refused: advice may be ignored by
contract, and a caller that needs to know measures. Linux only; elsewhere :attr:`PageTable.limitation` says so.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAGE_BYTES = mmap.PAGESIZE
# A fault on a page that is in the page cache maps its whole folio: seen on Linux 6.18 up to 2 MiB, which is
# the largest, and aligned in the file. So a read can bring in what is absent of the windows that it enters,
# and nothing else.
WINDOW_BYTES = 2 * 2**20

_PAGEMAP = Path("/proc/self/pagemap")
_PRESENT_BYTE = 0x80  # bit 63 of a pagemap entry, seen in its highest byte
_MADV_WILLNEED, _MADV_DONTNEED, _MADV_POPULATE_READ = 3, 4, 22  # the last has no name in Python 3.11
# _IOWR('f', 16, struct pm_scan_arg), Linux 6.7 (Documentation/admin-guide/mm/pagemap.rst).
_PAGEMAP_SCAN = 3 << 30 | 96 << 16 | 0x66 << 8 | 16
_SCAN = struct.Struct("=12Q")
_PAGE_IS_PRESENT = 1 << 3
_SCAN_REGIONS = 4096  # answered by one call; more take further calls

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


class PageTable:
    """Reads which pages of this process are resident, by PAGEMAP_SCAN, or by pagemap's entries before Linux 6.7."""

    def __init__(self, pagemap: Path = _PAGEMAP) -> None:
        self._pagemap = pagemap
        self.limitation = self._limitation()  # why nothing can be measured or released here; empty when all can
        self._regions: NDArray[np.uint64] = np.zeros((_SCAN_REGIONS, 3), dtype=np.uint64)
        self._scans = not self.limitation

    def present(self, address: int, length: int) -> NDArray[np.int64]:
        """(n, 2) starts and ends of the resident stretches, in bytes from ``address``, ascending.

        ``address`` is at a page; empty where it cannot be measured. To be called by one thread at a time.
        """
        if self.limitation or length <= 0:
            return np.zeros((0, 2), dtype=np.int64)
        length = -(-length // PAGE_BYTES) * PAGE_BYTES
        # Opened each time, in a few microseconds: a descriptor of pagemap stays with the process that opened
        # it, and a forked child would read its parent's.
        try:
            descriptor = os.open(self._pagemap, os.O_RDONLY)
        except OSError:  # for the moment: too many open files
            return np.zeros((0, 2), dtype=np.int64)
        try:
            found = self._scan(descriptor, address, length) if self._scans else None
            if found is None:
                self._scans = False
                raw = os.pread(descriptor, 8 * (length // PAGE_BYTES), 8 * (address // PAGE_BYTES))
                found = _stretches(np.frombuffer(raw, dtype=np.uint8)[7::8] >= _PRESENT_BYTE)
        finally:
            os.close(descriptor)
        return found

    def _scan(self, descriptor: int, address: int, length: int) -> NDArray[np.int64] | None:
        """None where the kernel does not know the call."""
        import fcntl  # Windows has none

        pieces = [np.zeros((0, 2), dtype=np.int64)]
        position, end = address, address + length
        while position < end:
            scan = (_SCAN.size, 0, position, end, 0, self._regions.ctypes.data, _SCAN_REGIONS, 0)
            argument = bytearray(_SCAN.pack(*scan, 0, _PAGE_IS_PRESENT, 0, _PAGE_IS_PRESENT))
            try:
                count = fcntl.ioctl(descriptor, _PAGEMAP_SCAN, argument)
            except OSError:
                return None  # before Linux 6.7, or in a sandbox
            pieces.append(self._regions[:count, :2].astype(np.int64) - address)
            position = _SCAN.unpack(argument)[4]
        return np.concatenate(pieces)

    def _limitation(self) -> str:
        if _LIBC is None:
            return "this system cannot tell or release resident pages (not Linux)"
        try:
            with self._pagemap.open("rb", buffering=0) as file:
                file.read(8)
        except OSError as error:
            return f"resident pages cannot be measured ({self._pagemap}: {error.strerror})"
        return ""


def cached(address: int, length: int) -> NDArray[np.int64]:
    """As :meth:`PageTable.present`, of the page cache (mincore).

    The kernel answers truly only to the owner of the file and to those who may write it; others are told
    that all is cached: see :func:`is_cache_told`.
    """
    if _LIBC is None or length <= 0:
        return np.zeros((0, 2), dtype=np.int64)
    flags = np.zeros(-(-length // PAGE_BYTES), dtype=np.uint8)
    result = _LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_void_p(flags.ctypes.data))
    return _stretches(flags & 1 == 1) if result == 0 else np.zeros((0, 2), dtype=np.int64)


def is_cache_told(descriptor: int) -> bool:
    """Whether mincore tells the truth about this file to this user."""
    if _LIBC is None:
        return False
    return os.geteuid() in (0, os.fstat(descriptor).st_uid) or os.access(f"/proc/self/fd/{descriptor}", os.W_OK)


def bytes_between(stretches: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bytes of the stretches lie before each edge; differences give the bytes between edges."""
    if not len(stretches):
        return np.zeros(len(edges), dtype=np.int64)
    starts, ends = stretches[:, 0], stretches[:, 1]
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    index = np.searchsorted(starts, edges, side="right")  # stretches that start at or before the edge
    beyond = np.where(index > 0, np.maximum(0, ends[np.maximum(index, 1) - 1] - edges), 0)
    result: NDArray[np.int64] = before[index] - beyond
    return result


def populate(address: int, length: int) -> None:
    """Reads and maps all of it now (MADV_POPULATE_READ, Linux 5.14); on older kernels reading begins (WILLNEED)."""
    if not _advise(address, length, _MADV_POPULATE_READ):
        _advise(address, length, _MADV_WILLNEED)


def release(address: int, length: int) -> None:
    """Takes the pages from this process; the page cache keeps them."""
    _advise(address, length, _MADV_DONTNEED)


def drop_cache(descriptor: int, offset: int, length: int) -> None:
    """Takes the pages of a file from the page cache, except those that some process has mapped, or not yet written."""
    if hasattr(os, "posix_fadvise") and length > 0:
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)


def _advise(address: int, length: int, advice: int) -> bool:
    if _LIBC is None or length <= 0:
        return False
    return bool(_LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_int(advice)) == 0)


def _stretches(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    turns = np.flatnonzero(np.diff(flags.view(np.int8), prepend=np.int8(0), append=np.int8(0)))
    return turns.reshape(-1, 2).astype(np.int64) * PAGE_BYTES
