"""How the next token is chosen: what the user set, else what the model's file asks for, else our own choice.

Keys: ``general.sampling.*`` of llama.cpp (gguf-py, constants.py), which the converter copies from the publisher's
generation_config.json. Taken are those that the sampler here has. Nothing is assumed from a model's name: what is
recommended differs between the variants of one architecture, and a file that asks for nothing gets our choice.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from edgerag.engine.gguf import Header
from edgerag.errors import ModelDamaged


@dataclass(frozen=True, slots=True)
class SamplingWishes:
    """Settings of the sampler; None where nothing is wished."""

    temperature: float | None = None  # 0 is greedy
    top_k: int | None = None  # 0 is all
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    penalty_tokens: int | None = None  # how far the penalty looks back; 0 switches it off


@dataclass(frozen=True, slots=True)
class ModelSampling:
    """What a file asks for."""

    wishes: SamplingWishes
    ignored: tuple[str, ...]  # keys whose values cannot be, in sentences


@dataclass(frozen=True, slots=True)
class SamplingInForce:
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    penalty_tokens: int


# Greedy: the likeliest reading of the sources is wanted, not an inventive one; the penalty keeps small models from
# going round in circles.
OUR_CHOICE = SamplingInForce(temperature=0.0, top_k=0, top_p=0.95, min_p=0.0, repeat_penalty=1.1, penalty_tokens=64)

# key -> (field, least, most)
_KEYS: dict[str, tuple[str, float, float]] = {
    "general.sampling.temp": ("temperature", 0, 2),
    "general.sampling.top_k": ("top_k", 0, 1_000_000),
    "general.sampling.top_p": ("top_p", 0, 1),
    "general.sampling.min_p": ("min_p", 0, 1),
    "general.sampling.penalty_repeat": ("repeat_penalty", 0.5, 3),
    "general.sampling.penalty_last_n": ("penalty_tokens", 0, 1_000_000),
}
_WHOLE = frozenset({"top_k", "penalty_tokens"})


def model_sampling(header: Header) -> ModelSampling:
    """What the file asks for. A value that cannot be makes no model unusable: it is left out and named."""
    wishes: dict[str, float | int] = {}
    ignored = []
    for key, (name, least, most) in _KEYS.items():
        try:
            value = header.real(key)
        except ModelDamaged as error:
            ignored.append(error.message)
            continue
        if value is None:
            continue
        if not least <= value <= most or (name in _WHOLE and not value.is_integer()):
            ignored.append(f"{header.path} asks for {key} = {value:g}, which is not between {least:g} and {most:g}.")
            continue
        # A 32-bit number is not what was meant: 0.7 is stored as 0.699999988.
        wishes[name] = int(value) if name in _WHOLE else round(value, 6)
    return ModelSampling(SamplingWishes(**wishes), tuple(ignored))  # type: ignore[arg-type]


def resolve(asked: SamplingWishes, model: SamplingWishes) -> SamplingInForce:
    """For each setting: what the user ``asked`` for, else the model, else our choice."""
    values = {}
    for field in fields(SamplingInForce):
        candidates = (getattr(source, field.name) for source in (asked, model, OUR_CHOICE))
        values[field.name] = next(value for value in candidates if value is not None)
    return SamplingInForce(**values)
