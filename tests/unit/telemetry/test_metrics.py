"""Figures for Prometheus: in its text format, in a file at once or not at all, at a port of this machine alone."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from traced import answer

from edgerag.errors import StorageFull, TracesError, UsageError
from edgerag.telemetry.answer_spans import MeasuredAnswer
from edgerag.telemetry.ingest_spans import MeasuredIngest
from edgerag.telemetry.metrics import Metrics
from edgerag.types import FileReport, IngestDone, Prefill, StageSpan, StateRestore, Trace

NS = 10**9


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics(lambda: {"rag_index_resident_bytes": 7, "rag_process_resident_bytes": 9})
    yield made
    made.close()


def asked() -> MeasuredAnswer:
    stages = (StageSpan("keyword", 0.0, 0.01), StageSpan("vector", 0.015, 0.005))
    prefill = Prefill(1, 2, 3, 40, 2.0, restores=(StateRestore(0, 0.1, tokens=4), StateRestore(0.2, 0.1)))
    trace = Trace(stages, token_ns=(NS, NS + 20_000_000, NS + 60_000_000))
    return MeasuredAnswer(0, 2.0, stages, answer(trace, prefill))


def values(metrics: Metrics) -> dict[str, float]:
    return {
        sample.name + "".join(f"{{{key}={value}}}" for key, value in sample.labels.items()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def test_an_answer_is_counted(metrics: Metrics) -> None:
    metrics.count(asked())
    metrics.count(MeasuredAnswer(0, 0.5, (), None, error="ModelDamaged"))
    found = values(metrics)
    assert found["rag_answers_total{outcome=end}"] == found["rag_answers_total{outcome=failed}"] == 1
    assert found["rag_retrieval_latency_seconds_bucket{le=0.01}"] == 0
    assert found["rag_retrieval_latency_seconds_bucket{le=0.025}"] == 1
    assert found["rag_retrieval_latency_seconds_sum"] == pytest.approx(0.02)
    assert found["rag_ttft_seconds_sum"] == pytest.approx(1.0)
    assert found["rag_token_latency_seconds_count"] == 2
    assert found["rag_prefill_tokens_per_second"] == 20
    assert found["rag_prompt_tokens_total{how=computed}"] == 40
    assert found["rag_kv_states_total{result=hit}"] == found["rag_kv_states_total{result=miss}"] == 1
    assert found["rag_index_resident_bytes"] == 7
    assert found["rag_refusals_total"] == 0


def test_an_ingest_is_counted_by_what_became_of_the_files(metrics: Metrics) -> None:
    reports = tuple(FileReport(str(n), outcome, "", 0) for n, outcome in enumerate(("ingested", "ingested", "failed")))  # type: ignore[arg-type]
    metrics.count(MeasuredIngest(0, 1.0, (), {}, IngestDone(reports, 12, 1.0, interrupted=False)))
    found = values(metrics)
    assert found["rag_ingest_files_total{state=ingested}"] == 2
    assert found["rag_ingest_files_total{state=failed}"] == 1
    assert found["rag_ingest_chunks_total"] == 12


def test_the_file_is_replaced_at_once(metrics: Metrics, tmp_path: Path) -> None:
    file = tmp_path / "edgerag.prom"
    metrics.write(str(file))
    metrics.count(asked())
    metrics.write(str(file))
    assert "rag_ttft_seconds_bucket" in file.read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["edgerag.prom"]
    with pytest.raises(StorageFull, match="cannot be written"):
        metrics.write(str(tmp_path / "none" / "x.prom"))


@pytest.mark.parametrize("what", ["library", "words", "pipe", "device", "link", "folder"])
def test_only_a_file_of_metrics_is_replaced(metrics: Metrics, tmp_path: Path, what: str) -> None:
    named = tmp_path / "named"
    if what in ("library", "words"):
        named.write_bytes(b"SQLite format 3\0" if what == "library" else b"# HELP me\n")
    elif what == "pipe":
        os.mkfifo(named)
    elif what == "folder":
        named.mkdir()
    else:
        named.symlink_to("/dev/full" if what == "device" else __file__)
    before = stat_of(named)
    with pytest.raises(UsageError, match="no file of metrics"):
        metrics.write(str(named))
    assert stat_of(named) == before
    assert list(tmp_path.iterdir()) == [named]


def test_an_empty_file_that_waits_for_them_is_filled(metrics: Metrics, tmp_path: Path) -> None:
    file = tmp_path / "edgerag.prom"
    file.touch()
    metrics.write(str(file))
    assert file.read_bytes().startswith(b"# HELP rag_")


def stat_of(file: Path) -> tuple[int, int, int]:
    found = file.lstat()
    return found.st_mode, found.st_ino, found.st_size


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get(port: int, path: str = "/metrics", **headers: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return SimpleNamespace(status=reply.status, text=text)


def test_the_port_answers_to_this_machine_alone(metrics: Metrics) -> None:
    port = free_port()
    metrics.serve(port)
    metrics.serve(port)  # it is open
    assert "rag_index_resident_bytes 7.0" in get(port).text
    assert get(port, "/etc/passwd").status == 404
    assert get(port, Host="evil.example:80").status == 404  # a name of somebody else that leads here
    with pytest.raises(TracesError, match=str(port)):
        Metrics(dict).serve(port)
    metrics.close()
    with pytest.raises(OSError):
        get(port)
