"""The memory that a model will take, against what llama.cpp logged for files of these shapes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from gguf_files import CHAT, gguf_bytes, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import ContextSettings
from edgerag.engine.need import can_quantise_cache, memory_need
from edgerag.errors import ModelDamaged

MIB = 2**20
VOCABULARY = 49152


def header(folder: Path, architecture: str, **keys: object) -> Header:
    """A file with that header and next to no weights; ``__`` in a name stands for a dot."""
    metadata: dict[str, object] = {"general.architecture": architecture}
    metadata |= {f"{architecture}.{name.replace('__', '.')}": value for name, value in keys.items()}
    read = read_header(write(folder / "m.gguf", gguf_bytes(metadata)))
    return dataclasses.replace(read, vocabulary_size=VOCABULARY)


def shape(layers: int, width: int, heads: int, cached_heads: int | list[int], forward: int) -> dict[str, object]:
    return {
        "block_count": layers,
        "embedding_length": width,
        "attention__head_count": heads,
        "attention__head_count_kv": cached_heads,
        "feed_forward_length": forward,
    }


SHAPES: dict[str, tuple[str, dict[str, object]]] = {
    "smollm2": ("llama", shape(30, 576, 9, 3, 1536)),
    "llama-1b": ("llama", shape(16, 2048, 32, 8, 8192)),
    "llama-7b": ("llama", shape(32, 4096, 32, 8, 14336)),
    "wide heads": (
        "llama",
        shape(3, 2560, 32, 8, 6912) | {"attention__key_length": 128, "attention__value_length": 128},
    ),
    "qwen2": ("qwen2", shape(4, 896, 14, 2, 4864)),
    "gemma3": (
        "gemma3",
        shape(12, 640, 4, 1, 2048)
        | {"attention__key_length": 256, "attention__value_length": 256, "attention__sliding_window": 512},
    ),
    "mixture": (
        "qwen3moe",
        shape(4, 1024, 16, 4, 5632)
        | {"expert_count": 16, "expert_used_count": 8, "expert_feed_forward_length": 512}
        | {"feed_forward_length": 2048},
    ),
    "mamba": (
        "mamba",
        {"block_count": 4, "embedding_length": 768, "feed_forward_length": 0, "attention__head_count": 0}
        | {"ssm__conv_kernel": 4, "ssm__inner_size": 1536, "ssm__state_size": 16, "ssm__time_step_rank": 48},
    ),
    "mamba2": (
        "mamba2",
        {"block_count": 4, "embedding_length": 768, "feed_forward_length": 0, "attention__head_count": 0}
        | {"ssm__conv_kernel": 4, "ssm__inner_size": 1536, "ssm__state_size": 128, "ssm__group_count": 1},
    ),
    "hybrid": ("lfm2", shape(4, 1024, 16, [0, 8, 0, 8], 2560) | {"shortconv__l_cache": 3}),
    "latent": (
        "deepseek2",
        shape(3, 1024, 16, 1, 2048)
        | {"attention__key_length": 576, "attention__value_length": 512}
        | {"attention__key_length_mla": 192, "attention__value_length_mla": 128},
    ),
}

# (shape, context, flash attention) -> MiB of "KV buffer size" + "RS buffer size", and of "compute buffer size" with
# n_ubatch 512 and n_outputs_max 32, as libllama 0.5.0 of llama-cpp-python 0.3.36 logs them.
LOGGED = {
    ("smollm2", 512, True): (11.25, 14.01),
    ("smollm2", 2048, True): (45.0, 15.51),
    ("smollm2", 8192, True): (180.0, 21.51),
    ("smollm2", 2048, False): (45.0, 46.38),
    ("smollm2", 8192, False): (180.0, 166.38),
    ("llama-1b", 2048, True): (64.0, 66.01),
    ("llama-1b", 8192, True): (256.0, 72.01),
    ("llama-1b", 8192, False): (256.0, 550.01),
    ("llama-7b", 2048, True): (256.0, 118.01),
    ("wide heads", 2048, True): (24.0, 65.51),
    ("wide heads", 8192, True): (96.0, 71.51),
    ("wide heads", 8192, False): (96.0, 563.01),
    ("qwen2", 1000, True): (2.0, None),  # 1024 cells
    ("qwen2", 2048, True): (4.0, 37.51),
    ("qwen2", 8192, False): (16.0, 249.26),
    ("gemma3", 2048, True): (24.0, 21.77),
    ("gemma3", 8192, True): (96.0, 33.77),
    ("gemma3", 8192, False): (96.0, 105.76),
    ("mixture", 2048, True): (8.0, 34.01),
    ("mixture", 8192, False): (32.0, 283.01),
    ("mamba", 8192, True): (0.45, 19.63),
    ("mamba2", 8192, True): (3.08, 22.34),
    ("hybrid", 2048, True): (8.02, 23.02),
    ("hybrid", 8192, False): (32.02, 284.01),
    ("latent", 2048, True): (6.75, 54.01),
    ("latent", 8192, True): (27.0, 60.01),
    ("latent", 8192, False): (27.0, 320.51),
}


def context(context_tokens: int = 2048, **changes: object) -> ContextSettings:
    return ContextSettings(context_tokens=context_tokens, batch_tokens=512, threads=1, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "context_tokens", "flash"), LOGGED)
def test_the_sizes_are_those_that_llama_cpp_allocates(
    tmp_path: Path, name: str, context_tokens: int, flash: bool
) -> None:
    cache_mib, compute_mib = LOGGED[name, context_tokens, flash]
    architecture, keys = SHAPES[name]
    need = memory_need(header(tmp_path, architecture, **keys), context(context_tokens, flash_attention=flash))
    assert (need.cache_bytes + need.state_bytes) / MIB == pytest.approx(cache_mib, abs=0.006)
    if compute_mib is not None:
        assert 0.98 * compute_mib <= need.compute_bytes / MIB <= 1.25 * compute_mib
        if architecture in ("llama", "qwen2", "gemma3", "qwen3moe"):
            assert need.compute_bytes / MIB == pytest.approx(compute_mib, rel=0.015)


@pytest.mark.parametrize(("cache_type", "mib"), [("f16", 45.0), ("q8_0", 23.91), ("q4_0", 12.66), ("f32", 90.0)])
def test_a_quantised_cache_is_smaller_by_its_blocks(tmp_path: Path, cache_type: str, mib: float) -> None:
    architecture, keys = SHAPES["smollm2"]
    need = memory_need(header(tmp_path, architecture, **keys), context(cache_type=cache_type))
    assert need.cache_bytes / MIB == pytest.approx(mib, abs=0.006)


def test_each_sequence_has_a_state_of_its_own_but_all_share_the_cache(tmp_path: Path) -> None:
    hybrid = header(tmp_path, SHAPES["hybrid"][0], **SHAPES["hybrid"][1])
    one, three = (memory_need(hybrid, context(sequences=count)) for count in (1, 3))
    assert three.cache_bytes == one.cache_bytes
    assert three.state_bytes == 3 * one.state_bytes > 0


def test_layers_that_share_the_cache_of_others_need_none(tmp_path: Path) -> None:
    keys = shape(10, 640, 4, 1, 2048)
    alone = memory_need(header(tmp_path, "gemma3n", **keys), context())
    sharing = memory_need(header(tmp_path, "gemma3n", **keys, attention__shared_kv_layers=4), context())
    assert sharing.cache_bytes * 10 == alone.cache_bytes * 6


def test_every_fourth_layer_attends_and_the_others_have_a_state(tmp_path: Path) -> None:
    keys = shape(8, 1024, 16, 2, 2048) | {"attention__key_length": 256, "attention__value_length": 256}
    states = {"ssm__conv_kernel": 4, "ssm__inner_size": 4096, "ssm__state_size": 128, "ssm__group_count": 16}
    need = memory_need(header(tmp_path, "qwen3next", **keys, **states, full_attention_interval=4), context())
    assert need.cache_bytes == 2 * 2 * 512 * 2 * 2048  # 2 layers, 2 heads, key and value, f16
    assert need.state_bytes == 6 * 4 * (3 * (4096 + 2 * 16 * 128) + 4096 * 128)


def test_a_recurrent_model_of_the_rwkv_kind_keeps_matrices(tmp_path: Path) -> None:
    keys = {"block_count": 12, "embedding_length": 768, "feed_forward_length": 2688, "attention__head_count": 0}
    need = memory_need(header(tmp_path, "rwkv7", **keys, wkv__head_size=64, token_shift_count=2), context())
    assert need.cache_bytes == 0
    assert need.state_bytes == 12 * 4 * 768 * (64 + 2)


def test_a_head_that_is_not_whole_blocks_cannot_be_quantised(tmp_path: Path) -> None:
    assert can_quantise_cache(header(tmp_path, "llama", **shape(2, 576, 9, 3, 1536)))
    assert not can_quantise_cache(header(tmp_path, "llama", **shape(2, 2560, 32, 8, 1536)))  # heads of 80
    assert not can_quantise_cache(header(tmp_path, *SHAPES["mamba"][:1], **SHAPES["mamba"][1]))  # has none


def test_the_real_model_needs_what_it_was_seen_to_take(catalog: Catalog) -> None:
    """Anonymous memory grew by 78 MB with 2048 tokens of context, and 145 MB of the file were mapped."""
    need = memory_need(read_header(catalog.find("chat", "smollm2-135m-instruct").path), context())
    assert need.total_bytes == pytest.approx(145e6 + 78 * MIB, rel=0.08)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"block_count": 4_000_000_000}, "4,000,000,000 layers"),
        ({"block_count": True}, "block_count"),
        ({"block_count": "two"}, "block_count"),
        ({"attention.head_count": 0, "attention.head_count_kv": 4}, "heads without a size"),
        ({"attention.head_count": 4_294_967_295}, "heads without a size"),
        ({"attention.head_count_kv": [2, 2, 2]}, "3 values for 'llama.attention.head_count_kv'"),
        ({"attention.head_count_kv": []}, "0 values"),
        ({"attention.head_count_kv": ["a", "b"]}, "not a whole number for each"),
        ({"embedding_length": 0}, "heads without a size"),
        ({"feed_forward_length": 1.5}, "feed_forward_length"),
    ],
)
def test_a_header_that_makes_no_sense_is_named(tmp_path: Path, keys: dict[str, object], why: str) -> None:
    data = gguf_bytes({**CHAT, **{f"llama.{key}": value for key, value in keys.items()}})
    with pytest.raises(ModelDamaged, match=why):
        memory_need(read_header(write(tmp_path / "m.gguf", data)), context())


KEYS = [
    *("block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"),
    *("attention.key_length", "attention.value_length", "attention.key_length_mla", "attention.sliding_window"),
    *("attention.shared_kv_layers", "full_attention_interval", "ssm.inner_size", "ssm.state_size", "ssm.conv_kernel"),
    *("ssm.group_count", "wkv.head_size", "token_shift_count", "shortconv.l_cache", "expert_used_count"),
    "expert_feed_forward_length",
]
number = st.sampled_from([0, 1, 2, 3, 64, 513, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    keys=st.dictionaries(
        st.sampled_from(KEYS),
        number | st.lists(number, max_size=4) | st.floats(width=32) | st.text(max_size=3) | st.booleans(),
    )
)
def test_no_header_does_worse_than_be_named(tmp_path: Path, keys: dict[str, object]) -> None:
    metadata: dict[str, object] = {"general.architecture": "llama"}
    metadata |= {f"llama.{key}": value for key, value in keys.items()}
    read = read_header(write(tmp_path / "m.gguf", gguf_bytes(metadata)))
    try:
        need = memory_need(read, context())
    except ModelDamaged as error:
        assert "m.gguf" in error.message
    else:
        assert need.total_bytes >= need.weights_bytes > 0
        assert min(dataclasses.astuple(need)) >= 0
