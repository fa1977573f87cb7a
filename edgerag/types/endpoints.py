"""Where a collector listens on this machine: the one thing that traces may be sent to, and only when it is named."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

_OTLP_PORT = 4318  # of OTLP over HTTP
_OTLP_PATH = "/v1/traces"
_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class LoopbackEndpoint:
    """``host`` is a literal address of this machine; with ``socket_path`` there is none."""

    host: str = ""
    port: int = _OTLP_PORT
    path: str = _OTLP_PATH
    socket_path: str = ""

    @classmethod
    def parse(cls, text: str) -> LoopbackEndpoint:
        """``http://127.0.0.1:4318``, ``http://[::1]:4318/v1/traces`` or ``unix:/run/otel.sock``. Raises ValueError for
        all else: another machine, a name (none is ever looked up), TLS, a password."""
        if text.startswith(_UNIX):
            socket_path = text.removeprefix(_UNIX)
            if not socket_path.startswith("/") or "\0" in socket_path:
                raise ValueError(f"{text!r} names no socket; write unix:/PATH, the path absolute")
            return cls(socket_path=socket_path)
        if any(not " " < character <= "~" for character in text):  # urlsplit() would drop line ends from within
            raise ValueError(f"{text!r} has a character that no address of a collector has")
        parts = urlsplit(text)
        port = parts.port  # raises ValueError
        if port == 0:
            raise ValueError(f"{text!r} names port 0, which nobody listens at; write a port from 1 to 65535")
        if parts.scheme != "http" or parts.username is not None or parts.query or parts.fragment:
            raise ValueError(f"{text!r} is not http://127.0.0.1:PORT, http://[::1]:PORT or unix:/PATH")
        host = parts.hostname or ""
        if not _is_loopback(host):
            raise ValueError(
                f"{text!r} is not on this machine: traces go to a literal address of 127.0.0.0/8, to [::1] or to a "
                "unix socket, and no name is looked up"
            )
        path = parts.path if parts.path not in ("", "/") else _OTLP_PATH
        if not path.isascii() or not path.isprintable() or " " in path:
            raise ValueError(f"{text!r} has a path that no request can have")
        return cls(host, _OTLP_PORT if port is None else port, path)


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_loopback
    return host == "::1"
