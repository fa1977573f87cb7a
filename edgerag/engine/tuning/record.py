"""What was measured of chat models, kept per machine, model file and engine (kept.py).

Each measurement is kept as soon as it is made, so a search goes on where it was stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.engine.kvcache import Recompute
from edgerag.engine.probe import engine_fingerprint
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.kept import Kept
from edgerag.machine.cpu import read_processor
from edgerag.machine.fingerprint import machine_fingerprint
from edgerag.machine.memory import total_bytes
from edgerag.machine.topology import Topology, read_topology
from edgerag.types import ModelFile

_MOST_KEPT = 32  # of about 5 kB each; the oldest go

Verdict = Literal["measured", "taken", "refused", "impossible", "postponed"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table."""

    what: str  # "flash attention"
    value: str  # "off"
    against: str  # what stood: "on"; "" for the first measurement of all
    standing: str  # names everything else that stood: see search.py
    prefill_tps: float = 0.0  # 0: not measured
    decode_tps: float = 0.0
    against_prefill_tps: float = 0.0
    against_decode_tps: float = 0.0
    gain: float = 0.0  # times as fast by what decides, the median of rounds in turns
    perplexity: float = 0.0
    perplexity_rise: float = 0.0  # over the model as it came: 0.01 is 1 %
    rounds: int = 0
    verdict: Verdict = "measured"
    why: str = ""


@dataclass(frozen=True, slots=True)
class RequantisedFile:
    """A file that was made from the model's own and is used in its place."""

    name: str  # beside the model's own
    size_bytes: int
    mtime_ns: int
    sha256: str
    weight_type: str


@dataclass(frozen=True, slots=True)
class RecipeAnswers:
    """The answers of one way to put passages into the cache."""

    link_tokens: int  # -1: exactly
    recompute: Recompute  # which passages are computed in place all the same
    marks: str  # a character per question asked so far: "1" is right, "0" is wrong
    given_up: bool = False  # so many are wrong that the rest cannot make up for it

    @property
    def right(self) -> int:
        return self.marks.count("1")


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether passages may be spliced with this model: see gate.py."""

    questions: int
    seed: int
    numerics: str  # what the answers depend on; another: asked again
    recipes: tuple[RecipeAnswers, ...] = ()
    finished: bool = False
    passages: Literal["exact", "spliced"] = "exact"
    link_tokens: int = 0
    recompute: Recompute = "none"
    why: str = ""

    @property
    def accuracy_exact(self) -> float:
        return self._accuracy(-1, "none")

    @property
    def accuracy_chosen(self) -> float:
        if self.passages == "exact":
            return self.accuracy_exact
        return self._accuracy(self.link_tokens, self.recompute)

    def _accuracy(self, link_tokens: int, recompute: Recompute) -> float:
        answers = self.answers(link_tokens, recompute)
        return answers.right / len(answers.marks) if answers is not None and answers.marks else 0.0

    def answers(self, link_tokens: int, recompute: Recompute) -> RecipeAnswers | None:
        """Those of one recipe, as far as it was asked."""
        recipe = (link_tokens, recompute)
        return next((one for one in self.recipes if (one.link_tokens, one.recompute) == recipe), None)


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that is known of one model file on one machine."""

    choice: Choice
    first: Choice  # what the search began from, and the fallback
    measurements: tuple[Measurement, ...] = ()
    finished: bool = False
    seconds: float = 0.0  # spent on measuring so far
    weights: RequantisedFile | None = None  # of choice.weights
    gate: Gate | None = None

    @property
    def gate_in_force(self) -> Gate | None:
        """The gate, if it was decided for the numbers that are computed now."""
        gate = self.gate
        return gate if gate is not None and gate.finished and gate.numerics == self.choice.numerics_name else None

    @property
    def prefill_tps(self) -> float:
        """Tokens of a prompt per second as it was last measured of what is chosen; 0.0 before that."""
        chosen = (one for one in reversed(self.measurements) if one.verdict in ("measured", "taken"))
        return next((one.prefill_tps for one in chosen if one.prefill_tps), 0.0)


def tuning_key(model: ModelFile, topology: Topology | None = None) -> str:
    """Names the machine, the file and the engine. The file, not the weights that it was made from: those are the same
    in another weight type, and run at another speed."""
    machine = machine_fingerprint(read_processor(), topology or read_topology(), memory_bytes=total_bytes())
    return f"{machine}-{model.sha256[:32]}-{engine_fingerprint()}"


class Tunings(Kept[Tuning]):
    """The tunings of chat models kept in a models folder. Making one reads nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, name="tuning", kind=Tuning, most=_MOST_KEPT)

    def files_in_use(self) -> set[str]:
        """The names of requantised files that some machine runs."""
        return {one.choice.weights for one in self.all().values() if one.choice.weights}
