"""What this machine runs fast enough, by a measurement of a moment: the models that are here, and the size classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from edgerag.engine.catalog import CatalogEntry
from edgerag.engine.gguf import read_header
from edgerag.engine.recommend import Expectation, MachineSpeed, expect, recommend
from edgerag.errors import EdgeragError, ModelError
from edgerag.machine.arithmetic import measure_arithmetic
from edgerag.machine.bandwidth import measure_bandwidth
from edgerag.machine.memory import available_bytes


@dataclass(frozen=True, slots=True)
class Recommendation:
    speed: MachineSpeed
    context_tokens: int
    at_hand: tuple[Expectation, ...]  # the chat models that are on this machine
    classes: tuple[Expectation, ...]


def recommend_here(
    entries: Iterable[CatalogEntry], *, threads: int, context_tokens: int, report: Callable[[str], None]
) -> Recommendation:
    """Takes a moment, and all those threads. A model whose header makes no sense is left out and told to ``report``.

    Raises EdgeragError when nothing can be measured.
    """
    speed = measure_speed(threads)
    at_hand = []
    for entry in entries:
        if entry.kind != "chat" or entry.state != "ready" or entry.path is None:
            continue
        try:
            header = read_header(entry.path)
            window = min(context_tokens, header.context_tokens or context_tokens)
            weights = header.weight_type
            at_hand.append(expect(header, name=entry.name, weights=weights, speed=speed, context_tokens=window))
        except ModelError as error:
            report(f"{entry.name}: {error}")
    classes = recommend(speed, context_tokens=context_tokens)
    return Recommendation(speed, context_tokens, tuple(at_hand), tuple(classes))


def measure_speed(threads: int) -> MachineSpeed:
    """Raises EdgeragError when nothing can be measured."""
    measured = measure_bandwidth([threads])
    if measured.best is None:
        raise EdgeragError(f"How fast this machine reads its memory cannot be told: {measured.method}.")
    return MachineSpeed(
        threads=threads,
        bytes_per_s=measured.best.bytes_per_s,
        operations_per_s=threads * measure_arithmetic(),
        free_bytes=available_bytes(),
    )
