"""The guard on a process of its own: what was configured works, everything beside it is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from edgerag.config import MetricsSettings, OfflineSettings, Settings, TraceSettings, load_settings
from edgerag.errors import UsageError
from edgerag.offline.allowed import Allowed, allowed_by

LOOPBACK = """
import ctypes, json, socket
from edgerag.offline.allowed import Allowed
from edgerag.offline.guard import is_shut_off, shut_off

servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
ports = [server.getsockname()[1] for server in servers]
before = is_shut_off()
guard = shut_off(Allowed(frozenset(ports[:1])))
told = {"kernel": guard.kernel, "ports": guard.ports, "before": before, "after": is_shut_off()}
for name, port in zip(("configured", "other"), ports):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        told[name] = "connected"
    except PermissionError as error:
        told[name] = str(error)
libc = ctypes.CDLL(None, use_errno=True)
address = (2).to_bytes(2, "little") + ports[1].to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
told["native"] = libc.connect(libc.socket(2, 1, 0), address, 16)
print(json.dumps(told))
"""


def test_loopback_is_open_where_it_was_configured_and_nowhere_else() -> None:
    done = subprocess.run([sys.executable, "-c", LOOPBACK], capture_output=True, text=True, check=False)
    told = json.loads(done.stdout or "{}")
    assert (told.get("before"), told.get("after")) == (False, True), done.stderr
    assert told["configured"] == "connected"
    assert "talks to no network" in told["other"]
    assert told["ports"] is False or told["native"] == -1, "the kernel holds native code to the ports"


def test_the_settings_say_what_is_open() -> None:
    assert allowed_by(Settings()) == Allowed()
    some = Settings(offline=OfflineSettings(loopback_ports=("4318", "9100"), local_sockets=False))
    assert allowed_by(some) == Allowed(frozenset({4318, 9100}), local_sockets=False)
    collector = Settings(trace=TraceSettings(otlp="http://[::1]:4319/v1/traces"), metrics=MetricsSettings(port=9101))
    assert allowed_by(collector).loopback_ports == {4319, 9101}
    assert allowed_by(Settings(trace=TraceSettings(otlp="unix:/run/otel.sock"))) == Allowed()


@pytest.mark.parametrize("written", ["[4318, 9100]", '["4318", "9100"]', '"4318, 9100"'])
def test_ports_are_read_however_they_are_written(tmp_path, written: str) -> None:
    (tmp_path / "config.toml").write_text(f"[offline]\nloopback_ports = {written}\n")
    settings = load_settings(tmp_path / "config.toml", {}, {})
    assert allowed_by(settings).loopback_ports == {4318, 9100}


@pytest.mark.parametrize("written", ["[0]", "[65536]", '["http"]', '["-1"]', "[true]", "[1.5]", "80"])
def test_what_is_no_port_is_refused_by_name(tmp_path, written: str) -> None:
    (tmp_path / "config.toml").write_text(f"[offline]\nloopback_ports = {written}\n")
    with pytest.raises(UsageError, match=r"offline\.loopback_ports"):
        load_settings(tmp_path / "config.toml", {}, {})
