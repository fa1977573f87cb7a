"""The refusal inside Python: an audit hook, which no code can take off again.

It comes before the kernel's and says in words what was refused. Where the kernel has no seccomp it stands alone, and
then native code could pass it by. Promises: no socket of an internet family is made but a stream socket where loopback
ports are allowed; those connect to, or listen on, a loopback address and an allowed port only; no name is resolved;
the local sockets of resolvers are not connected to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

# Numbers of Linux: importing socket takes 3 ms, which every start would pay.
AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
SOCK_STREAM = 1
_TYPE_MASK = 0xF  # above it are SOCK_CLOEXEC and SOCK_NONBLOCK
# glibc's cache of names, systemd's resolver, Avahi: they would ask the network on behalf of us.
RESOLVER_SOCKETS = (
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/var/run/.nscd_socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/resolve/io.systemd.Resolve.Monitor",
    "/var/run/avahi-daemon/socket",
    "/run/avahi-daemon/socket",
)
_RESOLVING = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo", "socket.sethostname"}
)
_ADDRESSED = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"})

Refusal = Callable[[str, tuple[object, ...]], None]


def install(loopback_ports: frozenset[int], *, local_allowed: bool = True) -> None:
    """Puts the hook on this process, for good."""
    sys.addaudithook(refusal(loopback_ports, local_allowed=local_allowed))


def refusal(loopback_ports: frozenset[int], *, local_allowed: bool = True) -> Refusal:
    """The hook itself: raises PermissionError for what is not allowed."""

    def refuse(event: str, args: tuple[object, ...]) -> None:
        if not event.startswith("socket."):  # a thousand other events pass here: this is all that they cost
            return
        if event == "socket.__new__":
            _check_kind(args, loopback=bool(loopback_ports))
        elif event in _RESOLVING:
            # Numbers that stand for this machine itself need nobody's answer.
            if not (loopback_ports and event == "socket.getaddrinfo" and _is_loopback(args[0])):
                raise PermissionError(f"edgerag resolves no names ({event[7:]} {args[0]!r})")
        elif event in _ADDRESSED:
            _check_address(event, args[-1], loopback_ports, local_allowed=local_allowed)

    return refuse


def _check_kind(args: tuple[object, ...], *, loopback: bool) -> None:
    family, kind = args[1], args[2]
    # -1: socket(fileno=...), for a descriptor that is there already.
    if family in (AF_UNIX, -1):
        return
    stream = isinstance(kind, int) and kind & _TYPE_MASK == SOCK_STREAM
    if not (loopback and stream and family in (AF_INET, AF_INET6)):
        raise PermissionError(f"edgerag opens no network sockets (family {family}, type {kind})")


def _check_address(event: str, address: object, ports: frozenset[int], *, local_allowed: bool) -> None:
    if isinstance(address, str | bytes):  # of a local socket
        path = address if isinstance(address, str) else address.decode("utf-8", "replace")
        if path in RESOLVER_SOCKETS:
            raise PermissionError(f"edgerag asks no resolver ({path})")
        if not local_allowed:
            raise PermissionError(f"edgerag talks to no other process ({event[7:]} {path!r})")
        return
    if address is None:  # sendmsg on a socket that is connected
        return
    if not isinstance(address, tuple) or len(address) < 2:
        raise PermissionError(f"edgerag talks to no network ({event[7:]} {address!r})")
    host, port = address[0], address[1]
    if not (_is_loopback(host) and port in ports):
        raise PermissionError(f"edgerag talks to no network ({event[7:]} {host!r} port {port!r})")


def _is_loopback(host: object) -> bool:
    """Whether it is a number of this machine itself; "localhost" is a name, and names are resolved by others."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if not isinstance(text, str):
        return False
    if text == "::1":
        return True
    parts = text.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdigit() for part in parts)
