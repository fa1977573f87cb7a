"""The process is shut off: put on once, before any native library is loaded, and never off again."""

from __future__ import annotations

import ctypes
import errno
from dataclasses import dataclass

from edgerag.offline import hook, kernel, landlock, resolver
from edgerag.offline.allowed import NOTHING, Allowed


@dataclass(frozen=True, slots=True)
class Guard:
    """Who stands guard over this process."""

    kernel: bool  # the seccomp filter; without it, native code and children are not held
    ports: bool  # Landlock holds the loopback ports; also True where none are allowed
    files_only: bool  # the C library looks into files for names


def shut_off(allowed: Allowed = NOTHING) -> Guard:
    """Refuses every network to this process and its children, but for what is ``allowed``.

    What the kernel cannot do is left out, and said in what is given back and by ``edgerag doctor --offline-proof``.
    """
    files_only = resolver.look_into_files_only()
    ports = allowed.loopback_ports
    filtered = kernel.refuse_sockets(loopback=bool(ports), local_allowed=allowed.local_sockets)
    held = landlock.keep_to_ports(ports) if ports and filtered else not ports
    hook.install(ports, local_allowed=allowed.local_sockets)
    return Guard(filtered, held, files_only)


def is_shut_off() -> bool:
    """Whether this process can make no datagram socket of the internet, whoever refuses it."""
    import socket

    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except PermissionError:
        return True
    return False


def kernel_refuses() -> bool:
    """Whether the kernel does, whatever Python says: asked through the C library, where no hook looks."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.socket(hook.AF_INET, 2, 0)
    if descriptor >= 0:
        libc.close(descriptor)
        return False
    return ctypes.get_errno() == errno.EACCES
