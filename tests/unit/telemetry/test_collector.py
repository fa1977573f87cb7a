"""Traces go to a collector on this machine, when one is named, and nowhere else."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.config import load_settings
from edgerag.errors import TracesError, UsageError
from edgerag.telemetry.collector import send
from edgerag.types import LoopbackEndpoint


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Content-Type"], json.loads(body)))  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        if self.server.status == 302:  # type: ignore[attr-defined]
            self.send_header("Location", "http://192.0.2.1/")
        self.end_headers()

    def address_string(self) -> str:  # of a unix socket there is none
        return "here"

    def log_message(self, *args: object) -> None:
        pass


def serve(server: Any) -> Any:
    server.got = []
    server.status = 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def collector() -> Iterator[Any]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Collector) as server:
        yield serve(server)
        server.shutdown()


def test_a_trace_is_sent_as_a_collector_reads_it(collector: Any) -> None:
    endpoint = LoopbackEndpoint.parse(f"http://127.0.0.1:{collector.server_address[1]}")
    send('{"resourceSpans":[]}', endpoint)
    assert collector.got == [("/v1/traces", "application/json", {"resourceSpans": []})]


def test_a_unix_socket_will_do(tmp_path: Path) -> None:
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "s"), _Collector) as server:
        serve(server)
        send("{}", LoopbackEndpoint.parse(f"unix:{tmp_path}/s"))
        server.shutdown()
    assert [path for path, _, _ in server.got] == ["/v1/traces"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [302, 400, 503])
def test_a_refusal_is_told_and_no_redirect_followed(collector: Any, status: int) -> None:
    collector.status = status
    with pytest.raises(TracesError, match=str(status)):
        send("{}", LoopbackEndpoint.parse(f"http://127.0.0.1:{collector.server_address[1]}/own/path"))
    assert [path for path, _, _ in collector.got] == ["/own/path"]


def test_where_nothing_listens_that_is_told(tmp_path: Path) -> None:
    for endpoint in ("http://127.0.0.1:9", f"unix:{tmp_path}/none"):
        with pytest.raises(TracesError, match="cannot be reached"):
            send("{}", LoopbackEndpoint.parse(endpoint))


def test_no_name_is_looked_up_and_no_proxy_asked(collector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.setenv(variable, "http://192.0.2.1:1")
    seen: list[tuple[str, Any]] = []
    watching = True

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if watching and event.startswith("socket.") and threading.current_thread() is threading.main_thread():
            seen.append((event, args[1:]))

    sys.addaudithook(watch)
    send("{}", LoopbackEndpoint.parse(f"http://127.0.0.1:{collector.server_address[1]}"))
    watching = False
    assert {event for event, _ in seen} <= {"socket.__new__", "socket.connect"}
    assert [args for event, args in seen if event == "socket.connect"] == [
        (("127.0.0.1", collector.server_address[1]),)
    ]


@pytest.mark.parametrize(
    "good",
    ["http://127.0.0.1", "http://127.0.0.1:4318/", "http://127.1.2.3:1/x", "http://[::1]:4318", "unix:/run/otel.sock"],
)
def test_what_is_on_this_machine_is_taken(good: str) -> None:
    endpoint = LoopbackEndpoint.parse(good)
    assert endpoint.socket_path or endpoint.host in ("127.0.0.1", "127.1.2.3", "::1")


@pytest.mark.parametrize(
    "bad",
    [
        "http://localhost:4318", "https://127.0.0.1:4318", "http://10.0.0.1", "http://0.0.0.0:4318", "http://[::]:1",
        "http://127.1", "http://2130706433", "http://0177.0.0.1", "http://127.0.0.1.example.org", "http://example.org",
        "http://[::ffff:127.0.0.1]", "http://[fe80::1%25eth0]", "http://user@127.0.0.1", "http://127.0.0.1@example.org/",
        "http://127.0.0.1:99999", "http://127.0.0.1:x", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "unix:relative",
        "unix:", "http://127.0.0.1:0", "http://127.0.0.1:43\n18", "http://127.0.0.1:4318\n", " http://127.0.0.1",
        "http://127.0.0.1:43\t18", "http://127.0.0.1:４３",
        "file:///etc/passwd", "http://127.0.0.1/a b", "http://127.0.0.1/\r\nX: y", "http://", "x",
    ],
)  # fmt: skip
def test_all_else_is_refused_where_settings_are_read(bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"trace\.otlp"):
        load_settings(tmp_path / "none.toml", {"EDGERAG_TRACE_OTLP": bad}, {})


@given(st.text(max_size=40) | st.from_regex(r"http://[0-9a-z.:\[\]@]{1,20}(:[0-9]{1,5})?/?", fullmatch=True))
def test_whatever_is_written_there_it_is_this_machine_or_refused(text: str) -> None:
    try:
        endpoint = LoopbackEndpoint.parse(text)
    except ValueError:
        return
    assert endpoint.socket_path.startswith("/") or endpoint.host == "::1" or endpoint.host.startswith("127.")
