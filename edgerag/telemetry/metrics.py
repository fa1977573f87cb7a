"""Counts what this process did, in Prometheus' text format: for a file, or for who asks at a port of 127.0.0.1.

The one importer of prometheus_client. A registry of its own: nothing else of the process is told. Asking costs nothing
of an answer, and the port answers to this machine alone, under its numeric address.
"""

from __future__ import annotations

import contextlib
import os
import socketserver
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from edgerag.errors import StorageFull, TracesError, UsageError
from edgerag.locations import user_path
from edgerag.telemetry.answer_spans import RETRIEVAL, MeasuredAnswer
from edgerag.telemetry.ingest_spans import MeasuredIngest
from edgerag.types import Answer

_HOST = "127.0.0.1"
_BEGIN = b"# HELP rag_"  # of every text that is made here
# From a search in a small library to one that waits for a cold disk; from the first word of a small model to a minute.
_SEARCH_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_ANSWER_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_TOKEN_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    """Figures of one process. Any thread."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]]) -> None:
        """``gauges``: by name, what is measured when it is asked for."""
        self._gauges = gauges
        self._server: _Server | None = None
        registry = self._registry = CollectorRegistry(auto_describe=False)
        self._answers = Counter("rag_answers", "Answers, by how they ended.", ["outcome"], registry=registry)
        self._refusals = Counter(
            "rag_refusals", "Answers that say that the documents hold nothing about it.", registry=registry
        )
        self._retrieval_s = Histogram(
            "rag_retrieval_latency_seconds",
            "Both legs of a search and their fusion.",
            buckets=_SEARCH_S,
            registry=registry,
        )
        self._answer_s = Histogram(
            "rag_answer_seconds", "From the question to the end of its answer.", buckets=_ANSWER_S, registry=registry
        )
        self._first_s = Histogram(
            "rag_ttft_seconds", "From the question to the first token.", buckets=_ANSWER_S, registry=registry
        )
        self._token_s = Histogram(
            "rag_token_latency_seconds", "From one token to the next.", buckets=_TOKEN_S, registry=registry
        )
        self._prefill_tps = Gauge(
            "rag_prefill_tokens_per_second", "Of the last prompt that was computed.", registry=registry
        )
        self._prompt_tokens = Counter(
            "rag_prompt_tokens", "Tokens of prompts, by how they came into the model.", ["how"], registry=registry
        )
        self._states = Counter(
            "rag_kv_states", "Saved states of passages that were looked for.", ["result"], registry=registry
        )
        self._files = Counter(
            "rag_ingest_files", "Files of ingests, by what became of them.", ["state"], registry=registry
        )
        self._chunks = Counter("rag_ingest_chunks", "Passages embedded.", registry=registry)
        self._now = {
            name: Gauge(name, said, registry=registry)
            for name, said in (
                ("rag_index_resident_bytes", "Pages of the index that this process holds in memory."),
                ("rag_process_resident_bytes", "Memory of this process."),
            )
        }

    def count(self, work: MeasuredAnswer | MeasuredIngest) -> None:
        """Adds one answer, or one ingest."""
        if isinstance(work, MeasuredIngest):
            if work.done is not None:
                for report in work.done.reports:
                    self._files.labels(report.outcome).inc()
                self._chunks.inc(work.done.chunks_embedded)
            return
        answer = work.answer
        self._answers.labels("failed" if answer is None else answer.stop_reason).inc()
        self._answer_s.observe(work.lead_s + work.seconds)
        found = [span for span in work.spans if span.stage in RETRIEVAL]
        if found:
            began = min(span.start_s for span in found)
            self._retrieval_s.observe(max(span.start_s + span.seconds for span in found) - began)
        if answer is not None:
            self._count_answer(answer)

    def _count_answer(self, answer: Answer) -> None:
        if not answer.found and answer.stop_reason == "no_sources":
            self._refusals.inc()
        if answer.trace is not None and answer.trace.token_ns:
            self._first_s.observe(answer.trace.token_ns[0] / 1e9)
            for before, after in pairwise(answer.trace.token_ns):
                self._token_s.observe((after - before) / 1e9)
        if (prefill := answer.prefill) is not None:
            for how, tokens in (
                ("kept", prefill.kept_tokens),
                ("restored", prefill.restored_tokens),
                ("approximate", prefill.approximate_tokens),
                ("computed", prefill.computed_tokens),
            ):
                self._prompt_tokens.labels(how).inc(tokens)
            for restore in prefill.restores:
                self._states.labels("hit" if restore.tokens else "miss").inc()
            if prefill.seconds > 0 and prefill.computed_tokens:
                self._prefill_tps.set(prefill.computed_tokens / prefill.seconds)

    def text(self) -> bytes:
        """All of it as of now."""
        for name, value in self._gauges().items():
            self._now[name].set(value)
        return generate_latest(self._registry)

    def write(self, file: str) -> None:
        """Puts it in the place of the file at once, or not at all. Raises StorageFull, UsageError.

        Only a file of metrics is replaced: a device, a folder or a file of anything else stays, and is named.
        """
        target = user_path(file)
        try:
            if not _may_replace(target):
                what = f"{target} is there already, and is no file of metrics."
                raise UsageError(what, remedy="Name another file in metrics.file, or none.")
            descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(self.text())
                Path(name).chmod(0o644)  # another program is to read it
                Path(name).replace(target)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            what = f"The metrics in {target} cannot be written: {error.strerror or error}."
            raise StorageFull(what, remedy="Name another file in metrics.file, or none.") from error

    def serve(self, port: int) -> None:
        """Opens the port, unless it is open. Raises TracesError where another program has it."""
        if self._server is not None:
            return
        try:
            self._server = _Server(port, self.text)
        except OSError as error:
            what = f"The metrics cannot be read at port {port}: {error.strerror or error}."
            raise TracesError(what, remedy="Set metrics.port to another one, or to 0.") from error

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def _may_replace(target: Path) -> bool:
    """Whether nothing is lost with what is there. Raises OSError."""
    try:
        if not stat.S_ISREG(target.stat().st_mode):  # asked first: to open a pipe may wait for ever
            return False
    except FileNotFoundError:
        return True
    with target.open("rb") as stream:
        begin = stream.read(len(_BEGIN))
    return begin in (b"", _BEGIN)


class _Server(socketserver.ThreadingTCPServer):
    """socketserver, as http.server asks how the host is called when it starts."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, text: Callable[[], bytes]) -> None:
        self.text = text
        super().__init__((_HOST, port), _Handler)
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 5  # a client that says nothing holds a thread no longer
    server: _Server
    # A page elsewhere whose name leads here has that name in Host.
    _own: ClassVar[frozenset[str]] = frozenset({_HOST, "localhost"})

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in self._own or self.path not in ("/", "/metrics"):
            self.send_error(404)
            return
        text = self.server.text()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
        """Says nothing: standard error is the user's."""
