"""`edgerag models recommend`: measures the machine for a moment and says which models it runs fast enough."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from edgerag.engine.measured_speed import Recommendation
from edgerag.engine.recommend import WANTED_TOKENS_PER_S, Expectation, MachineSpeed, largest
from edgerag.session import Session
from edgerag.ui import output, report

_FEW = 10  # tokens per second; fewer are shown with a digit behind the point


def run_recommend(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError when nothing can be measured."""
    found = session.recommend_models(report=report.say)
    if arguments.json:
        output.write_json(
            {
                "machine": dataclasses.asdict(found.speed),
                "context_tokens": found.context_tokens,
                "wanted_tokens_per_s": WANTED_TOKENS_PER_S,
                "models": [_record(expectation) for expectation in found.at_hand],
                "classes": [_record(expectation) for expectation in found.classes],
            }
        )
        return report.EXIT_OK
    output.write(recommendation_text(found))
    return report.EXIT_OK


def recommendation_text(found: Recommendation) -> str:
    heading = ("model", "weights", "file", "memory", "writes", "reads", "")
    best = largest(found.classes)
    closing = (
        f"The largest that writes {WANTED_TOKENS_PER_S:g} tokens per second or more: {best.name} in {best.weights}.\n"
        if best
        else f"No size class writes {WANTED_TOKENS_PER_S:g} tokens per second here.\n"
    )
    rows = [heading, *(_row(expectation) for expectation in [*found.at_hand, *found.classes])]
    return _machine_line(found.speed, found.context_tokens) + output.table(rows) + closing


def _machine_line(speed: MachineSpeed, context_tokens: int) -> str:
    return (
        f"Measured with {speed.threads} threads: memory is read at {output.size(int(speed.bytes_per_s))}/s, "
        f"{speed.operations_per_s / 1e9:.0f} billion operations per second; {output.size(speed.free_bytes)} are free. "
        f"With {context_tokens} tokens of context:\n"
    )


def _row(expectation: Expectation) -> tuple[str, ...]:
    return (
        expectation.name,
        expectation.weights,
        output.size(expectation.need.weights_bytes),
        output.size(expectation.need.total_bytes),
        f"{expectation.decode_tokens_per_s:.1f} tok/s",
        _reads(expectation.prefill_tokens_per_s),
        expectation.verdict,
    )


def _reads(tokens_per_s: float) -> str:
    if not tokens_per_s:
        return "not known"
    return f"{tokens_per_s:.1f} tok/s" if tokens_per_s < _FEW else f"{tokens_per_s:.0f} tok/s"


def _record(expectation: Expectation) -> dict[str, Any]:
    need = dataclasses.asdict(expectation.need)
    return {
        "name": expectation.name,
        "weights": expectation.weights,
        "memory_bytes": expectation.need.total_bytes,
        "decode_tokens_per_s": round(expectation.decode_tokens_per_s, 2),
        "prefill_tokens_per_s": round(expectation.prefill_tokens_per_s, 2),
        "verdict": expectation.verdict,
        **need,
    }
