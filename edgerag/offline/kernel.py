"""The refusal by the kernel: a seccomp filter on ``socket`` for every thread of this process and all its children.

Written out as the few instructions that it is, and handed over through ctypes: no library is needed. A filter cannot
be taken off, and children inherit it, whatever program they run. Promises: once :func:`refuse_sockets` has returned
True, no thread of this process and no child makes a socket of any family but AF_UNIX (none at all with
``local_allowed=False``, but for pairs that are connected to each other), on x86_64 (with its 32-bit calls) and
aarch64; sockets that were open before stay.

seccomp(2); Documentation/userspace-api/seccomp_filter.rst and networking/filter.rst of Linux.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
_FLAG_TSYNC = 1  # all threads, not only this one
# Without it kernels before 5.16 slow the whole process down (speculative store bypass off): a filter is not a sandbox
# for foreign code, so it needs none of that.
_FLAG_SPEC_ALLOW = 4
_RET_ALLOW = 0x7FFF0000
_RET_ERRNO = 0x00050000
_REFUSED = _RET_ERRNO | errno.EACCES
_NOT_THERE = _RET_ERRNO | errno.ENOSYS  # callers of io_uring fall back to ordinary calls
# Codes of the BPF machine: load a word of seccomp_data, compare with a constant, return.
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24  # offsets; the low half of an argument on little-endian
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _TYPE_MASK = 1, 0xF
_X32_BIT = 0x40000000  # calls of the x32 interface of x86_64: nobody's, and all refused

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


@dataclass(frozen=True, slots=True)
class _Calls:
    """Numbers of one instruction set. ``other`` is the one of 32 bits that the same processor runs."""

    arch: int
    seccomp: int
    socket: int
    other_arch: int
    other_refused: tuple[int, ...]  # socketcall, socket, io_uring_setup


IO_URING_SETUP = 425  # the same everywhere
_PIDFD_GETFD = 438  # would take a socket out of another process
_CALLS = {
    "x86_64": _Calls(0xC000003E, 317, 41, 0x40000003, (102, 359, 425, 438)),
    "aarch64": _Calls(0xC00000B7, 277, 198, 0x40000028, (102, 281, 425, 438)),
}


def refuse_sockets(*, loopback: bool = False, local_allowed: bool = True) -> bool:
    """Puts the filter on. ``loopback`` lets stream sockets of IPv4 and IPv6 through, whose addresses others must hold;
    without ``local_allowed`` there are no AF_UNIX sockets either. False where this kernel or processor cannot."""
    calls = _CALLS.get(platform.machine())
    if sys.platform != "linux" or calls is None or sys.byteorder != "little":
        return False
    code = program(calls, loopback=loopback, local_allowed=local_allowed)
    packed = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *each) for each in code))
    header = struct.pack("@HP", len(code), ctypes.addressof(packed))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    syscall = libc.syscall
    syscall.restype = ctypes.c_long
    for flags in (_FLAG_TSYNC | _FLAG_SPEC_ALLOW, _FLAG_TSYNC):
        # A positive answer names a thread that could not follow: then it stands on none.
        if syscall(ctypes.c_long(calls.seccomp), ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(flags), header) == 0:
            return True
    return False


def is_filtered() -> bool:
    """Whether some seccomp filter is on this process."""
    try:
        status = open("/proc/self/status", "rb").read()  # noqa: SIM115, PTH123 - two imports less at every start
    except OSError:
        return False
    return b"\nSeccomp:\t2\n" in status


def machine_calls() -> _Calls | None:
    """The numbers of this processor; None where they are not known."""
    return _CALLS.get(platform.machine()) if sys.platform == "linux" else None


def program(calls: _Calls, *, loopback: bool, local_allowed: bool) -> list[Instruction]:
    """The filter, as instructions of classic BPF."""
    code: list[Instruction] = [(_LOAD, 0, 0, _ARCH)]
    native = _native_part(calls, loopback=loopback, local_allowed=local_allowed)
    other = _other_part(calls)
    code.append((_EQUAL, 0, len(native), calls.arch))  # not ours: over our part
    return [*code, *native, *other]


def _native_part(calls: _Calls, *, loopback: bool, local_allowed: bool) -> list[Instruction]:
    """Ends in a return on every way."""
    part: list[Instruction] = [(_LOAD, 0, 0, _NUMBER)]
    if calls.arch == _CALLS["x86_64"].arch:
        part += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _REFUSED)]
    part += [(_EQUAL, 0, 1, IO_URING_SETUP), (_RETURN, 0, 0, _NOT_THERE)]
    part += [(_EQUAL, 0, 1, _PIDFD_GETFD), (_RETURN, 0, 0, _REFUSED)]
    part += [(_EQUAL, 1, 0, calls.socket), (_RETURN, 0, 0, _RET_ALLOW)]
    part.append((_LOAD, 0, 0, _ARGUMENT_0))
    if local_allowed:
        part += [(_EQUAL, 0, 1, _AF_UNIX), (_RETURN, 0, 0, _RET_ALLOW)]
    if loopback:
        # Either family goes on to the type, everything else to the last line.
        part += [(_EQUAL, 1, 0, _AF_INET), (_EQUAL, 0, 4, _AF_INET6)]
        part += [(_LOAD, 0, 0, _ARGUMENT_1), (_AND, 0, 0, _TYPE_MASK)]
        part += [(_EQUAL, 0, 1, _SOCK_STREAM), (_RETURN, 0, 0, _RET_ALLOW)]
    part.append((_RETURN, 0, 0, _REFUSED))
    return part


def _other_part(calls: _Calls) -> list[Instruction]:
    """Programs of 32 bits on the same processor; the instruction set is what stands loaded."""
    refused = calls.other_refused
    part: list[Instruction] = [(_EQUAL, 1, 0, calls.other_arch), (_RETURN, 0, 0, _REFUSED), (_LOAD, 0, 0, _NUMBER)]
    for number in refused:
        part += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSED)]
    part.append((_RETURN, 0, 0, _RET_ALLOW))
    return part
