"""The filter, run by an interpreter of its instructions for both processors, and for real in a process of its own."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.offline import kernel

ALLOW = 0x7FFF0000
REFUSED = 0x00050000 | errno.EACCES
NOT_THERE = 0x00050000 | errno.ENOSYS
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DGRAM, RAW = 1, 2, 3
CLOEXEC = 0o2000000
PROCESSORS = sorted(kernel._CALLS)


def judged(code: list[kernel.Instruction], *, arch: int, number: int, arguments: tuple[int, int] = (0, 0)) -> int:
    """What the kernel would do with a call: Linux' classic BPF, as far as the filter uses it."""
    words = {0: number, 4: arch, 16: arguments[0], 24: arguments[1]}
    loaded, at = 0, 0
    while True:
        operation, if_true, if_false, constant = code[at]
        at += 1
        match operation:
            case 0x20:
                loaded = words[constant]
            case 0x54:
                loaded &= constant
            case 0x15:
                at += if_true if loaded == constant else if_false
            case 0x35:
                at += if_true if loaded >= constant else if_false
            case 0x06:
                return constant
            case _:
                raise AssertionError(operation)


@pytest.mark.parametrize("processor", PROCESSORS)
@given(
    family=st.integers(0, 50),
    kind=st.sampled_from([STREAM, DGRAM, RAW, STREAM | CLOEXEC, DGRAM | CLOEXEC]),
    loopback=st.booleans(),
    local=st.booleans(),
)
def test_only_what_is_allowed_becomes_a_socket(
    processor: str, family: int, kind: int, loopback: bool, local: bool
) -> None:
    calls = kernel._CALLS[processor]
    code = kernel.program(calls, loopback=loopback, local_allowed=local)
    verdict = judged(code, arch=calls.arch, number=calls.socket, arguments=(family, kind))
    inside = family == AF_UNIX and local
    on_itself = loopback and family in (AF_INET, AF_INET6) and kind & 0xF == STREAM
    assert verdict == (ALLOW if inside or on_itself else REFUSED)


@pytest.mark.parametrize("processor", PROCESSORS)
@given(number=st.integers(0, 460), loopback=st.booleans())
def test_no_other_call_is_touched(processor: str, number: int, loopback: bool) -> None:
    calls = kernel._CALLS[processor]
    code = kernel.program(calls, loopback=loopback, local_allowed=True)
    verdict = judged(code, arch=calls.arch, number=number, arguments=(AF_INET, DGRAM))
    expected = {calls.socket: REFUSED, kernel.IO_URING_SETUP: NOT_THERE, 438: REFUSED}
    assert verdict == expected.get(number, ALLOW)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_calls_of_32_bits_are_no_way_around(processor: str) -> None:
    calls = kernel._CALLS[processor]
    code = kernel.program(calls, loopback=True, local_allowed=True)
    for number in calls.other_refused:
        assert judged(code, arch=calls.other_arch, number=number) == REFUSED
    assert judged(code, arch=calls.other_arch, number=3) == ALLOW
    assert judged(code, arch=0x1234, number=3) == REFUSED, "an instruction set that nobody knows"
    if processor == "x86_64":
        assert judged(code, arch=calls.arch, number=calls.socket | 0x40000000) == REFUSED


IN_A_PROCESS = """
import ctypes, errno, os, socket, subprocess, sys, threading
from edgerag.offline import kernel

went, results = threading.Event(), []
def early():  # a thread that was there before
    went.wait()
    try:
        socket.socket(socket.AF_INET)
        results.append("open")
    except OSError as error:
        results.append(errno.errorcode[error.errno])
thread = threading.Thread(target=early)
thread.start()
if not kernel.refuse_sockets():
    went.set()
    sys.exit(77)
went.set()
thread.join()
socket.socketpair()
socket.socket(socket.AF_UNIX).close()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.socket(socket.AF_INET6, socket.SOCK_DGRAM, 0) == -1
results.append(errno.errorcode[ctypes.get_errno()])
child = "import socket\\ntry: socket.socket(); print('open')\\nexcept PermissionError: print('EACCES')"
results.append(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip())
print(*results)
"""


def test_the_kernel_holds_threads_native_code_and_children() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this kernel allows no seccomp filter")
    assert done.stdout.split() == ["EACCES"] * 3, done.stderr
