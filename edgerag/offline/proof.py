"""Every way out is tried, for real, and who refused it is told.

What is tried would go to 192.0.2.1 and 2001:db8::1, which are set aside for documentation (RFC 5737, RFC 3849), and
look up a name that never exists (RFC 6761): nothing of anybody's is disturbed where one does get through. A way that
fails for another reason than a refusal, because there is no network for instance, counts as open.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgerag.offline import kernel
from edgerag.offline.allowed import Allowed
from edgerag.offline.hook import RESOLVER_SOCKETS

Layer = Literal["python", "kernel", "libc", ""]  # "": nobody refused it

_NOWHERE_4 = "192.0.2.1"
_NOWHERE_6 = "2001:db8::1"
_NO_NAME = "edgerag-offline-proof.invalid"
_PORT = 9  # discard
_TIMEOUT_S = 2.0  # of what gets through
_CHILD_TIMEOUT_S = 30.0
_REFUSALS = (errno.EACCES, errno.EPERM)
_AF_PACKET, _AF_NETLINK, _AF_VSOCK = 17, 16, 40
# Run by a Python of its own, without our hook: only what children inherit holds it. Prints an error number, 0 for none.
_CHILD_SOCKET = """
import socket
try:
    made = socket.socket({family}, {kind})
    made.settimeout({timeout})
    made.connect({address!r})
    print(0)
except OSError as error:
    print(error.errno or {timed_out})
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way out. ``layer`` refused it; it is ``open`` where nobody did, though it is there."""

    way: str
    layer: Layer
    said: str
    open: bool = False


def attempts(allowed: Allowed) -> Iterator[Attempt]:
    """Tries each, one after the other."""
    yield from _in_python()
    yield from _by_libc(allowed)
    yield from _by_kernel_calls()
    yield from _by_children(allowed)


# ------------------------------------------------------------ inside Python


def _in_python() -> Iterator[Attempt]:
    ways: list[tuple[str, Callable[[], object]]] = [
        ("TCP over IPv4", lambda: _connect(socket.AF_INET, (_NOWHERE_4, _PORT))),
        ("TCP over IPv6", lambda: _connect(socket.AF_INET6, (_NOWHERE_6, _PORT))),
        ("UDP over IPv4", lambda: _send(socket.AF_INET, (_NOWHERE_4, _PORT))),
        ("UDP over IPv6", lambda: _send(socket.AF_INET6, (_NOWHERE_6, _PORT))),
        ("listening on every address", _listen),
        ("a raw IP socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()),
        ("a packet socket", lambda: socket.socket(_AF_PACKET, socket.SOCK_RAW).close()),
        ("getaddrinfo", lambda: socket.getaddrinfo(_NO_NAME, 80)),
        ("gethostbyname", lambda: socket.gethostbyname(_NO_NAME)),
        ("gethostbyaddr", lambda: socket.gethostbyaddr(_NOWHERE_4)),
    ]
    ways += [(f"the resolver at {path}", lambda path=path: _connect_local(path)) for path in RESOLVER_SOCKETS]  # type: ignore[misc]
    for way, attempt in ways:
        yield _tried(f"Python: {way}", attempt)


def _tried(way: str, attempt: Callable[[], object]) -> Attempt:
    try:
        attempt()
    except OSError as error:
        if isinstance(error, PermissionError) and error.errno is None:  # our hook raises it with words alone
            return Attempt(way, "python", str(error))
        if error.errno in _REFUSALS:
            return Attempt(way, "kernel", str(error))
        if isinstance(error, FileNotFoundError):
            return Attempt(way, "", "is not on this machine")
        return Attempt(way, "", f"was tried, and failed otherwise: {error}", open=True)
    return Attempt(way, "", "got through", open=True)


def _connect(family: int, address: tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.settimeout(_TIMEOUT_S)
        made.connect(address)


def _send(family: int, address: tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.sendto(b"", address)


def _listen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.bind(("0.0.0.0", 0))  # noqa: S104 - this is what must be refused


def _connect_local(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.settimeout(_TIMEOUT_S)
        made.connect(path)


# ------------------------------------------------------------ through the C library, where no hook of Python's looks


def _by_libc(allowed: Allowed) -> Iterator[Attempt]:
    libc = ctypes.CDLL(None, use_errno=True)
    stream, datagram, raw = int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM), int(socket.SOCK_RAW)
    for name, family, kind in (
        ("TCP over IPv4", socket.AF_INET, stream),
        ("TCP over IPv6", socket.AF_INET6, stream),
        ("UDP over IPv4", socket.AF_INET, datagram),
        ("UDP over IPv6", socket.AF_INET6, datagram),
        ("a raw IP socket", socket.AF_INET, raw),
        ("a packet socket", _AF_PACKET, raw),
        ("a netlink socket", _AF_NETLINK, raw),
        ("a socket to the host of a virtual machine", _AF_VSOCK, stream),
    ):
        yield _libc_socket(libc, f"C library: {name}", int(family), kind, allowed)
    yield _libc_lookup(libc)


def _libc_socket(libc: ctypes.CDLL, way: str, family: int, kind: int, allowed: Allowed) -> Attempt:
    descriptor = libc.socket(family, kind, 0)
    if descriptor < 0:
        return _by_number(way, ctypes.get_errno())
    try:
        if kind == socket.SOCK_STREAM and family in (socket.AF_INET, socket.AF_INET6) and allowed.loopback_ports:
            return _libc_connect(libc, way, family, descriptor, allowed)
    finally:
        libc.close(descriptor)
    return Attempt(way, "", "the socket was made", open=True)


def _libc_connect(libc: ctypes.CDLL, way: str, family: int, descriptor: int, allowed: Allowed) -> Attempt:
    """Stream sockets are let through for loopback: then the ports must be held."""
    port = _other_port(allowed)
    host = socket.inet_pton(family, _NOWHERE_4 if family == socket.AF_INET else _NOWHERE_6)
    before = b"" if family == socket.AF_INET else bytes(4)
    address = int(family).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + before + host + bytes(8)
    os.set_blocking(descriptor, False)  # what is not refused is not waited for
    if libc.connect(descriptor, address, len(address)) == 0:
        return Attempt(way, "", f"port {port}, which is not allowed: got through", open=True)
    refused = _by_number(way, ctypes.get_errno())
    ports = ", ".join(map(str, sorted(allowed.loopback_ports)))
    return Attempt(
        way, refused.layer, f"{refused.said}; ports let through by offline.loopback_ports: {ports}", refused.open
    )


def _libc_lookup(libc: ctypes.CDLL) -> Attempt:
    """No lookup is refused as such: it finds no way to ask anybody."""
    way = "C library: getaddrinfo"
    found = ctypes.c_void_p()
    code = libc.getaddrinfo(_NO_NAME.encode(), b"80", None, ctypes.byref(found))
    if code == 0:
        libc.freeaddrinfo(found)
        return Attempt(way, "", "a name was resolved that does not exist", open=True)
    if not hasattr(libc, "__nss_configure_lookup") or not kernel.is_filtered():
        return Attempt(way, "", "may have asked a resolver", open=True)
    return Attempt(way, "libc", "looked into the machine's own files, and asked nobody")


def _by_number(way: str, number: int) -> Attempt:
    if number in _REFUSALS:
        return Attempt(way, "kernel", os.strerror(number))
    if number in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
        return Attempt(way, "kernel", f"{os.strerror(number)}: this kernel has no such sockets")
    return Attempt(way, "", f"was tried, and failed otherwise: {os.strerror(number)}", open=True)


# ------------------------------------------------------------ calls of the kernel that could stand in for socket()


def _by_kernel_calls() -> Iterator[Attempt]:
    libc = ctypes.CDLL(None, use_errno=True)
    calls = kernel.machine_calls()
    if calls is None:
        yield Attempt("kernel: socket by number", "", "the numbers of this processor are not known", open=True)
        return
    for way, number, arguments in (
        ("kernel: socket by number", calls.socket, (int(socket.AF_INET), int(socket.SOCK_DGRAM), 0)),
        ("kernel: io_uring, which makes sockets of its own", kernel.IO_URING_SETUP, (1, None)),
    ):
        libc.syscall.restype = ctypes.c_long
        given = [argument if argument is None else ctypes.c_long(argument) for argument in arguments]
        descriptor = libc.syscall(ctypes.c_long(number), *given)
        if descriptor >= 0:
            os.close(descriptor)
            yield Attempt(way, "", "got through", open=True)
        elif ctypes.get_errno() == errno.ENOSYS:
            yield Attempt(way, "kernel", os.strerror(errno.ENOSYS))
        else:
            yield _by_number(way, ctypes.get_errno())


# ------------------------------------------------------------ children


def _by_children(allowed: Allowed) -> Iterator[Attempt]:
    for name, family, kind, address in (
        ("TCP over IPv4", "socket.AF_INET", "socket.SOCK_STREAM", (_NOWHERE_4, _other_port(allowed))),
        ("UDP over IPv6", "socket.AF_INET6", "socket.SOCK_DGRAM", (_NOWHERE_6, _PORT)),
    ):
        yield _child(f"a child process: {name}", family, kind, address)
    for path in RESOLVER_SOCKETS:
        if os.path.exists(path):  # noqa: PTH110
            yield _child(f"a child process: the resolver at {path}", "socket.AF_UNIX", "socket.SOCK_STREAM", path)


def _other_port(allowed: Allowed) -> int:
    """The first one that is not let through."""
    return next(port for port in range(_PORT, 65_536) if port not in allowed.loopback_ports)


def _child(way: str, family: str, kind: str, address: tuple[str, int] | str) -> Attempt:
    code = _CHILD_SOCKET.format(
        family=family, kind=kind, timeout=_TIMEOUT_S, address=address, timed_out=errno.ETIMEDOUT
    )
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-S", "-c", code],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_CHILD_TIMEOUT_S,
            check=False,
        )
        number = int(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return Attempt(way, "", f"could not be tried: {error}", open=True)
    if number == 0:
        return Attempt(way, "", "got through", open=True)
    return _by_number(way, number)
