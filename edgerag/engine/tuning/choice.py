"""What can be tuned, and what may be tried for each: pure functions of machine, model and budget.

The dimensions are in the order of what they are expected to gain, so that a search that is cut short has the best of
it. docs/decisions/026 gives the reasons for each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgerag.engine.gguf import Header
from edgerag.engine.llama import LoadMode
from edgerag.engine.llama.context import CacheType
from edgerag.engine.need import can_quantise_cache

WaitPolicy = Literal["passive", "brief", "spin"]  # the longer they spin, the later
Speculation = Literal["lookup", "off"]
# Which time decides: of a whole answer, of reading the prompt, or of one token after the other.
Decides = Literal["answer", "prefill", "decode"]

BATCH_TOKENS = 512
_LEAST_BATCH = 64  # a draft and the smallest filled-up batch fit in
_MOST_OF_ANYTHING = 65_536  # threads, and tokens of a batch: what stands in a file is not trusted
_MICRO_BATCHES = (128, 256, 512, 1024)
# These prefill at half the speed of Q8_0 on processors that have instructions for 8-bit sums, and Q8_0 holds their
# values to 0.3 % of perplexity (docs/decisions/020). K-quants are left: their files are chosen for their size.
_WORTH_REQUANTISING = frozenset({"Q4_0", "Q4_1", "Q5_0", "Q5_1"})
_NEARLY_LOSSLESS = "Q8_0"
REQUANTISE_TYPES = ("Q8_0", "Q6_K", "Q5_K_M", "Q5_1", "Q5_0", "Q4_K_M", "Q4_1", "Q4_0", "F16", "BF16")
# GNU's OpenMP spins about this long before it sleeps (3 ms) unless it is told to sleep at once.
WAIT_NAMES: dict[WaitPolicy, str] = {"passive": "sleep", "brief": "spin briefly", "spin": "spin"}
_SPINS = {"brief": "2000", "spin": "300000"}  # turns; about 20 us and 3 ms


@dataclass(frozen=True, slots=True)
class Choice:
    """How a model is run: all that is tuned."""

    prefill_threads: int
    decode_threads: int
    weights: str = ""  # a requantised file beside the model's own; "" is the model's own
    flash_attention: bool = True
    batch_tokens: int = BATCH_TOKENS
    micro_batch_tokens: int = BATCH_TOKENS
    cache_type: CacheType = "f16"
    load_mode: LoadMode = "auto"
    repack: bool = True
    wait_policy: WaitPolicy = "passive"
    speculation: Speculation = "lookup"

    def __post_init__(self) -> None:
        counts = (self.prefill_threads, self.decode_threads, self.batch_tokens, self.micro_batch_tokens)
        if min(counts) < 1 or max(counts) > _MOST_OF_ANYTHING or self.weights != Path(self.weights).name:
            raise ValueError(f"{self} cannot be run")

    @property
    def can_answer(self) -> bool:
        """Whether a generator runs so; what a search tries on the way need not, and what stands in a file may not."""
        quantised = self.cache_type not in ("f32", "f16", "bf16")
        fits = _LEAST_BATCH <= self.micro_batch_tokens <= self.batch_tokens
        return fits and (self.flash_attention or not quantised)  # llama.cpp refuses that

    @property
    def numerics(self) -> tuple[str, bool, str]:
        """What the computed numbers depend on, but for rounding."""
        return self.weights, self.flash_attention, self.cache_type

    @property
    def numerics_name(self) -> str:
        return ", ".join(map(str, self.numerics))


@dataclass(frozen=True, slots=True)
class Option:
    """One value of a dimension."""

    words: str
    changes: Mapping[str, Any]  # fields of a Choice

    def within(self, choice: Choice) -> Choice:
        return dataclasses.replace(choice, **self.changes)

    def is_in(self, choice: Choice) -> bool:
        return self.within(choice) == choice


@dataclass(frozen=True, slots=True)
class Dimension:
    what: str
    options: tuple[Option, ...]
    decides: Decides
    changes_numbers: bool = False  # then quality is compared as well
    needs_quiet: bool = False  # whatever other programs take decides it
    is_ordered: bool = False  # only the neighbours of what stands are tried, on and on while they win


def wait_environment(policy: WaitPolicy) -> dict[str, str]:
    """The variables that make OpenMP's threads wait so; they count only before llama.cpp is loaded."""
    return {"GOMP_SPINCOUNT": _SPINS[policy]} if policy in _SPINS else {}


def requantised_name(stem: str, weight_type: str) -> str:
    """The file name of a model's requantised twin."""
    return f"{stem}.tuned-{weight_type}.gguf"


def weight_types(header: Header, asked: str) -> tuple[str, ...]:
    """The types that this model's weights may be turned into: those ``asked`` for, else one that loses nothing."""
    wanted = asked or (_NEARLY_LOSSLESS if header.weight_type in _WORTH_REQUANTISING else "")
    return (wanted,) if wanted and wanted != header.weight_type else ()


def dimensions(
    header: Header, *, first: Choice, weights: Sequence[str], most_prefill_threads: int
) -> tuple[Dimension, ...]:
    """What to try for this model, beginning from ``first``.

    ``weights``: types it may be requantised to. ``most_prefill_threads``: with efficiency cores.
    """
    found = [
        Dimension(
            "weights",
            (
                Option(header.weight_type, {"weights": ""}),
                *(Option(name, {"weights": requantised_name(header.path.stem, name)}) for name in weights),
            ),
            "answer",
            changes_numbers=True,
        ),
        Dimension(
            "flash attention",
            (Option("on", {"flash_attention": True}), Option("off", {"flash_attention": False})),
            "answer",
            changes_numbers=True,
        ),
        _threads("prefill", [first.prefill_threads, first.prefill_threads - 1, most_prefill_threads]),
        _threads("decode", [first.decode_threads, first.decode_threads - 1, -(-first.decode_threads // 2)]),
        Dimension(
            "micro-batch",
            tuple(
                Option(str(size), {"micro_batch_tokens": size, "batch_tokens": max(size, BATCH_TOKENS)})
                for size in _MICRO_BATCHES
            ),
            "prefill",
            is_ordered=True,
        ),
    ]
    if can_quantise_cache(header):
        options = (Option("f16", {"cache_type": "f16"}), Option("q8_0", {"cache_type": "q8_0"}))
        found.append(Dimension("KV cache", options, "answer", changes_numbers=True))
    loads: tuple[LoadMode, ...] = ("auto", "read", "mmap+mlock")
    found += [
        Dimension("loading", tuple(Option(mode, {"load_mode": mode}) for mode in loads), "answer"),
        Dimension("repacked weights", (Option("yes", {"repack": True}), Option("no", {"repack": False})), "answer"),
        Dimension(
            "waiting threads",
            tuple(Option(name, {"wait_policy": policy}) for policy, name in WAIT_NAMES.items()),
            "answer",
        ),
        Dimension(
            "lookup",
            (Option("on", {"speculation": "lookup"}), Option("off", {"speculation": "off"})),
            "decode",
        ),
    ]
    return tuple(dimension for dimension in found if len(dimension.options) > 1)


def _threads(phase: Literal["prefill", "decode"], counts: Sequence[int]) -> Dimension:
    wanted = dict.fromkeys(count for count in counts if count >= 1)
    options = tuple(Option(str(count), {f"{phase}_threads": count}) for count in wanted)
    return Dimension(f"{phase} threads", options, phase, needs_quiet=True)
