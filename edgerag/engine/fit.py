"""Whether a model fits in memory, told before it is loaded."""

from __future__ import annotations

from edgerag.engine.gguf import Header
from edgerag.errors import ModelTooLarge
from edgerag.machine import memory

_CACHE_BYTES = 2  # per value: K and V are kept in f16
_BASE_BYTES = 48_000_000  # llama.cpp itself: vocabulary, graph, thread stacks


def check_fit(header: Header, *, context_tokens: int, batch_tokens: int, keeps_cache: bool = True) -> int:
    """The estimated bytes for a model with this context. Raises ModelTooLarge when they are not free."""
    cache = cache_bytes_per_token(header) * context_tokens if keeps_cache else 0
    compute = _compute_bytes(header, batch_tokens)
    needed = header.size_bytes + cache + compute
    free = memory.available_bytes()
    if needed > free:
        remedy = "Close other programs, or take a smaller model."
        if cache > needed - free:
            remedy = f"Set generation.context_tokens lower than {context_tokens}, or take a smaller model."
        raise ModelTooLarge(
            f"{header.path.name} needs {_mb(needed)} of memory (weights {_mb(header.size_bytes)}, "
            f"{context_tokens} tokens of context {_mb(cache)}, computing {_mb(compute)}); {_mb(free)} are free.",
            remedy=remedy,
        )
    return needed


def cache_bytes_per_token(header: Header) -> int:
    """K and V of one token in all layers."""
    arch = header.architecture
    heads = header.number(f"{arch}.attention.head_count", 1) or 1
    cached_heads = header.number(f"{arch}.attention.head_count_kv", heads) or heads
    head = header.dimension // heads
    key = header.number(f"{arch}.attention.key_length", head)
    value = header.number(f"{arch}.attention.value_length", head)
    return header.number(f"{arch}.block_count", 0) * cached_heads * (key + value) * _CACHE_BYTES


def _compute_bytes(header: Header, batch_tokens: int) -> int:
    """Buffers for one micro-batch: a few activations of one layer, and one row of the vocabulary."""
    width = 8 * header.dimension + 2 * header.number(f"{header.architecture}.feed_forward_length", 0)
    return _BASE_BYTES + batch_tokens * width * 4


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
