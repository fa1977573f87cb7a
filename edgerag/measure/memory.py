"""The memory of this process as the kernel counts it, at a moment and at its most during a piece of work."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgerag.machine import pages
from edgerag.machine.memory import resident_bytes

_ROLLUP = Path("/proc/self/smaps_rollup")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_CLEAR_REFS, _RESET_HIGH_WATER = Path("/proc/self/clear_refs"), "5"  # proc(5)
_SAMPLING_S = 0.003


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes. The parts are None where the system does not tell them."""

    rss_bytes: int
    anonymous_bytes: int | None
    file_bytes: int | None

    def since(self, before: Memory) -> Memory:
        return Memory(
            self.rss_bytes - before.rss_bytes,
            _difference(self.anonymous_bytes, before.anonymous_bytes),
            _difference(self.file_bytes, before.file_bytes),
        )


@dataclass(slots=True)
class Peak:
    """The most seen so far, sampled; grows while the sampler runs."""

    rss_bytes: int = 0
    file_bytes: int = 0
    samples: int = 0


def read_memory() -> Memory:
    try:
        text = _ROLLUP.read_text(encoding="ascii")
    except OSError:  # not Linux, or a kernel before 4.14
        return Memory(resident_bytes(), None, None)
    fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines()[1:]}
    anonymous = fields["Anonymous"]
    return Memory(fields["Rss"], anonymous, fields["Rss"] - anonymous)


def reset_high_water() -> None:
    """From now on :func:`high_water_bytes` counts anew; where the system cannot do that, it goes on."""
    with contextlib.suppress(OSError):  # not Linux, or /proc is read-only
        _CLEAR_REFS.write_text(_RESET_HIGH_WATER, encoding="ascii")


def high_water_bytes() -> int | None:
    """The most resident memory since the last reset, as the kernel noted it; None where it does not tell."""
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def page_cache_bytes(file: Path) -> int:
    """What the kernel's page cache holds of ``file``, in any process or none; 0 where the system does not tell.

    The file is mapped for that, not read.
    """
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        view = np.frombuffer(mapping, dtype=np.uint8)
        stretches = pages.cached(view.ctypes.data, len(mapping))
        del view  # a mapping in use cannot be closed
    return int((stretches[:, 1] - stretches[:, 0]).sum())


@contextlib.contextmanager
def sampled_peak() -> Iterator[Peak]:
    """Samples every few milliseconds, in a thread, until the block ends. 0 samples where there is no /proc.

    statm is read because it costs microseconds; the kernel keeps it right to some hundred KiB.
    """
    peak, done = Peak(), threading.Event()

    def sample() -> None:
        while not done.wait(_SAMPLING_S):
            try:
                _, resident, file = (int(word) for word in _STATM.read_text(encoding="ascii").split()[:3])
            except OSError:
                return
            peak.rss_bytes = max(peak.rss_bytes, resident * mmap.PAGESIZE)
            peak.file_bytes = max(peak.file_bytes, file * mmap.PAGESIZE)
            peak.samples += 1

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before
