"""Whether a model fits in memory, told before it is loaded, and what would make it fit."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.engine.gguf import Header
from edgerag.engine.need import MemoryNeed, can_quantise_cache, memory_need
from edgerag.errors import ModelTooLarge
from edgerag.machine import memory
from edgerag.types import WhenTight as WhenTight

if TYPE_CHECKING:
    from edgerag.engine.llama import ContextSettings
    from edgerag.engine.llama.context import CacheType

# Of the free memory, what a model may not take: the program itself grows by about 40 MB while it answers, and
# "free" is the kernel's estimate, which counts page cache that somebody may want back.
_RESERVE_BYTES = 64_000_000
_RESERVE_SHARE = 0.03
_STEP_TOKENS = 256  # a cache is made in such steps
# Room for the instructions, one source, the question and an answer. Less is no context for this program.
_LEAST_TOKENS = 1024
# Bits per weight of files as they are published: the tables and the output are kept finer than the name says.
FILE_BITS = {"Q8_0": 8.5, "Q6_K": 6.6, "Q5_K_M": 5.7, "Q4_K_M": 4.9, "Q4_0": 4.6, "Q3_K_M": 3.9, "Q2_K": 3.2}


@dataclass(frozen=True, slots=True)
class Fit:
    """A context that this model can have here."""

    settings: ContextSettings
    need: MemoryNeed
    usable_bytes: int  # free memory without the reserve
    note: str  # what had to be changed, in a sentence; empty when nothing had to


def check_fit(header: Header, *, context_tokens: int, batch_tokens: int, keeps_cache: bool = True) -> int:
    """The estimated bytes for a model with this context. Raises ModelTooLarge when they are not free."""
    from edgerag.engine.llama import ContextSettings

    settings = ContextSettings(context_tokens=context_tokens, batch_tokens=batch_tokens, threads=1)
    return fit(header, settings, when_tight="refuse", keeps_cache=keeps_cache).need.total_bytes


def fit(
    header: Header,
    settings: ContextSettings,
    *,
    when_tight: WhenTight,
    keeps_cache: bool = True,
    cache_types: Sequence[CacheType] = (),
) -> Fit:
    """``settings`` if they fit in the memory that is free now. When they do not, "shrink" makes the context
    smaller, in steps of 256 tokens and not below 1024. ``cache_types``: those that the user could choose instead,
    for the advice. Raises ModelTooLarge with sizes and with what would help, ModelDamaged for a senseless header."""
    free_bytes = memory.available_bytes()
    usable_bytes = usable(free_bytes)
    need = memory_need(header, settings, keeps_cache=keeps_cache)
    if need.total_bytes <= usable_bytes:
        return Fit(settings, need, usable_bytes, note="")
    fitting_tokens = _fitting_tokens(header, settings, usable_bytes) if keeps_cache else 0
    if fitting_tokens and when_tight == "shrink":
        smaller = _with_context(settings, fitting_tokens)
        note = (
            f"The context is {fitting_tokens} tokens instead of {settings.context_tokens}: more does not fit in the "
            f"{_mb(free_bytes)} of memory that are free."
        )
        return Fit(smaller, memory_need(header, smaller), usable_bytes, note=note)
    raise ModelTooLarge(
        f"{header.path.name} needs {_mb(need.total_bytes)} of memory (weights {_mb(need.weights_bytes)}, "
        + (f"{settings.context_tokens} tokens of context {_mb(need.cache_bytes)}, " if keeps_cache else "")
        + (f"state {_mb(need.state_bytes)}, " if need.state_bytes else "")
        + f"computing {_mb(need.compute_bytes + need.other_bytes)}); {_mb(free_bytes)} are free, "
        f"{_mb(free_bytes - usable_bytes)} of them kept back.",
        remedy=" ".join(_remedies(header, settings, need, usable_bytes, fitting_tokens, cache_types)),
    )


def usable(free_bytes: int) -> int:
    """Of so much free memory, what a model may take."""
    return max(0, free_bytes - _RESERVE_BYTES - int(_RESERVE_SHARE * free_bytes))


def _fitting_tokens(header: Header, settings: ContextSettings, usable_bytes: int) -> int:
    """The largest context that fits, 0 when even the least does not."""
    steps = range(_LEAST_TOKENS, settings.context_tokens, _STEP_TOKENS)

    def total(tokens: int) -> int:
        return memory_need(header, _with_context(settings, tokens)).total_bytes

    fitting = bisect_right(steps, usable_bytes, key=total)
    return steps[fitting - 1] if fitting else 0


def _with_context(settings: ContextSettings, tokens: int) -> ContextSettings:
    return dataclasses.replace(settings, context_tokens=tokens, batch_tokens=min(settings.batch_tokens, tokens))


def _remedies(
    header: Header,
    settings: ContextSettings,
    need: MemoryNeed,
    usable_bytes: int,
    fitting_tokens: int,
    cache_types: Sequence[CacheType],
) -> list[str]:
    """What helps, with numbers; and what loading it all the same would mean."""
    found = []
    if fitting_tokens:
        found.append(f"Set generation.context_tokens to {fitting_tokens} or lower.")
    for cache_type in cache_types if can_quantise_cache(header) else ():
        other = memory_need(header, dataclasses.replace(settings, cache_type=cache_type))
        if other.total_bytes <= usable_bytes:
            found.append(f"Or keep the context as {cache_type}: {_mb(other.total_bytes)} in all.")
            break
    if not found:
        room = usable_bytes - (need.total_bytes - need.weights_bytes - need.cache_bytes)
        if need.cache_bytes:
            smallest = _with_context(settings, min(settings.context_tokens, _LEAST_TOKENS))
            room -= memory_need(header, smallest).cache_bytes
        found.append("Close other programs, or take a smaller file" + _smaller_file(header, room))
    if need.weights_bytes > usable_bytes:
        found.append("Loaded all the same it would be killed, or read its weights from the disk again for every token.")
    return found


def _smaller_file(header: Header, room_bytes: int) -> str:
    sizes = {name: int(header.parameter_count * bits / 8) for name, bits in FILE_BITS.items()}
    for name, size_bytes in sizes.items():
        if size_bytes <= room_bytes and size_bytes < header.size_bytes:
            return f": this model in {name} would have about {_mb(size_bytes)}."
    if room_bytes <= 0:
        return "."
    return f": one of {_mb(room_bytes)} at most; see `edgerag models recommend`."


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
