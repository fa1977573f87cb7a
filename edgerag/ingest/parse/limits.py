"""What a parser process may not do: use the network, write files, start programs, outlive its parent.

The memory ceiling, the network namespace and the filter that refuses every socket are the kernel's; the audit hook
below them stops what a Python library would try, and says what.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from edgerag.offline import kernel

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN_EVENTS = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "urllib.",
    "http.",
    "ftplib.",
    "smtplib.",
)
# Processor seconds beyond the deadline: the parent's clock is the judge, this only stops an orphan.
_CPU_GRACE_S = 30


def die_with_parent(parent_pid: int) -> None:
    """The kernel ends this process when the one that started it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it went before we asked
        sys.exit(0)


def limit_memory(memory_bytes: int) -> None:
    """Bounds the address space; forbids core dumps and files."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        memory_bytes = min(memory_bytes, hard)  # a limit that stands above us can only be kept
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_processor(seconds: float) -> None:
    """Processor time for the next file, counted from now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds + _CPU_GRACE_S), hard))


def leave_network() -> None:
    """Moves to an empty network namespace, and makes no sockets of any kind, where the system allows it."""
    if sys.platform != "linux":
        return
    # As root a user namespace would take away the right to read other people's files, and is not needed.
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    ctypes.CDLL(None).unshare(flags)  # refused on hardened systems: filter and audit hook remain
    kernel.refuse_sockets(local_allowed=False)


def fence() -> None:
    """Refuses sockets, programs and written files, whoever asks, for the rest of this process."""
    sys.dont_write_bytecode = True

    def refuse(event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            flags = args[2] if len(args) > 2 else 0
            if isinstance(flags, int) and flags & _WRITE_FLAGS:
                raise PermissionError(f"a parser may not write {args[0]!r}")
        elif event.startswith(_FORBIDDEN_EVENTS):
            raise PermissionError(f"a parser may not do this: {event}")

    sys.addaudithook(refuse)
