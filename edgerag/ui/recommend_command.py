"""`edgerag models recommend`: measures the machine for a moment and says which models it runs fast enough."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from edgerag.engine.gguf import read_header
from edgerag.engine.recommend import WANTED_TOKENS_PER_S, Expectation, MachineSpeed, expect, largest, recommend
from edgerag.errors import EdgeragError, ModelError
from edgerag.machine.arithmetic import measure_arithmetic
from edgerag.machine.bandwidth import measure_bandwidth
from edgerag.machine.memory import available_bytes
from edgerag.machine.topology import read_topology
from edgerag.session import Session
from edgerag.ui import output, report

_FEW = 10  # tokens per second; fewer are shown with a digit behind the point


def run_recommend(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError when nothing can be measured."""
    speed = _measure(session.settings.machine.threads or read_topology().thread_count)
    context_tokens = session.settings.generation.context_tokens
    at_hand = _at_hand(session, speed, context_tokens)
    classes = recommend(speed, context_tokens=context_tokens)
    if arguments.json:
        output.write_json(
            {
                "machine": dataclasses.asdict(speed),
                "context_tokens": context_tokens,
                "wanted_tokens_per_s": WANTED_TOKENS_PER_S,
                "models": [_record(expectation) for expectation in at_hand],
                "classes": [_record(expectation) for expectation in classes],
            }
        )
        return report.EXIT_OK
    output.write(_machine_line(speed, context_tokens))
    heading = ("model", "weights", "file", "memory", "writes", "reads", "")
    output.write(output.table([heading, *(_row(expectation) for expectation in [*at_hand, *classes])]))
    best = largest(classes)
    output.write(
        f"The largest that writes {WANTED_TOKENS_PER_S:g} tokens per second or more: {best.name} in {best.weights}.\n"
        if best
        else f"No size class writes {WANTED_TOKENS_PER_S:g} tokens per second here.\n"
    )
    return report.EXIT_OK


def _measure(threads: int) -> MachineSpeed:
    measured = measure_bandwidth([threads])
    if measured.best is None:
        raise EdgeragError(f"How fast this machine reads its memory cannot be told: {measured.method}.")
    return MachineSpeed(
        threads=threads,
        bytes_per_s=measured.best.bytes_per_s,
        operations_per_s=threads * measure_arithmetic(),
        free_bytes=available_bytes(),
    )


def _at_hand(session: Session, speed: MachineSpeed, context_tokens: int) -> list[Expectation]:
    """The chat models that are on this machine; one whose header makes no sense is named and left out."""
    found = []
    for entry in session.catalog.entries():
        if entry.kind != "chat" or entry.state != "ready" or entry.path is None:
            continue
        try:
            header = read_header(entry.path)
            window = min(context_tokens, header.context_tokens or context_tokens)
            weights = header.weight_type
            found.append(expect(header, name=entry.name, weights=weights, speed=speed, context_tokens=window))
        except ModelError as error:
            report.say(f"{entry.name}: {error}")
    return found


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
