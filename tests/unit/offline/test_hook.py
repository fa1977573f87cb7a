"""What the audit hook refuses, and what it leaves alone."""

from __future__ import annotations

import socket

import pytest

from edgerag.offline import hook

CLOSED = hook.refusal(frozenset())
OPEN = hook.refusal(frozenset({4318}))
ALONE = hook.refusal(frozenset(), local_allowed=False)
STREAM, DGRAM = int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, 16, 17, 40])
@pytest.mark.parametrize("kind", [STREAM, DGRAM, 3, STREAM | socket.SOCK_CLOEXEC])
def test_no_socket_of_a_network_is_made(family: int, kind: int) -> None:
    with pytest.raises(PermissionError, match="no network sockets"):
        CLOSED("socket.__new__", (None, family, kind, 0))


def test_local_sockets_and_known_descriptors_pass() -> None:
    CLOSED("socket.__new__", (None, socket.AF_UNIX, STREAM, 0))
    CLOSED("socket.__new__", (None, -1, -1, -1))
    CLOSED("socket.connect", (None, "/run/user/1000/something"))
    CLOSED("open", ("/etc/hosts", "r", 0))


@pytest.mark.parametrize("path", hook.RESOLVER_SOCKETS)
@pytest.mark.parametrize("event", ["socket.connect", "socket.sendto"])
def test_no_resolver_is_asked(event: str, path: str) -> None:
    for address in (path, path.encode()):
        with pytest.raises(PermissionError, match="resolver"):
            CLOSED(event, (None, address))


def test_without_local_sockets_none_is_connected() -> None:
    with pytest.raises(PermissionError, match="no other process"):
        ALONE("socket.connect", (None, "/run/anything"))


@pytest.mark.parametrize(
    "event", ["socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"]
)
@pytest.mark.parametrize("name", ["example.org", b"example.org", "localhost", "127.0.0.1.example.org", None, "::2"])
def test_no_name_is_resolved(event: str, name: object) -> None:
    for refuse in (CLOSED, OPEN):
        with pytest.raises(PermissionError, match="resolves no names"):
            refuse(event, (name, 80, 0, 0, 0))


@pytest.mark.parametrize("address", [("127.0.0.1", 4318), ("127.1.2.3", 4318), ("::1", 4318, 0, 0)])
def test_what_was_configured_passes(address: tuple[object, ...]) -> None:
    OPEN("socket.__new__", (None, socket.AF_INET, STREAM | socket.SOCK_NONBLOCK, 0))
    OPEN("socket.getaddrinfo", (address[0], 4318, 0, 0, 0))
    OPEN("socket.connect", (None, address))
    OPEN("socket.bind", (None, address))
    with pytest.raises(PermissionError):
        CLOSED("socket.connect", (None, address))


@pytest.mark.parametrize(
    "address",
    [
        ("127.0.0.1", 4319),
        ("192.0.2.1", 4318),
        ("0.0.0.0", 4318),
        ("", 4318),
        ("127.0.0.1.example.org", 4318),
        ("127.0.0.", 4318),
        ("localhost", 4318),
        ("::ffff:127.0.0.1", 4318, 0, 0),
        (b"10.0.0.1", 4318),
        7,
    ],
)
def test_nothing_beside_it_does(address: object) -> None:
    for event in ("socket.connect", "socket.bind", "socket.sendto"):
        with pytest.raises(PermissionError):
            OPEN(event, (None, address))


def test_datagrams_never_pass() -> None:
    with pytest.raises(PermissionError):
        OPEN("socket.__new__", (None, socket.AF_INET, DGRAM, 0))
