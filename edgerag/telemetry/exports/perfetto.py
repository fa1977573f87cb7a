"""Chrome's trace-event JSON, which https://ui.perfetto.dev and chrome://tracing open.

Format: "Trace Event Format" (Google, 2016). Complete events (``X``), times in microseconds from the beginning.
"""

from __future__ import annotations

import json
from typing import Any

from edgerag.telemetry.exports.lanes import lanes
from edgerag.telemetry.spans import TraceTree

_PROCESS = 1


def perfetto_text(trace: TraceTree) -> str:
    events: list[dict[str, Any]] = []
    named: list[dict[str, Any]] = [_name("process_name", 0, f"edgerag {trace.root.name}")]
    for thread, lane in enumerate(lanes(trace), start=1):
        named.append(_name("thread_name", thread, lane.name))
        named.append(
            {"name": "thread_sort_index", "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"sort_index": thread}}
        )
        events += [
            {
                "name": piece.name,
                "cat": "edgerag",
                "ph": "X",
                "ts": piece.start_ns / 1000,
                "dur": (piece.end_ns - piece.start_ns) / 1000,
                "pid": _PROCESS,
                "tid": thread,
                "args": {**piece.facts, **({"error": piece.error} if piece.error else {})},
            }
            for piece in lane.slices
        ]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    record = {
        "traceEvents": [*named, *events],
        "displayTimeUnit": "ms",
        "otherData": {"trace_id": trace.trace_id, "began_unix_ns": str(trace.root.start_ns)},
    }
    return json.dumps(record, separators=(",", ":"))


def _name(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"name": name}}
