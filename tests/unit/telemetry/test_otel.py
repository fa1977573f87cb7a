"""OpenTelemetry's SDK makes the spans, and nothing in the environment makes it do more than that."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from edgerag.errors import TracesError
from edgerag.telemetry.otlp import from_otlp
from edgerag.telemetry.spans import Span

ROOT = Span(
    "rag.query",
    1_000,
    9_000,
    {"n": 1, "row": (1, 2)},
    (Span("rag.query.parse", 1_000, 2_000, {"yes": True}),),
    "Failed",
)
PROGRAM = """
import json, sys, threading

def watch(event, args):
    if event.startswith("socket."):
        raise SystemExit(f"{event} {args}")

sys.addaudithook(watch)
from edgerag.telemetry.otel import Tracing
from edgerag.telemetry.otlp import otlp_text, to_otlp
from edgerag.telemetry.spans import Span

root = Span("rag.query", 1_000, 9_000, {"n": 1, "row": (1, 2)},
            (Span("rag.query.parse", 1_000, 2_000, {"yes": True}),), "Failed")
made = Tracing().made(root)
assert threading.active_count() == 1, threading.enumerate()
print(otlp_text(to_otlp(made)) if made else "none")
"""


def run(**environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_trace_is_read_as_it_was_written() -> None:
    tree = from_otlp(run())
    assert tree.root == ROOT
    assert len(tree.trace_id) == 32


def test_the_environment_changes_nothing() -> None:
    otlp = run(
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://192.0.2.1:4318",
        OTEL_TRACES_SAMPLER="always_off",
        OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="0",
        OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT="1",
        OTEL_RESOURCE_ATTRIBUTES="secret=1",
        OTEL_SERVICE_NAME="other",
        OTEL_EXPERIMENTAL_RESOURCE_DETECTORS="process,host",
        OTEL_PYTHON_METER_PROVIDER="nonsense",
        OTEL_PYTHON_TRACER_PROVIDER="nonsense",
        OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED="true",
    )
    assert from_otlp(otlp).root == ROOT
    resource = json.loads(otlp)["resourceSpans"][0]["resource"]["attributes"]
    assert {each["key"] for each in resource} == {"service.name", "service.version", "process.pid"}


def test_one_who_disables_the_sdk_gets_no_spans() -> None:
    assert run(OTEL_SDK_DISABLED="true") == "none\n"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"resourceSpans": []}', '{"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}']
)
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(TracesError, match="damaged"):
        from_otlp(text)
