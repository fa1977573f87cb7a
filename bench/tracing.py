"""What tracing explains of an answer, and what it costs.

    python bench/tracing.py [--pairs 24] [--json FILE]

Over the example documents, with the default models. Three questions:

- what share of an answer's wall time do spans without inner ones account for (98 % are wanted)?
- are answers slower with tracing than without? Each question is asked twice in a row, with and without, in turns, after
  it was asked once to bring its prompt into the cache. Given are the median of the ratios, and the ratio of what lies
  between two tokens: of that there is so much that it tells a percent on a machine that is busy with other things, too.
  "Without" has no stamps of tokens, keeps no trace and makes no spans. (At most 1 %.)
- what does a token cost, all clocks and records together, with nothing else in the loop? (At most 20 microseconds.)

Beside them, what is done after an answer, in a thread of its own: making the spans, and keeping them.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from record import CHECKOUT, record

from edgerag.ask.pipeline import _Asking
from edgerag.config import GenerationSettings, Settings, TraceSettings
from edgerag.engine import generator
from edgerag.engine.token_clock import TokenClock
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.telemetry.answer_spans import MeasuredAnswer, answer_span
from edgerag.telemetry.otel import Tracing
from edgerag.telemetry.otlp import otlp_text, to_otlp
from edgerag.telemetry.ring import TraceHead, TraceRing
from edgerag.types import Answer, AnswerDelta, AnswerDone, TokenTiming

_QUESTIONS = (
    "Which torque do the lid screws of the pump need?",
    "What does error E-1042 mean?",
    "How long should the pump be stored?",
    "What must be done before the housing is opened?",
)
_ANSWER_TOKENS = 64
_TOKENS_TIMED = 200_000


class _NoClock(TokenClock):
    """As if there were no clocks."""

    def sampled(self, sample: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return sample(*args, **kwargs)

    def decoded(self, decode: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return decode(*args, **kwargs)

    def token(self, *, detokenise_ns: int) -> TokenTiming | None:  # type: ignore[override]  # noqa: ARG002
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures tracing.")
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        home = Path(scratch)
        (home / "models").symlink_to(CHECKOUT / "models")
        traced = Settings(generation=GenerationSettings(answer_tokens=_ANSWER_TOKENS), trace=TraceSettings(keep=1000))
        with Session(traced, Locations(home)) as session:
            list(session.ingest([CHECKOUT / "examples" / "docs"]))
            ask(session, _QUESTIONS[0])
            pairs, gaps = compare(session, traced, arguments.pairs)
            last = ask(session, _QUESTIONS[0])
        shares = explained(Locations(home))
        after = after_an_answer(last, home)
    token_us = token_cost_us()
    comparison = summary(pairs) | token_ratios(gaps)
    added_s = last.tokens.answer * token_us / 1e6 + sum(after[f"{part}_ms"] for part in ("spans", "otlp", "ring")) / 1e3
    figures = {
        "explained_share": shares,
        "with_tracing": comparison,
        "token_cost_us": token_us,
        "after_an_answer": after,
        # All of the work that tracing adds, of an answer in this run: what the ratio above cannot tell from noise.
        "added_share": round(added_s / comparison["plain_median_s"], 5),
    }
    for name, value in figures.items():
        print(f"{name:18} {value}")
    print(record("tracing", figures, parameters={"pairs": arguments.pairs}, file=arguments.json))


def ask(session: Session, question: str) -> Answer:
    *_, last = session.ask(question)
    assert isinstance(last, AnswerDone)
    return last.answer


def compare(session: Session, traced: Settings, count: int) -> tuple[list[tuple[float, float]], dict[bool, list[int]]]:
    """Seconds of each pair: with tracing, without; and by that the nanoseconds between tokens."""
    gaps: dict[bool, list[int]] = {True: [], False: []}
    plain = dataclasses.replace(traced, trace=TraceSettings(keep=0))
    pairs = []
    for number in range(count):
        question = _QUESTIONS[number % len(_QUESTIONS)]
        ask(session, question)
        took: dict[bool, float] = {}
        for is_traced in (True, False) if number // len(_QUESTIONS) % 2 else (False, True):
            session.adopt(traced if is_traced else plain)
            with patch.object(generator, "TokenClock", TokenClock if is_traced else _NoClock):
                began = time.perf_counter()
                answer = ask(session, question)
                took[is_traced] = time.perf_counter() - began
            assert answer.trace is not None, "it was just made"
            gaps[is_traced] += [after - before for before, after in pairwise(answer.trace.token_ns)]
        pairs.append((took[True], took[False]))
        session.adopt(traced)
    return pairs, gaps


def token_ratios(gaps: dict[bool, list[int]]) -> dict[str, float]:
    """With tracing by without, of the quarters of what lies between tokens."""
    traced, plain = (statistics.quantiles(gaps[kind]) for kind in (True, False))
    names = ("token_q1_ratio", "token_median_ratio", "token_q3_ratio")
    ratios = {name: round(one / other, 4) for name, one, other in zip(names, traced, plain, strict=True)}
    return {**ratios, "tokens": len(gaps[True])}


def summary(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    ratios = sorted(traced / plain for traced, plain in pairs)
    quarter = len(ratios) // 4
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "median_ratio": round(statistics.median(ratios), 4),
        "median_ratio_low": round(medians[50], 4),  # 95 % by bootstrap
        "median_ratio_high": round(medians[-51], 4),
        "ratio_q1": round(ratios[quarter], 4),
        "ratio_q3": round(ratios[-1 - quarter], 4),
        "traced_median_s": round(statistics.median(traced for traced, _ in pairs), 4),
        "plain_median_s": round(statistics.median(plain for _, plain in pairs), 4),
    }


def explained(locations: Locations) -> dict[str, float]:
    """Of the kept answers: of their time together, of the first, which loads the models, and of the others."""
    with TraceRing(locations.traces_file) as ring:
        roots = [ring.tree(head.trace_id).root for head in ring.heads(kind="ask")]
    shares = [root.explained_ns() / root.ns for root in roots]
    return {
        "of_all_time": round(sum(root.explained_ns() for root in roots) / sum(root.ns for root in roots), 5),
        "first": round(shares[-1], 5),
        "median": round(statistics.median(shares), 5),
        "tenth": round(sorted(shares)[len(shares) // 10], 5),
        "least": round(min(shares), 5),
        "answers": len(shares),
    }


def token_cost_us() -> float:
    """All that is done for a token to know its times, without what is timed."""
    clock = TokenClock()
    asking: Any = _Shown()
    event = AnswerDelta("x")
    timings: list[TokenTiming] = []
    shown: list[int] = []
    nothing = int
    began = time.perf_counter_ns()
    for _ in range(_TOKENS_TIMED):
        clock.sampled(nothing)
        clock.decoded(nothing)
        at = time.perf_counter_ns()
        timings.append(clock.token(detokenise_ns=time.perf_counter_ns() - at))
        asking._shown_ns.append(0)
        before = time.perf_counter_ns()
        _Asking.shown(asking, event, time.perf_counter_ns() - before)
    whole = time.perf_counter_ns() - began
    began = time.perf_counter_ns()
    for _ in range(_TOKENS_TIMED):
        nothing()
        nothing()
        shown.append(0)
    empty = time.perf_counter_ns() - began
    return round((whole - empty) / _TOKENS_TIMED / 1000, 3)


class _Shown:
    """What `_Asking.shown` needs of an answer."""

    def __init__(self) -> None:
        self._shown_ns: list[int] = []


def after_an_answer(answer: Answer, home: Path) -> dict[str, float]:
    """Milliseconds of what the thread beside does once an answer is complete, medians of a hundred."""
    trace = answer.trace
    assert trace is not None, "it was just made"
    tracing = Tracing()
    times: dict[str, list[float]] = {"spans": [], "otlp": [], "ring": []}
    size = 0
    with TraceRing(home / "other.sqlite", writing="WAL") as ring:
        for number in range(100):
            began = time.perf_counter()
            spans = tracing.made(answer_span(MeasuredAnswer(trace.began_ns, 1.0, trace.spans, answer)))
            made = time.perf_counter()
            text = otlp_text(to_otlp(spans))
            written = time.perf_counter()
            ring.put(TraceHead(f"{number:032x}", "ask", 0, 1, "end"), text, keep=1000)
            kept = time.perf_counter()
            size = ring.heads(limit=1)[0].size_bytes
            for name, seconds in (("spans", made - began), ("otlp", written - made), ("ring", kept - written)):
                times[name].append(seconds)
    medians = {f"{name}_ms": round(1e3 * statistics.median(row), 3) for name, row in times.items()}
    return {**medians, "kept_bytes": size}


if __name__ == "__main__":
    main()
