"""Where new memory comes from, on machines with more than one NUMA node.

Linux's own calls, by number, since the C library has no name for them. A policy is a preference here, never a
command (MPOL_PREFERRED, not MPOL_BIND): on a full node memory comes from the next one, and nothing is killed for
want of it. The policy belongs to one thread; threads that it starts inherit it. Pages that are already in the
page cache stay where they are.

On machines with one node nothing is called.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.machine.nodes import read_nodes

Placement = int | Literal["none", "interleave"]  # a node, no wish, or by turns on all nodes with memory

_PREFERRED, _INTERLEAVE = 1, 3  # include/uapi/linux/mempolicy.h
_MOVE = 2  # MPOL_MF_MOVE: pages that are already there go along, if no other process has them
_NODE_BITS = 1024  # the largest CONFIG_NODES_SHIFT; the kernel refuses masks shorter than its own
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


@dataclass(frozen=True, slots=True)
class _Calls:
    mbind: int
    get_mempolicy: int
    set_mempolicy: int


_CALLS = {"x86_64": _Calls(237, 239, 238), "aarch64": _Calls(235, 236, 237)}  # arch/x86/entry, asm-generic/unistd.h


@dataclass(frozen=True, slots=True)
class Policy:
    """A thread's memory policy as the kernel keeps it."""

    mode: int
    nodes: frozenset[int]


@contextlib.contextmanager
def bind_memory(placement: Placement, *, system: Path = Path("/")) -> Iterator[str]:
    """Memory that this thread takes inside comes from ``placement``; afterwards as before.

    Gives why that is not so, or "". On one node, and for "none", nothing is done and nothing needs saying.
    """
    try:
        wanted = _wanted(placement, system)
        before = read_policy() if wanted else None
        if wanted:
            set_policy(wanted)
    except OSError as error:
        yield str(error.strerror)
        return
    try:
        yield ""
    finally:
        if before:
            set_policy(before)


def place_range(address: int, length_bytes: int, placement: Placement, *, system: Path = Path("/")) -> str:
    """As :func:`bind_memory` for one stretch of this process's memory, pages that are there already included.

    The stretch is widened to whole pages. Returns why it was not done, or "".
    """
    start = address - address % mmap.PAGESIZE
    length = address + length_bytes - start
    try:
        wanted = _wanted(placement, system)
        if wanted is None or length_bytes <= 0:
            return ""
        _call("mbind", ctypes.c_void_p(start), ctypes.c_ulong(length), *_arguments(wanted), ctypes.c_uint(_MOVE))
    except OSError as error:
        return str(error.strerror)
    return ""


def read_policy() -> Policy:
    """The calling thread's policy. Raises OSError that names the call."""
    mode, mask = ctypes.c_int(), _mask(())
    _call(
        "get_mempolicy", ctypes.byref(mode), mask, ctypes.c_ulong(_NODE_BITS + 1), ctypes.c_void_p(), ctypes.c_ulong(0)
    )
    nodes = (bit for bit in range(_NODE_BITS) if mask[bit // _WORD_BITS] >> bit % _WORD_BITS & 1)
    return Policy(mode.value, frozenset(nodes))


def set_policy(policy: Policy) -> None:
    """For the calling thread. Raises OSError that names the call."""
    _call("set_mempolicy", *_arguments(policy))


def _wanted(placement: Placement, system: Path) -> Policy | None:
    """The policy to ask for; None where there is nothing to choose. Raises OSError for a node that is not there."""
    if placement == "none":
        return None
    nodes = frozenset(node.number for node in read_nodes(system) if node.memory_bytes)
    if len(nodes) < 2:
        return None
    if placement == "interleave":
        return Policy(_INTERLEAVE, nodes)
    if placement not in nodes:
        raise OSError(errno.EINVAL, f"there is no NUMA node {placement} with memory here")
    return Policy(_PREFERRED, frozenset({placement}))


def _arguments(policy: Policy) -> tuple[object, ...]:
    # The kernel takes one bit fewer than it is told.
    return ctypes.c_int(policy.mode), _mask(policy.nodes), ctypes.c_ulong(_NODE_BITS + 1)


def _mask(nodes: Iterable[int]) -> ctypes.Array[ctypes.c_ulong]:
    words = (ctypes.c_ulong * (_NODE_BITS // _WORD_BITS))()
    for node in nodes:
        words[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    return words


def _call(name: Literal["mbind", "get_mempolicy", "set_mempolicy"], *arguments: object) -> None:
    calls = _CALLS.get(platform.machine()) if sys.platform.startswith("linux") and _WORD_BITS == 64 else None
    if calls is None:
        raise OSError(
            errno.ENOSYS, f"memory cannot be placed on nodes on this system ({sys.platform}, {platform.machine()})"
        )
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    if syscall(ctypes.c_long(getattr(calls, name)), *arguments) != 0:
        code = ctypes.get_errno()  # EPERM: a container's seccomp profile
        raise OSError(code, f"{name} was refused: {os.strerror(code)}")
