"""`edgerag trace`: a kept trace as text, or written in the form of another program."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgerag.errors import TracesError, UsageError
from edgerag.locations import user_path
from edgerag.machine.disk import storage_error
from edgerag.machine.new_file import put_new
from edgerag.measure.charts import svg_png
from edgerag.session import Session
from edgerag.telemetry.exports.flame_page import flame_page
from edgerag.telemetry.exports.heat_map import heat_map, heat_map_svg
from edgerag.telemetry.exports.perfetto import perfetto_text
from edgerag.telemetry.exports.speedscope import speedscope_text
from edgerag.telemetry.ring import TraceHead, TraceKind, TraceRing
from edgerag.telemetry.spans import Span, TraceTree
from edgerag.ui import output, report
from edgerag.ui.place import short_path
from edgerag.ui.why.said import seconds_words
from edgerag.ui.why.trace_text import trace_text

_ID_DIGITS = 12  # of an id in a list: enough to tell a thousand apart
_PICTURES = (".svg", ".png")
# Options that name a file to write: of one trace, and all.
_EXPORTS = ("perfetto", "speedscope", "html", "otlp_json")
_FILES = (*_EXPORTS, "heatmap")


def run_trace(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    kind: TraceKind = "ingest" if arguments.ingest else "ask"
    if arguments.heatmap and Path(arguments.heatmap).suffix.lower() not in _PICTURES:
        raise UsageError(f"{arguments.heatmap!r} is no picture.", remedy="Name a file that ends with .svg or .png.")
    _refuse_files(arguments)
    with session.traces() as ring:
        if arguments.list:
            _list(ring.heads(kind=kind, limit=arguments.limit, slowest=arguments.slowest), arguments)
            if damaged := ring.damaged_count(kind=kind):
                what = "1 damaged trace is" if damaged == 1 else f"{damaged} damaged traces are"
                report.say(f"{what} left out.")
            return report.EXIT_OK
        if arguments.heatmap:
            _write_heat_map(ring, kind, arguments)
            if not arguments.json and not any(getattr(arguments, name) for name in _EXPORTS):
                return report.EXIT_OK
        head = _chosen(ring, kind, arguments)
        otlp = ring.otlp(head.trace_id)
        tree = ring.tree(head.trace_id)
    written = [_write(wanted, make(), what=what) for wanted, make, what in _exports(arguments, tree, otlp) if wanted]
    if arguments.json:
        output.write_json({**_head_record(head), "root": _span_record(tree.root)})
    elif not written:
        output.write(trace_text(tree))
    return report.EXIT_OK


def _refuse_files(arguments: argparse.Namespace) -> None:
    """Raises UsageError for files that would not be written, or are there."""
    options = {"--" + name.replace("_", "-"): getattr(arguments, name) for name in _FILES}
    wanted = {option: file for option, file in options.items() if file}
    if arguments.list and wanted:
        raise UsageError(
            f"--list lists traces, and {next(iter(wanted))} writes one.", remedy="Give one of the two, and the id."
        )
    targets = [user_path(file) for file in wanted.values()]
    for target in targets:
        if not _is_stream(target) and (target.exists() or targets.count(target) > 1):
            raise _is_there(target)


def _is_stream(target: Path) -> bool:
    """/dev/stdout and its like, into which one writes on."""
    return target.is_relative_to("/dev")


def _is_there(target: Path) -> UsageError:
    return UsageError(f"{short_path(str(target))} is there already.", remedy="Name another file, or delete it.")


def _chosen(ring: TraceRing, kind: TraceKind, arguments: argparse.Namespace) -> TraceHead:
    """Raises TracesError where there is none."""
    if arguments.trace != "last":
        return ring.find(arguments.trace)
    heads = ring.heads(kind=kind, limit=1, slowest=arguments.slowest)
    if not heads:
        what = "ingest" if kind == "ingest" else "answer"
        raise TracesError(f"No {what} was traced yet.", remedy="`trace.keep` must not be 0.")
    return heads[0]


def _exports(arguments: argparse.Namespace, tree: TraceTree, otlp: str) -> list[tuple[str, Callable[[], str], str]]:
    return [
        (arguments.perfetto, lambda: perfetto_text(tree), "Open it at ui.perfetto.dev, or in chrome://tracing."),
        (arguments.speedscope, lambda: speedscope_text(tree), "Open it with speedscope."),
        (arguments.html, lambda: flame_page(tree), "Open it in a browser."),
        (arguments.otlp_json, lambda: otlp + "\n", ""),
    ]


def _write_heat_map(ring: TraceRing, kind: TraceKind, arguments: argparse.Namespace) -> None:
    """Raises TracesError where no trace can be read."""
    trees: list[TraceTree] = []
    damaged: list[TracesError] = []
    for head in reversed(ring.heads(kind=kind, limit=arguments.limit)):
        try:
            trees.append(ring.tree(head.trace_id))
        except TracesError as error:
            damaged.append(error)
    if damaged and not trees:
        raise damaged[0]
    for trouble in damaged:
        report.say(f"left out: {trouble.message}")
    svg = heat_map_svg(heat_map(trees))
    is_png = Path(arguments.heatmap).suffix.lower() == ".png"
    _write(arguments.heatmap, svg_png(svg, name="heat-map") if is_png else svg, what="")


def _write(file: str, content: str | bytes, *, what: str) -> Path:
    """A new file: all of it, or none. Raises UsageError where there is one, StorageFull."""
    target = user_path(file)
    try:
        data = content.encode() if isinstance(content, str) else content
        target.write_bytes(data) if _is_stream(target) else put_new(target, data)
    except FileExistsError as error:  # made by somebody else meanwhile
        raise _is_there(target) from error
    except OSError as error:
        raise storage_error(error, target) from error
    report.say(f"written: {short_path(str(target))}. {what}".rstrip())
    return target


def _list(heads: list[TraceHead], arguments: argparse.Namespace) -> None:
    if arguments.json:
        output.write_json({"traces": [_head_record(head) for head in heads]})
        return
    if not heads:
        report.say("No traces are kept.")
        return
    rows = [("id", "when", "took", "ended")]
    for head in heads:
        began = datetime.datetime.fromtimestamp(head.began_ns / 1e9).astimezone()
        took = seconds_words(head.duration_ns / 1e9)
        rows.append((head.trace_id[:_ID_DIGITS], f"{began:%Y-%m-%d %H:%M:%S}", took, head.outcome.replace("_", " ")))
    output.write(output.table(rows))


def _head_record(head: TraceHead) -> dict[str, Any]:
    return dataclasses.asdict(head)


def _span_record(span: Span) -> dict[str, Any]:
    return {
        "name": span.name,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "facts": {key: list(value) if isinstance(value, tuple) else value for key, value in span.facts.items()},
        "error": span.error,
        "inner": [_span_record(inner) for inner in span.inner],
    }
