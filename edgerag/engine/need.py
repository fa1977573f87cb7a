"""The memory that a model takes, computed from its header before it is loaded.

What llama.cpp allocates is followed part by part: the formulas were fitted to the sizes that it logs (libllama of
llama-cpp-python 0.3.36; llama, qwen2, gemma3, mamba, mamba2, lfm2, qwen3moe and deepseek2, contexts of 512 to 8192
tokens), which the tests hold. Cache and state agree to the byte; the compute buffers within 5 % for plain
attention and from 0 to 20 % above for the others. Nothing of a header is trusted: what cannot be is ModelDamaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.engine.gguf import Header
from edgerag.errors import ModelDamaged

if TYPE_CHECKING:
    from edgerag.engine.llama import ContextSettings
    from edgerag.engine.llama.context import CacheType

# (values per block, bytes per block). Source: ggml.c, type_traits.
_BLOCKS: dict[CacheType, tuple[int, int]] = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q8_0": (32, 34),
    "q5_1": (32, 24), "q5_0": (32, 22), "q4_1": (32, 20), "q4_0": (32, 18),
}  # fmt: skip
_CELLS = 256  # a cache is made in steps of so many tokens
_FLOAT = 4
# What llama.cpp keeps of a vocabulary (texts, ranks, merges) was 280 to 330 bytes per token.
_TOKEN_BYTES = 350
_OWN_BYTES = 16_000_000  # graph, scheduler, thread stacks, the rows that are quantised on the way


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes, by what they are for.

    Weights are counted once: they are mapped from their file, or laid out anew in memory and the mapped pages can
    then go. Either way all of them are used for every token.
    """

    weights_bytes: int
    cache_bytes: int  # keys and values of the whole context
    state_bytes: int  # of recurrent layers, whatever the context
    compute_bytes: int
    other_bytes: int  # vocabulary and the library's own

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.cache_bytes + self.state_bytes + self.compute_bytes + self.other_bytes


def memory_need(header: Header, settings: ContextSettings, *, keeps_cache: bool = True) -> MemoryNeed:
    """What the model needs with such a context. Raises ModelDamaged for a header that makes no sense."""
    return MemoryNeed(
        weights_bytes=header.size_bytes,
        cache_bytes=cache_bytes(header, settings) if keeps_cache else 0,
        state_bytes=_state_bytes(header) * settings.sequences,
        compute_bytes=_compute_bytes(header, settings),
        other_bytes=_OWN_BYTES + _TOKEN_BYTES * header.vocabulary_size,
    )


def cache_bytes(header: Header, settings: ContextSettings) -> int:
    """Keys and values of all cells in all layers. Sliding-window layers hold the whole context too: a cache that
    forgot could not be re-used."""
    block, block_bytes = _BLOCKS[settings.cache_type]
    cells = -(-settings.context_tokens // _CELLS) * _CELLS
    total = 0
    for values in cached_values(header):
        total += -(-values // block) * block_bytes * cells
    return total


def cached_values(header: Header) -> list[int]:
    """How many numbers each layer keeps of a token; 0 where it keeps none."""
    arch = header.architecture
    key, value = _head_sizes(header)
    heads = header.per_layer(f"{arch}.attention.head_count_kv", _heads(header))
    interval = header.number(f"{arch}.full_attention_interval", 0)
    with_own = header.layers - header.number(f"{arch}.attention.shared_kv_layers", 0)
    return [
        cached * (key + value) if layer < with_own and (not interval or (layer + 1) % interval == 0) else 0
        for layer, cached in enumerate(heads)
    ]


def can_quantise_cache(header: Header) -> bool:
    """llama.cpp refuses a quantised cache where a head does not consist of whole blocks."""
    return any(cached_values(header)) and all(size % 32 == 0 for size in _head_sizes(header))


def _heads(header: Header) -> int:
    return header.number(f"{header.architecture}.attention.head_count", 0)


def _head_sizes(header: Header) -> tuple[int, int]:
    """Numbers per head in a key and in a value, as they are kept."""
    arch = header.architecture
    heads = _heads(header)
    usual = header.dimension // heads if heads else 0
    key = header.number(f"{arch}.attention.key_length", usual)
    value = header.number(f"{arch}.attention.value_length", usual)
    if not (key and value) and any(header.per_layer(f"{arch}.attention.head_count_kv", heads)):
        raise ModelDamaged(f"{header.path} has attention heads without a size ({heads} of {header.dimension} values).")
    if header.number(f"{arch}.attention.key_length_mla", 0):
        value = 0  # latent attention: the value is a part of the key
    return key, value


def _state_bytes(header: Header) -> int:
    """The state of one sequence in the recurrent layers."""
    arch = header.architecture
    per_layer = _state_values(header)
    if not per_layer:
        return 0
    heads = header.per_layer(f"{arch}.attention.head_count_kv", _heads(header))
    interval = header.number(f"{arch}.full_attention_interval", 0)
    if interval:
        recurrent = sum((layer + 1) % interval != 0 for layer in range(header.layers))
    else:  # layers without attention; where there is none without, all do both
        recurrent = sum(not cached for cached in heads) or header.layers
    return recurrent * per_layer * _FLOAT


def _state_values(header: Header) -> int:
    arch = header.architecture
    if size := header.number(f"{arch}.wkv.head_size", 0):
        return header.dimension * (size + header.number(f"{arch}.token_shift_count", 2))
    if length := header.number(f"{arch}.shortconv.l_cache", 0):
        return header.dimension * (length - 1)
    inner, state = header.number(f"{arch}.ssm.inner_size", 0), header.number(f"{arch}.ssm.state_size", 0)
    groups = header.number(f"{arch}.ssm.group_count", 0)
    past = max(0, header.number(f"{arch}.ssm.conv_kernel", 0) - 1)
    return past * (inner + 2 * groups * state) + inner * state


def _compute_bytes(header: Header, settings: ContextSettings) -> int:
    """Intermediate results of one micro-batch: of its widest stage, and the attention mask.

    The logits are those of one token. llama.cpp reserves room for those of the whole batch, but never touches it.
    """
    arch = header.architecture
    batch = min(settings.micro_batch_tokens or settings.batch_tokens, settings.batch_tokens)
    cells = -(-settings.context_tokens // _CELLS) * _CELLS
    heads, width = _heads(header), header.dimension
    key, value = _head_sizes(header)
    cached = max(header.per_layer(f"{arch}.attention.head_count_kv", heads), default=0)
    attention = heads * key
    stages = [3 * width + attention + 3 * _forward_width(header)]
    if not value:
        stages.append(3 * (width + attention))
    if inner := header.number(f"{arch}.ssm.inner_size", 0):
        stages.append(8 * inner)
    if not settings.flash_attention:
        stages.append(cells * heads + 3 * width + 2 * attention + 2 * cached * key)
    masks = 0
    if attention:
        masks = 2 if header.number(f"{arch}.attention.sliding_window", 0) else 1
    mask = masks * cells * (2 if settings.flash_attention else _FLOAT)
    logits = (header.vocabulary_size + 2 * width) * _FLOAT
    return max(batch * max(stages) * _FLOAT, logits) + batch * mask


def _forward_width(header: Header) -> int:
    """Of the feed-forward stage, all experts of a token together."""
    arch = header.architecture
    dense = header.number(f"{arch}.feed_forward_length", 0)
    expert = header.number(f"{arch}.expert_feed_forward_length", 0)
    return max(dense, header.number(f"{arch}.expert_used_count", 0) * expert)
