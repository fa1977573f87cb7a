"""Sends a trace to a collector on this machine: OTLP/JSON over HTTP, by the standard library.

Promises: it connects to the literal address or the socket that the settings name and to nothing else. No name is looked
up, not even "localhost"; no proxy, no redirect and no ``OTEL_*`` variable counts.
"""

from __future__ import annotations

import http.client
import socket

from edgerag.errors import TracesError
from edgerag.types import LoopbackEndpoint

_TIMEOUT_S = 2.0  # to connect, and for each read
_MOST_REPLY_BYTES = 65_536
_REMEDY = "Start it, or take trace.otlp out of the settings."


class _Connection(http.client.HTTPConnection):
    """Connects without asking how a host is called."""

    def __init__(self, endpoint: LoopbackEndpoint) -> None:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host or "localhost"
        super().__init__(host, endpoint.port, timeout=_TIMEOUT_S)
        self._endpoint = endpoint

    def connect(self) -> None:
        endpoint = self._endpoint
        if endpoint.socket_path:
            family, address = socket.AF_UNIX, endpoint.socket_path
        else:
            family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
            address = (endpoint.host, endpoint.port)  # type: ignore[assignment]
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(address)


def send(otlp: str, endpoint: LoopbackEndpoint) -> None:
    """Raises TracesError where there is no collector, or it does not take it."""
    where = f"unix:{endpoint.socket_path}" if endpoint.socket_path else f"{endpoint.host}:{endpoint.port}"
    connection = _Connection(endpoint)
    try:
        connection.request("POST", endpoint.path, otlp.encode(), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read(_MOST_REPLY_BYTES)
        if not 200 <= reply.status < 300:
            raise TracesError(f"The collector at {where} refused a trace: {reply.status}.", remedy=_REMEDY)
    except (OSError, http.client.HTTPException) as error:
        raise TracesError(f"The collector at {where} cannot be reached: {error}.", remedy=_REMEDY) from error
    finally:
        connection.close()
