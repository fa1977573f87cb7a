"""Threads of llama.cpp on processors of our choice, one each.

A thread pool of ggml carries a mask of processors. OpenMP builds apply it to OpenMP's own threads, the calling
thread among them, so :func:`own_affinity` gives the caller its own back. Where the CPU backend
offers no thread pools, or the system no affinity, :func:`make_pool` gives None, and the threads run where the
system puts them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from typing import Any

from edgerag.engine.llama.library import library

_MOST_THREADS = 512  # GGML_MAX_N_THREADS


class _Parameters(ctypes.Structure):
    """``struct ggml_threadpool_params``."""

    _fields_ = (
        ("cpumask", ctypes.c_bool * _MOST_THREADS),
        ("n_threads", ctypes.c_int),
        ("prio", ctypes.c_int),
        ("poll", ctypes.c_uint32),
        ("strict_cpu", ctypes.c_bool),
        ("paused", ctypes.c_bool),
    )


class ThreadPool:
    """One thread on each of ``cpus``."""

    def __init__(self, cpus: Sequence[int], *, new: Any, free: Any) -> None:
        parameters = _Parameters(n_threads=len(cpus), poll=50, strict_cpu=True)
        for cpu in cpus:
            parameters.cpumask[cpu] = True
        self._free = free
        self.handle: int | None = new(ctypes.byref(parameters))

    def close(self) -> None:
        """Ends the threads; contexts that use them first."""
        if self.handle is not None:
            self._free(self.handle)
            self.handle = None


@contextlib.contextmanager
def own_affinity() -> Iterator[None]:
    """What is computed inside may move this thread to another processor; afterwards it runs where it ran."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def make_pool(cpus: Sequence[int]) -> ThreadPool | None:
    """A pool with one thread on each of the logical processors ``cpus``; None where threads cannot be pinned."""
    if not cpus or max(cpus) >= _MOST_THREADS or not hasattr(os, "sched_setaffinity"):
        return None
    functions = _functions()
    if functions is None:
        return None
    pool = ThreadPool(cpus, new=functions[0], free=functions[1])
    return pool if pool.handle else None


def _functions() -> tuple[Any, Any] | None:
    """``ggml_threadpool_new`` and ``_free`` of the CPU backend in use, which may be a library loaded at run time."""
    ggml = library().api._lib
    by_name, lookup = ggml.ggml_backend_reg_by_name, ggml.ggml_backend_reg_get_proc_address
    by_name.argtypes, by_name.restype = [ctypes.c_char_p], ctypes.c_void_p
    lookup.argtypes, lookup.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p
    backend = by_name(b"CPU")
    if not backend:
        return None
    new, free = lookup(backend, b"ggml_threadpool_new"), lookup(backend, b"ggml_threadpool_free")
    if not new or not free:
        return None
    return (
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Parameters))(new),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free),
    )
