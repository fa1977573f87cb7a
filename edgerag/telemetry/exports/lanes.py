"""A trace as lanes of slices, one lane for each thread, for programs that draw them.

In a lane a slice lies within another or beside it: what clocks made overlap by a hair is cut. Work of a thread inside
work of another one that is itself inside work of the first has a lane beside the first's: there it would lie across
what is open. The tokens of an answer have a lane of their own, each with what it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from edgerag.telemetry.answer_spans import TOKEN_KINDS
from edgerag.telemetry.spans import GENERATION, Span, TraceTree, Value, token_row

_TOKENS_LANE = "tokens"
_LaneKey = tuple[str, int]  # the thread, and how many of its lanes lie around


@dataclass(frozen=True, slots=True)
class Slice:
    """``depth`` 0 is the outermost of its lane; times count from the beginning of the trace."""

    name: str
    start_ns: int
    end_ns: int
    depth: int
    facts: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """``slices``: what holds others comes before them; by their beginning."""

    name: str
    slices: tuple[Slice, ...]


def lanes(trace: TraceTree) -> list[Lane]:
    """The thread that answered first, the tokens last."""
    root = trace.root
    by_lane: dict[_LaneKey, list[Slice]] = {}
    _place(root, (("", 0),), 0, (0, root.ns), root.start_ns, by_lane)
    made = [Lane(_lane_name(key) or root.name, tuple(slices)) for key, slices in by_lane.items()]
    tokens: tuple[Slice, ...] = ()
    for span in root.walk():
        if span.name == GENERATION:
            tokens = tuple(_tokens(span, root.start_ns, root.ns)) or tokens
    return [*made, Lane(_TOKENS_LANE, tokens)] if tokens else made


def _lane_name(key: _LaneKey) -> str:
    thread, around = key
    return f"{thread} {around + 1}" if around else thread


def _place(
    span: Span,
    path: tuple[_LaneKey, ...],
    depth: int,
    room: tuple[int, int],
    zero: int,
    by_lane: dict[_LaneKey, list[Slice]],
) -> None:
    """Puts the span and all in it into their lanes, within ``room``. ``path``: its lane, behind those of the spans
    around it."""
    start_ns = min(max(span.start_ns - zero, room[0]), room[1])
    end_ns = min(max(span.end_ns - zero, start_ns), room[1])
    facts = {key: value for key, value in span.facts.items() if not isinstance(value, tuple)}
    by_lane.setdefault(path[-1], []).append(Slice(span.name, start_ns, end_ns, depth, facts, span.error))
    free_ns = start_ns
    for inner in span.inner:
        if inner.thread and inner.thread != path[-1][0]:
            lane = inner.thread, sum(thread == inner.thread for thread, _ in path)
            behind = max((each.end_ns for each in by_lane.get(lane, ())), default=start_ns)
            _place(inner, (*path, lane), 0, (behind, max(behind, end_ns)), zero, by_lane)
        else:
            _place(inner, path, depth + 1, (free_ns, end_ns), zero, by_lane)
            free_ns = max(free_ns, min(inner.end_ns - zero, end_ns))


def _tokens(span: Span, zero: int, whole_ns: int) -> Iterator[Slice]:
    """A slice for each token, in which its parts lie one after the other; the stamp is where it was there."""
    stamps = token_row(span, "ns")
    parts = {kind: token_row(span, f"{kind}_ns") for kind in TOKEN_KINDS}
    asked_ns = span.start_ns - zero
    free_ns = asked_ns
    shift = _asked_shift(span, zero, stamps)
    for place, stamp in enumerate(stamps):
        took = {kind: row[place] for kind, row in parts.items() if place < len(row)}
        there = min(stamp + shift, whole_ns)
        before = took.get("decode", 0) + took.get("sampling", 0) + took.get("detokenise", 0)
        start_ns = max(free_ns, there - before) if took else free_ns
        end_ns = min(max(start_ns, there + took.get("present", 0)), whole_ns)
        start_ns = min(start_ns, end_ns)
        yield Slice("token", start_ns, end_ns, 0, {"number": place + 1, **{f"{k}_ns": v for k, v in took.items()}})
        at = start_ns
        for kind in ("decode", "sampling", "detokenise", "present"):
            stop = min(at + took.get(kind, 0), end_ns)
            if stop > at:
                yield Slice(kind, at, stop, 1)
            at = stop
        free_ns = end_ns


def _asked_shift(span: Span, zero: int, stamps: Sequence[int]) -> int:
    """Stamps count from when the answer began, the trace from when the question came."""
    begun = span.facts.get(f"{GENERATION}.asked_ns", 0)
    return (int(begun) - zero) if stamps and isinstance(begun, int) and begun else 0
