"""Priority, and what others need: how a long piece of work keeps out of the way on a machine that people use."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection
from typing import Final

import psutil

from edgerag.machine.load import OthersLoad
from edgerag.thread_start import start_daemon

# The last of the eight levels among those that still get their turn: "idle" can wait for ever on a busy disk.
_LAST_IO_LEVEL: Final = 7
LOW_BATTERY_PERCENT: Final = 20


def step_back(niceness: int, *, pid: int = 0) -> None:
    """Lowers the priority of a process (0: this one) for processor and disk; a higher one than asked for stays low.

    For the processor it holds for the threads that are started from now on, and the one that calls. Where the system
    refuses, nothing changes: the work is the same.
    """
    if niceness <= 0:
        return
    try:
        if os.getpriority(os.PRIO_PROCESS, pid) < niceness:
            os.setpriority(os.PRIO_PROCESS, pid, niceness)
        process = psutil.Process(pid or None)
        if hasattr(process, "ionice"):
            process.ionice(psutil.IOPRIO_CLASS_BE, _LAST_IO_LEVEL)
    except (OSError, psutil.Error, ValueError):  # the process has ended, or a sandbox forbids it
        return


def run_apart(work: Callable[[], None], *, niceness: int) -> None:
    """Runs ``work``, which raises nothing, in a thread of its own with that priority for the processor, as are those
    that it starts; returns when it is done. Where no thread starts, or the system refuses, it is run as it is."""

    def run() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
        work()

    thread = threading.Thread(target=run, name="apart")
    if start_daemon(thread):
        thread.join()
    else:
        work()


class OwnTime:
    """Processor seconds of this process and of the children it has now."""

    def __init__(self) -> None:
        self._process = psutil.Process()

    def seconds(self) -> float:
        own = os.times()
        total = own.user + own.system + own.children_user + own.children_system
        return total + self.of_children()

    def of_children(self) -> float:
        """Of those that have not ended: no one else counts them to this process."""
        total = 0.0
        try:
            for child in self._process.children(recursive=True):
                try:
                    times = child.cpu_times()
                except psutil.Error:
                    continue  # it has ended since
                total += times.user + times.system
        except (OSError, psutil.Error):  # a sandbox that hides /proc
            return 0.0
        return total


class Demand:
    """What others need of this machine, from one look to the next."""

    def __init__(self, cpus: Collection[int]) -> None:
        """``cpus``: the logical CPUs that this process may use."""
        self._cpu_count = max(1, len(cpus))
        self._load = OthersLoad(cpus)
        self._own = OwnTime()
        self._children_s = self._own.of_children()
        self._looked_at = time.monotonic()

    def busy_share(self) -> float:
        """The part of those CPUs, 0 to 1, that others kept busy since the last look; the parser is not one of them."""
        cores = self._load.cores()
        children_s, now = self._own.of_children(), time.monotonic()
        seconds = now - self._looked_at
        if seconds > 0:
            cores -= max(0.0, children_s - self._children_s) / seconds
        self._children_s, self._looked_at = children_s, now
        return min(1.0, max(0.0, cores / self._cpu_count))

    def battery_is_low(self) -> bool:
        """True on a battery that is not being charged and has little left; False where there is none."""
        if not hasattr(psutil, "sensors_battery"):
            return False
        try:
            battery = psutil.sensors_battery()
        except (OSError, psutil.Error, ValueError):  # odd firmware writes odd files
            return False
        return battery is not None and battery.power_plugged is False and battery.percent < LOW_BATTERY_PERCENT
