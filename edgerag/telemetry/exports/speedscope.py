"""The file format of speedscope (https://www.speedscope.app): an evented profile for each thread.

The address of the schema is a part of the format; nothing is read from there.
"""

from __future__ import annotations

import json
from typing import Any

from edgerag import __version__
from edgerag.telemetry.exports.lanes import Lane, lanes
from edgerag.telemetry.spans import TraceTree

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_text(trace: TraceTree) -> str:
    frames: dict[str, int] = {}
    profiles = [_profile(lane, frames, trace.root.ns) for lane in lanes(trace)]
    record = {
        "$schema": _SCHEMA,
        "exporter": f"edgerag {__version__}",
        "name": f"{trace.root.name} {trace.trace_id}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return json.dumps(record, separators=(",", ":"))


def _profile(lane: Lane, frames: dict[str, int], whole_ns: int) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    opened: list[tuple[int, int]] = []  # frame and end of what is open, the innermost last

    def close(down_to: int) -> None:
        while len(opened) > down_to:
            frame, end_ns = opened.pop()
            events.append({"type": "C", "frame": frame, "at": end_ns})

    for piece in lane.slices:
        close(piece.depth)
        frame = frames.setdefault(piece.name, len(frames))
        events.append({"type": "O", "frame": frame, "at": piece.start_ns})
        opened.append((frame, piece.end_ns))
    close(0)
    return {
        "type": "evented",
        "name": lane.name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": whole_ns,
        "events": events,
    }
