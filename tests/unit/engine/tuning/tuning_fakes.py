"""A machine that is made up: speeds by choice, noise by seed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edgerag.engine.gguf import Header
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.choice import Choice, Decides, Dimension, dimensions
from edgerag.engine.tuning.paired import Round, Speed
from edgerag.engine.tuning.record import Tuning
from edgerag.engine.tuning.search import Search
from edgerag.errors import ModelError

FIRST = Choice(prefill_threads=4, decode_threads=4)


def header(weight_type: str = "Q4_1") -> Header:
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 2,
        "llama.attention.key_length": 32,
        "llama.attention.value_length": 32,
    }
    return Header(Path("/models/one.gguf"), 1_000_000, metadata, parameter_count=1_000_000, weight_type=weight_type)


def all_dimensions(first: Choice = FIRST, weights: tuple[str, ...] = ("Q8_0",)) -> tuple[Dimension, ...]:
    return dimensions(header(), first=first, weights=weights, most_prefill_threads=first.prefill_threads + 2)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclasses.dataclass
class FakeMeasurer:
    """Each round takes a second. The machine slows down by a random factor for a whole round; each measurement has a
    small error of its own."""

    speed_of: Callable[[Choice], Speed]
    clock: Clock
    perplexity_of: Callable[[Choice], float] = lambda _: 20.0
    moods: float = 0.0  # how much slower the machine may be for a round
    error: float = 0.0
    busy_cores: float = 0.0
    impossible: Callable[[Choice], bool] = lambda _: False
    seed: int = 0
    asked: list[tuple[Choice, Choice]] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def first(self, choice: Choice) -> Speed:
        self.clock.now += 1
        return self.speed_of(choice)

    def rounds(self, standing: Choice, candidate: Choice, decides: Decides) -> Iterator[Round]:
        self.asked.append((standing, candidate))
        if self.impossible(candidate):
            raise ModelError("It cannot be.")
        while True:
            self.clock.now += 1
            mood = 1 - self.moods * self._chance.random()
            yield Round(*(self._measured(choice, mood) for choice in (standing, candidate)))

    def perplexity(self, choice: Choice) -> float:
        self.clock.now += 1
        return self.perplexity_of(choice)

    def others(self) -> float:
        return self.busy_cores

    def _measured(self, choice: Choice, mood: float) -> Speed:
        speed = self.speed_of(choice)
        error = 1 + self.error * (2 * self._chance.random() - 1)
        return Speed(speed.prefill_tps * mood * error, speed.decode_tps * mood * error)


@dataclasses.dataclass
class Kept:
    """What a search keeps, one after the other."""

    tunings: list[Tuning] = dataclasses.field(default_factory=list)

    def __call__(self, tuning: Tuning) -> None:
        self.tunings.append(tuning)


def search(
    measurer: FakeMeasurer,
    tuning: Tuning | None = None,
    *,
    seconds: float = 1e6,
    cancelled: Callable[[], bool] = lambda: False,
    dimensions: tuple[Dimension, ...] | None = None,
    kept: Kept | None = None,
) -> Tuning:
    budget = Budget(seconds, cancelled=cancelled, clock=measurer.clock)
    found = Search(
        measurer,
        all_dimensions() if dimensions is None else dimensions,
        budget=budget,
        keep=kept or Kept(),
    )
    return found.run(tuning or Tuning(choice=FIRST, first=FIRST))
