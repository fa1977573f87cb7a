"""Which models this machine runs fast enough, told from what was measured of it, before any is downloaded.

Decoding reads all weights and the cache once for each token, and unpacks them on the way: it is as fast as the slower
of memory and cores. Prefill waits for arithmetic. How much of the measured speeds llama.cpp reaches depends on how the
weights are packed; it was fitted to models of 0.1 to 7 billion weights (docs/performance.md shows fit and error).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.engine.fit import FILE_BITS, usable
from edgerag.engine.gguf import Header, Value
from edgerag.engine.llama import ContextSettings
from edgerag.engine.need import MemoryNeed, cached_values, memory_need

WANTED_TOKENS_PER_S = 5.0  # as fast as most people read aloud
Verdict = Literal["fast enough", "slow", "too large"]

_BATCH_TOKENS = 512
_CACHE_BYTES = 2  # f16
# Starting and joining the threads for each operation of a token, and choosing it.
_TOKEN_OVERHEAD_S = 0.005


# Of the bytes per second that a bare loop reads.
_MEMORY_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class Packing:
    """How near llama.cpp comes, with weights of a type, to the operations per second of a float32 product."""

    decode: float  # one token at a time: the weights are unpacked for it alone
    prefill: float


# Measured on two cores with AVX-512 (docs/performance.md). Types that are named here are laid out anew for the
# processor or have kernels of their own; the others are unpacked one by one.
_PACKINGS = {
    "Q4_0": Packing(0.33, 1.0),
    "Q4_K": Packing(0.32, 0.95),
    "Q5_K": Packing(0.26, 0.8),
    "Q6_K": Packing(0.28, 1.1),
    "Q8_0": Packing(0.22, 0.45),
}
_OTHER_PACKING = Packing(0.12, 0.3)  # what Q4_1 reached


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """What was measured, with the threads that will be used."""

    threads: int
    bytes_per_s: float
    operations_per_s: float  # of float32 multiplications and additions; 0: not measured
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """How one model would do here."""

    name: str
    weights: str  # the quantisation
    need: MemoryNeed
    decode_tokens_per_s: float
    prefill_tokens_per_s: float  # 0: not known
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Shape:
    """A size class: what published models of so many weights look like, the roomier ones where they differ."""

    name: str
    parameters: float
    layers: int
    width: int
    heads: int
    cached_heads: int
    feed_forward: int


SHAPES = (
    Shape("0.5B", 0.5e9, 24, 896, 14, 2, 4864),
    Shape("1B", 1.2e9, 16, 2048, 32, 8, 8192),
    Shape("1.5B", 1.6e9, 28, 1536, 12, 4, 8960),
    Shape("3B", 3.2e9, 28, 3072, 24, 8, 8192),
    Shape("4B", 4.0e9, 36, 2560, 32, 8, 9728),
    Shape("7B", 7.3e9, 32, 4096, 32, 8, 14336),
    Shape("8B", 8.2e9, 36, 4096, 32, 8, 14336),
    Shape("14B", 14.8e9, 48, 5120, 40, 8, 13824),
    Shape("32B", 32.8e9, 64, 5120, 40, 8, 27648),
)
QUANTISATIONS = ("Q4_0", "Q4_K_M", "Q6_K", "Q8_0")
_VOCABULARY = 152_000  # of the large ones


def expect(header: Header, *, name: str, weights: str, speed: MachineSpeed, context_tokens: int) -> Expectation:
    """How the model of ``header`` would do with such a context. Raises ModelDamaged for a senseless header."""
    settings = ContextSettings(context_tokens=context_tokens, batch_tokens=_BATCH_TOKENS, threads=speed.threads)
    need = memory_need(header, settings)
    packing = _PACKINGS.get(weights[:4], _OTHER_PACKING)  # "Q4_K_M" is mostly Q4_K
    reading_s = read_per_token(header) / (speed.bytes_per_s * _MEMORY_SHARE)
    # The cache is half full on average.
    cache_s = sum(cached_values(header)) * _CACHE_BYTES * context_tokens / 2 / (speed.bytes_per_s * _MEMORY_SHARE)
    unpacked = header.parameter_count * read_per_token(header) / header.size_bytes
    unpacking_s = 2 * unpacked / (speed.operations_per_s * packing.decode) if speed.operations_per_s else 0.0
    decode = 1 / (_TOKEN_OVERHEAD_S + max(reading_s, unpacking_s) + cache_s)
    prefill = speed.operations_per_s * packing.prefill / (2 * _met_by_a_token(header))
    verdict: Verdict = "fast enough" if decode >= WANTED_TOKENS_PER_S else "slow"
    if need.total_bytes > usable(speed.free_bytes):
        verdict = "too large"
    return Expectation(name, weights, need, decode, prefill, verdict)


def read_per_token(header: Header) -> int:
    """Bytes of weights that one token passes through."""
    arch = header.architecture
    experts, used = header.number(f"{arch}.expert_count", 0), header.number(f"{arch}.expert_used_count", 0)
    idle = header.expert_bytes * max(0, experts - used) // experts if experts else 0
    return max(1, header.size_bytes - header.table_bytes - idle)


def _met_by_a_token(header: Header) -> float:
    """Weights that a token of a prompt is multiplied with: the output layer only works for the last one."""
    read = header.parameter_count * read_per_token(header) / header.size_bytes
    return max(read - header.vocabulary_size * header.dimension, read / 2)


def recommend(speed: MachineSpeed, *, context_tokens: int) -> list[Expectation]:
    """One line for each size class and quantisation."""
    return [
        expect(
            _typical(shape, weights),
            name=shape.name,
            weights=weights,
            speed=speed,
            context_tokens=context_tokens,
        )
        for shape in SHAPES
        for weights in QUANTISATIONS
    ]


def largest(expectations: Iterable[Expectation]) -> Expectation | None:
    """The one with the largest weights of those that are fast enough; None when none is."""
    fit = [expectation for expectation in expectations if expectation.verdict == "fast enough"]
    return max(fit, key=lambda expectation: expectation.need.weights_bytes, default=None)


def _typical(shape: Shape, weights: str) -> Header:
    """The header that a model of that class would have."""
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "llama.block_count": shape.layers,
        "llama.embedding_length": shape.width,
        "llama.feed_forward_length": shape.feed_forward,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.cached_heads,
    }
    return Header(
        path=Path(f"{shape.name}-{weights}.gguf"),
        size_bytes=int(shape.parameters * FILE_BITS[weights] / 8),
        metadata=metadata,
        parameter_count=int(shape.parameters),
        weight_type=weights,
        vocabulary_size=_VOCABULARY,
    )
