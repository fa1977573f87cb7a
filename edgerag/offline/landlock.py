"""The ports that a process with loopback may use, held by the kernel: Landlock, Linux 6.7 and newer.

A seccomp filter sees that a socket is made, not where it connects to. Where loopback ports are allowed, Landlock keeps
native code and children to these ports; that the address is this machine's own, only the hook inside Python holds.

landlock(7); Documentation/userspace-api/landlock.rst of Linux.
"""

from __future__ import annotations

import ctypes
import os
import struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every processor
_FLAG_VERSION = 1
_RULE_NET_PORT = 2
_BIND_TCP, _CONNECT_TCP = 1, 2
_FIRST_VERSION_WITH_PORTS = 4


def keep_to_ports(ports: frozenset[int]) -> bool:
    """Lets this thread and what it starts from now on use these TCP ports and no other, for good; False where the
    kernel cannot. Needs no_new_privs. To be called before other threads are there: they would not follow."""
    libc = ctypes.CDLL(None, use_errno=True)
    syscall = libc.syscall
    syscall.restype = ctypes.c_long
    version = syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_FLAG_VERSION))
    if version < _FIRST_VERSION_WITH_PORTS:
        return False
    handled = struct.pack("<QQ", 0, _BIND_TCP | _CONNECT_TCP)  # nothing of the file system
    ruleset = syscall(ctypes.c_long(_CREATE_RULESET), handled, ctypes.c_size_t(len(handled)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for port in ports:
            rule = struct.pack("<QQ", _BIND_TCP | _CONNECT_TCP, port)
            if syscall(
                ctypes.c_long(_ADD_RULE),
                ctypes.c_long(ruleset),
                ctypes.c_int(_RULE_NET_PORT),
                rule,
                ctypes.c_uint32(0),
            ):
                return False
        return bool(syscall(ctypes.c_long(_RESTRICT_SELF), ctypes.c_long(ruleset), ctypes.c_uint32(0)) == 0)
    finally:
        os.close(ruleset)
