"""What the settings let through the guard, and nothing else.

Every setting that makes the program talk to another process names it here; it is decided once, at the start, and a
change of the settings holds from the next start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.types import LoopbackEndpoint

if TYPE_CHECKING:
    from edgerag.config import Settings


@dataclass(frozen=True, slots=True)
class Allowed:
    loopback_ports: frozenset[int] = frozenset()  # TCP, of this machine itself
    local_sockets: bool = True  # AF_UNIX, but to no resolver


NOTHING = Allowed()  # that anybody has to ask for


def allowed_by(settings: Settings) -> Allowed:
    ports = {int(port) for port in settings.offline.loopback_ports}
    if settings.metrics.port:
        ports.add(settings.metrics.port)
    if settings.trace.otlp:
        collector = LoopbackEndpoint.parse(settings.trace.otlp)
        ports |= set() if collector.socket_path else {collector.port}
    return Allowed(loopback_ports=frozenset(ports), local_sockets=settings.offline.local_sockets)
