"""An ingest becomes spans: its stages overlap, as files are parsed in a thread of their own. Pure.

Of a run with more runs of stages than ``MOST_SPANS`` the first ones have spans, and the sums of all stand in the root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgerag.telemetry.spans import INGEST, LONGEST_TEXT, THREAD, Span, Value, nanoseconds, nested
from edgerag.telemetry.stopwatch import StageSum
from edgerag.types import IngestDone, Outcome, StageSpan

MOST_SPANS = 2000
_BESIDE: Mapping[str, str] = {"parse": "parse-ahead"}
_OUTCOMES: tuple[Outcome, ...] = ("ingested", "unchanged", "skipped", "failed", "removed")


@dataclass(frozen=True, slots=True)
class MeasuredIngest:
    """One ingest, whole or not."""

    began_ns: int
    seconds: float
    spans: Sequence[StageSpan]
    sums: Mapping[str, StageSum]
    done: IngestDone | None  # None where it failed, or nobody waited for its end
    error: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)


def ingest_span(ingested: MeasuredIngest, *, content: bool = False) -> Span:
    """The root, with all in it. With ``content`` the paths of the files, too."""
    begin = ingested.began_ns
    inner = [_stage_span(span, begin) for span in ingested.spans]
    end = max([begin + nanoseconds(ingested.seconds), *(span.end_ns for span in inner)])
    facts: dict[str, Value] = dict(ingested.facts)
    for stage, total in ingested.sums.items():
        facts |= {
            f"{INGEST}.{stage}.count": total.count,
            f"{INGEST}.{stage}.ns": nanoseconds(total.seconds),
        }
    facts[f"{INGEST}.spans_left_out"] = sum(total.count for total in ingested.sums.values()) - len(ingested.spans)
    if (done := ingested.done) is not None:
        facts |= {f"{INGEST}.files.{outcome}": done.count(outcome) for outcome in _OUTCOMES}
        facts |= {f"{INGEST}.chunks": done.chunks_embedded, f"{INGEST}.interrupted": done.interrupted}
        if content:
            facts[f"{INGEST}.paths"] = "\n".join(report.path for report in done.reports)[:LONGEST_TEXT]
    return nested(Span(INGEST, begin, end, facts, tuple(inner), ingested.error))


def _stage_span(span: StageSpan, begin: int) -> Span:
    name = f"{INGEST}.{span.stage}"
    facts: dict[str, Value] = {f"{name}.{key}": value for key, value in span.facts}
    if span.stage in _BESIDE:
        facts[THREAD] = _BESIDE[span.stage]
    start_ns = begin + nanoseconds(span.start_s)
    return Span(name, start_ns, start_ns + nanoseconds(span.seconds), facts)
