"""The header reader: what it tells, and that nothing but ModelDamaged comes out of a damaged file."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from gguf_files import CHAT, gguf_bytes, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.gguf import read_header
from edgerag.errors import ModelDamaged, ModelMissing, ModelWrongKind


def test_it_tells_what_the_real_chat_model_is(catalog: Catalog) -> None:
    header = read_header(catalog.find("chat", "smollm2-135m-instruct").path)
    assert header.kind == "chat"
    assert header.architecture == "llama"
    assert header.weight_type == "Q8_0"
    assert header.context_tokens == 8192
    assert header.dimension == 576
    assert header.parameter_count == 134_515_008
    assert header.licence == "apache-2.0"
    assert header.languages == ("en",)
    assert "<|im_start|>" in header.chat_template


def test_it_tells_what_the_real_embedder_is(catalog: Catalog) -> None:
    header = read_header(catalog.find("embedder", "all-minilm-l6-v2").path)
    assert header.kind == "embedder"
    assert header.context_tokens == 256  # what sentence-transformers reads of a text, not BERT's 512
    assert header.dimension == 384


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"0 bytes.*empty"):
        read_header(write(tmp_path / "m.gguf", b""))


def test_a_truncated_file_is_refused_with_both_sizes(tmp_path: Path, catalog: Catalog) -> None:
    whole = catalog.find("embedder").path.read_bytes()
    half = write(tmp_path / "half.gguf", whole[: len(whole) // 2])
    with pytest.raises(ModelDamaged, match=f"has {len(whole) // 2:,} bytes and must have {len(whole):,}"):
        read_header(half)


def test_another_magic_is_not_a_gguf_file(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="not a GGUF"):
        read_header(write(tmp_path / "m.gguf", b"GGUX" + gguf_bytes(dict(CHAT))[4:]))


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        read_header(tmp_path / "no.gguf")


def test_a_big_endian_or_future_file_is_refused_by_version(tmp_path: Path) -> None:
    data = bytearray(gguf_bytes(dict(CHAT)))
    data[4:8] = struct.pack(">I", 3)
    with pytest.raises(ModelDamaged, match="little endian"):
        read_header(write(tmp_path / "m.gguf", bytes(data)))


@pytest.mark.parametrize(
    ("metadata", "what"),
    [
        ({"general.type": "adapter"}, "adapter"),
        ({"general.architecture": "clip"}, "clip"),
        ({"split.count": 3}, "one of 3 parts"),
    ],
)
def test_what_is_no_model_of_ours_is_refused_by_name(tmp_path: Path, metadata: dict[str, object], what: str) -> None:
    with pytest.raises(ModelWrongKind, match=what):
        _ = read_header(write(tmp_path / "m.gguf", gguf_bytes({**CHAT, **metadata}))).kind


def test_a_reranker_is_known_by_its_pooling_or_by_its_classifier_head(tmp_path: Path) -> None:
    pooled = write(tmp_path / "pooled.gguf", gguf_bytes({**CHAT, "llama.pooling_type": 4}))
    assert read_header(pooled).kind == "reranker"
    head = gguf_bytes(dict(CHAT), tensors={"token_embd.weight": (4, 2), "cls.output.weight": (4, 1)})
    assert read_header(write(tmp_path / "head.gguf", head)).kind == "reranker"


def test_a_claim_of_a_huge_array_costs_nothing(tmp_path: Path) -> None:
    huge = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1) + b"k"
    huge += struct.pack("<IIQ", 9, 8, 2**62) + bytes(64)
    with pytest.raises(ModelDamaged, match="ends inside"):
        read_header(write(tmp_path / "m.gguf", huge))


def test_a_vocabulary_is_skipped_and_what_follows_is_read(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(200_000)]
    data = gguf_bytes({"tokenizer.ggml.tokens": words, **CHAT, "tokenizer.chat_template": "here"})
    header = read_header(write(tmp_path / "m.gguf", data))
    assert header.chat_template == "here"
    assert header.metadata["tokenizer.ggml.tokens"] == ()


_WHOLE = gguf_bytes({**CHAT, "tokenizer.ggml.tokens": ["a", "b"], "llama.attention.head_count_kv": [1, 2]})


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_only_model_damaged_comes_out_of_a_changed_file(tmp_path: Path, data: st.DataObject) -> None:
    changed = bytearray(_WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(st.integers(0, len(changed) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=9) | st.sampled_from([b"\xff" * 8, b"\0" * 8]))
        changed[position : position + len(patch)] = patch
    file = write(tmp_path / "m.gguf", bytes(changed[: data.draw(st.integers(0, len(changed)))]))
    try:
        header = read_header(file)
        _ = (header.kind, header.context_tokens, header.dimension, header.chat_template, header.languages)
        _ = header.licence
    except (ModelDamaged, ModelWrongKind) as error:
        assert str(file) in error.message


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), headed=st.booleans())
def test_only_model_damaged_comes_out_of_garbage(tmp_path: Path, data: bytes, headed: bool) -> None:
    file = write(tmp_path / "m.gguf", b"GGUF\3\0\0\0" + data if headed else data)
    with pytest.raises((ModelDamaged, ModelWrongKind)):
        read_header(file)
