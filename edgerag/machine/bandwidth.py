"""How fast this machine reads memory: what decoding waits for, since each token reads all weights once.

Measured, not looked up: threads search a buffer larger than the caches for a byte that is not in it, with the C
library's ``memchr``, which reads every byte once and lets go of the interpreter's lock. Half a second at most,
filling the buffer included.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgerag.machine.affinity import pin_thread, process_cpus
from edgerag.machine.caches import last_level_bytes, read_caches
from edgerag.machine.memory import available_bytes

_MOST_SECONDS = 0.45  # the rest of half a second is for threads that the system runs late
_FREE_SHARE = 1 / 8  # of what is free: the part that a measurement may take for a moment
# Twice the last caches: at most half of the buffer can still be there when a thread comes round.
_CACHES = 2
_LEAST_BYTES, _MOST_BYTES = 64 * 2**20, 1024 * 2**20
# Read by one call: long enough that Python's part is lost in it, short enough to stop on time (1 ms at 4 GB/s).
_PIECE_BYTES = 4 * 2**20
# What threads read together in the best stretch of this length is the result: other programs that take a core away
# now and then do not lower it. About a hundred pieces per thread at 16 GB/s.
_WINDOW_S = 0.025
_FILL_SHARE = 0.5  # of the time; a buffer that is not full by then stays smaller
_FILLED_WITH, _SEARCHED = 1, 0


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What one number of threads read together, in their best 25 ms."""

    threads: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class BandwidthReport:
    results: tuple[Bandwidth, ...]  # in the order asked for; empty where nothing could be measured
    buffer_bytes: int
    method: str  # how it was measured, or why it was not; a part of a sentence

    @property
    def best(self) -> Bandwidth | None:
        return max(self.results, key=lambda result: result.bytes_per_s, default=None)


def measure_bandwidth(
    thread_counts: Sequence[int],
    *,
    cpus: Sequence[int] = (),
    seconds: float = _MOST_SECONDS,
    free_bytes: int | None = None,
    system: Path = Path("/"),
) -> BandwidthReport:
    """Reads with each number of threads for an equal share of ``seconds`` (no more than the default).

    Thread i runs on ``cpus[i]`` alone, if there is one. ``free_bytes`` bounds the buffer (default: what is free now).
    Raises ValueError for a number of threads below 1.
    """
    if any(count < 1 for count in thread_counts):
        raise ValueError(f"threads must be 1 or more, not {min(thread_counts)}")
    library = _c_library()
    if library is None:
        return BandwidthReport((), 0, "not measured: the C library of this system cannot be called")
    seconds = min(seconds, _MOST_SECONDS)
    begun_s = time.perf_counter()
    cache_bytes = last_level_bytes(read_caches(cpus or process_cpus(system), system))
    wished_bytes = min(max(_CACHES * cache_bytes, _LEAST_BYTES), _MOST_BYTES)
    allowed_bytes = int((available_bytes() if free_bytes is None else free_bytes) * _FREE_SHARE)
    pieces, most = min(wished_bytes, allowed_bytes) // _PIECE_BYTES, max(thread_counts, default=0)
    if not 1 <= most <= pieces:
        return BandwidthReport((), 0, "not measured: too little memory is free")
    buffer = _Buffer(library, pieces)
    buffer.fill(threads=most, until_s=begun_s + seconds * _FILL_SHARE)
    results = []
    for index, count in enumerate(thread_counts):
        share_s = max(0.0, begun_s + seconds - time.perf_counter()) / (len(thread_counts) - index)
        results.append(Bandwidth(count, buffer.read(threads=count, cpus=cpus, seconds=share_s)))
    method = f"best 25 ms of {seconds:.2g} s, read with memchr from a buffer of {buffer.filled_bytes / 1e6:.0f} MB"
    if buffer.filled_bytes < _CACHES * cache_bytes:
        method += f", to which the caches of {cache_bytes / 1e6:.0f} MB add speed"
    return BandwidthReport(tuple(results), buffer.filled_bytes, method)


class _Buffer:
    """Memory of its own, freed with the object. Pages that were never written would all be one page of zeros."""

    def __init__(self, library: Any, pieces: int) -> None:
        self._library = library
        self._pieces = pieces
        self._memory = mmap.mmap(-1, pieces * _PIECE_BYTES)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # advice; a kernel without huge pages fills more slowly
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._anchor = ctypes.c_char.from_buffer(self._memory)  # as long as it lives, the memory cannot be unmapped
        self._address = ctypes.addressof(self._anchor)
        self.filled_bytes = 0

    def fill(self, *, threads: int, until_s: float) -> None:
        """Writes from the start as far as time allows, one piece per thread at least."""
        numbers = itertools.count()
        done = [0] * threads

        def work(thread: int) -> None:
            while True:
                piece = next(numbers)
                if piece >= self._pieces or (piece >= threads and time.perf_counter() >= until_s):
                    return
                self._library.memset(self._address + piece * _PIECE_BYTES, _FILLED_WITH, _PIECE_BYTES)
                done[thread] += 1

        _in_threads(threads, work)
        self.filled_bytes = sum(done) * _PIECE_BYTES

    def read(self, *, threads: int, cpus: Sequence[int], seconds: float) -> float:
        """Bytes per second that ``threads`` read together at best, each going round in its own part."""
        pieces_each = self.filled_bytes // _PIECE_BYTES // threads
        begun_s = [0.0] * threads
        read_s: list[list[float]] = [[] for _ in range(threads)]  # when each piece was done
        start = threading.Barrier(threads)

        def work(thread: int) -> None:
            if thread < len(cpus):
                pin_thread({cpus[thread]})
            first = self._address + thread * pieces_each * _PIECE_BYTES
            start.wait()
            begun_s[thread] = time.perf_counter()
            for piece in itertools.cycle(range(pieces_each)):
                self._library.memchr(first + piece * _PIECE_BYTES, _SEARCHED, _PIECE_BYTES)
                read_s[thread].append(time.perf_counter())
                if read_s[thread][-1] - begun_s[thread] >= seconds:
                    return

        _in_threads(threads, work)
        return _PIECE_BYTES * best_rate(sorted(itertools.chain(*read_s)), begun_s=min(begun_s))


def best_rate(times_s: Sequence[float], *, begun_s: float, window_s: float = _WINDOW_S) -> float:
    """Events per second in the fullest stretch of ``window_s``; of the whole, where it is no longer than that.

    ``times_s`` ascend and are not empty. Each event counts where it ends.
    """
    if times_s[-1] - begun_s <= window_s:
        return len(times_s) / (times_s[-1] - begun_s)
    most = first = 0
    for last, time_s in enumerate(times_s):
        while times_s[first] <= time_s - window_s:
            first += 1
        most = max(most, last - first + 1)
    return most / window_s


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _c_library() -> Any:
    """With ``memchr`` and ``memset`` ready to call; None where there is none."""
    try:
        library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        library.memchr.restype = library.memset.restype = ctypes.c_void_p
        library.memchr.argtypes = library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    except (OSError, AttributeError):
        return None
    return library
