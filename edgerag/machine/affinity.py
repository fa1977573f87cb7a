"""Which CPUs threads may run on: asked, set for a while, and read back.

An affinity mask belongs to one thread; threads that it starts inherit it. So whoever pins a thread for good pins
one of its own, and never the main thread, whose mask counts as that of the process (topology.py).
Systems without ``sched_setaffinity`` (macOS, Windows) leave threads where they are, and say so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from edgerag.machine.kernel_files import format_cpus, name_cpus, parse_cpus, read_text

CAN_PIN = hasattr(os, "sched_setaffinity")
_CANNOT = "this system does not let a program choose the CPUs of its threads"


@dataclass(frozen=True, slots=True)
class Pinning:
    """What became of a wish to run on certain CPUs."""

    cpus: frozenset[int]  # which the thread may now run on, read back; empty where that cannot be told
    limitation: str  # why it is not the CPUs wished for; empty where it is


def process_cpus(system: Path = Path("/")) -> frozenset[int]:
    """The affinity mask of the main thread, CPUs that are offline included. Never empty."""
    cpus = _mask_in(system / "proc/self/status")
    if cpus:
        return cpus
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(os.getpid()))
    return frozenset(range(psutil.cpu_count() or 1))


def thread_affinities(system: Path = Path("/")) -> dict[int, frozenset[int]]:
    """Thread id -> CPUs that the kernel lets it run on, of all threads of this process; empty without /proc.

    With a kernel's own ids, those of ``threading.get_native_id()``.
    """
    masks = {}
    for folder in (system / "proc/self/task").glob("[0-9]*"):
        cpus = _mask_in(folder / "status")
        if cpus is not None:  # None: the thread has ended meanwhile
            masks[int(folder.name)] = cpus
    return masks


def pin_thread(cpus: Iterable[int]) -> Pinning:
    """Lets the calling thread run on ``cpus`` alone, and those that it starts from now on.

    CPUs that are offline or outside the cpuset are passed over by the kernel, which the answer says.
    Raises ValueError for no CPU at all.
    """
    wanted = frozenset(cpus)
    if not wanted:
        raise ValueError("a thread cannot be pinned to no CPU at all")
    if not CAN_PIN:
        return Pinning(frozenset(), _CANNOT)
    try:
        os.sched_setaffinity(0, wanted)
    except (OSError, OverflowError) as error:  # none of them usable, or forbidden by a sandbox; or no number of a CPU
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        now = frozenset(os.sched_getaffinity(0))
        return Pinning(now, f"the system refused to run a thread on {name_cpus(wanted)}: {why}")
    now = frozenset(os.sched_getaffinity(0))
    if now == wanted:
        return Pinning(now, "")
    return Pinning(now, f"of {name_cpus(wanted)} only {format_cpus(now)} can be used")


@contextlib.contextmanager
def pinned(cpus: Iterable[int]) -> Iterator[Pinning]:
    """The calling thread, and threads started inside, run on ``cpus``; afterwards the calling thread as before."""
    before = frozenset(os.sched_getaffinity(0)) if CAN_PIN else frozenset()
    pinning = pin_thread(cpus)
    try:
        yield pinning
    finally:
        # Refused only where the cpuset has left all of these CPUs meanwhile: then the kernel has already given
        # the thread a mask of its own choice, and there is nothing left to restore.
        if before:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)


def _mask_in(status: Path) -> frozenset[int] | None:
    for line in (read_text(status) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return parse_cpus(value)
    return None
