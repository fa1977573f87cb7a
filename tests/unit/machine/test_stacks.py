"""Threads of native code take as much address space as they are allowed, and afterwards what they took before."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from edgerag.machine.stacks import small_stacks

ROOT = Path(__file__).parents[3]
# Threads of the C library, not of Python, that wait for each other's end in a pipe.
MANY = """
import ctypes, os, resource, sys
from contextlib import nullcontext
from edgerag.machine.stacks import small_stacks
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
pthread_create = ctypes.CDLL(None).pthread_create
pause = ctypes.CDLL(None).pause
used = int(next(l for l in open("/proc/self/status") if l.startswith("VmSize")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
with small_stacks(64 << 10) if sys.argv[1] == "small" else nullcontext():
    failed = sum(bool(pthread_create(ctypes.byref(ctypes.c_ulong()), None, pause, None)) for _ in range(200))
print(failed)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="is about glibc")
def test_two_hundred_threads_start_where_there_is_little_address_space() -> None:
    def failed(stacks: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", MANY, stacks], capture_output=True, text=True, check=True, cwd=ROOT
        )
        return int(done.stdout)

    assert failed("usual") > 0
    assert failed("small") == 0


def usual_stack_bytes() -> int:
    """Of the next thread that native code starts."""
    library = ctypes.CDLL(None)
    attributes, size = ctypes.create_string_buffer(128), ctypes.c_size_t()
    assert library.pthread_getattr_default_np(attributes) == 0
    assert library.pthread_attr_getstacksize(attributes, ctypes.byref(size)) == 0
    return size.value


@pytest.mark.skipif(sys.platform != "linux", reason="is about glibc")
def test_an_impossible_size_changes_nothing() -> None:
    before = usual_stack_bytes()
    with small_stacks(1):
        assert usual_stack_bytes() == before
    with small_stacks(1 << 20):
        assert usual_stack_bytes() == 1 << 20, "a possible one does"
    assert usual_stack_bytes() == before
