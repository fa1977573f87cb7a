"""Sampling: the user's word, then the file's, then ours."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from gguf_files import CHAT, gguf_bytes, write
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import Model
from edgerag.engine.sampling import OUR_CHOICE, SamplingInForce, SamplingWishes, model_sampling, resolve

NAMES = [field.name for field in fields(SamplingWishes)]


def header_with(folder: Path, **keys: object) -> Header:
    metadata = {**CHAT, **{f"general.sampling.{name}": value for name, value in keys.items()}}
    return read_header(write(folder / "m.gguf", gguf_bytes(metadata)))


def test_a_file_tells_what_it_wants(tmp_path: Path) -> None:
    header = header_with(tmp_path, temp=0.6, top_k=20, top_p=0.95, min_p=0.05, penalty_repeat=1.05, penalty_last_n=32)
    assert model_sampling(header).wishes == SamplingWishes(
        temperature=0.6, top_k=20, top_p=0.95, min_p=0.05, repeat_penalty=1.05, penalty_tokens=32
    )
    assert model_sampling(header).ignored == ()


def test_a_whole_number_may_stand_for_a_real_one(tmp_path: Path) -> None:
    assert model_sampling(header_with(tmp_path, temp=1)).wishes.temperature == 1.0


def test_a_file_that_asks_for_nothing_gets_our_choice(catalog: Catalog) -> None:
    header = read_header(catalog.find("chat", "smollm2-135m-instruct").path)
    asked = model_sampling(header)
    assert asked.wishes == SamplingWishes()
    assert resolve(SamplingWishes(), asked.wishes) == OUR_CHOICE


@pytest.mark.parametrize(
    "keys",
    [
        {"temp": -1.0},
        {"temp": float("nan")},
        {"temp": float("inf")},
        {"temp": 1000.0},
        {"temp": "hot"},
        {"temp": True},
        {"temp": [1, 2]},
        {"top_p": 1.5},
        {"top_k": 2_000_000_000},
        {"top_k": 20.5},
        {"penalty_repeat": 0.0},
    ],
)
def test_a_senseless_value_is_left_out_and_named(tmp_path: Path, keys: dict[str, object]) -> None:
    asked = model_sampling(header_with(tmp_path, min_p=0.25, **keys))
    assert asked.wishes == SamplingWishes(min_p=0.25)
    assert len(asked.ignored) == 1
    assert next(iter(keys)) in asked.ignored[0]


values = st.none() | st.floats(0.5, 1)


@given(
    asked=st.builds(SamplingWishes, **dict.fromkeys(NAMES, values)),
    model=st.builds(SamplingWishes, **dict.fromkeys(NAMES, values)),
)
def test_the_user_comes_first_then_the_model_then_we(asked: SamplingWishes, model: SamplingWishes) -> None:
    result = resolve(asked, model)
    for field in fields(SamplingInForce):
        wanted = [getattr(source, field.name) for source in (asked, model, OUR_CHOICE)]
        assert getattr(result, field.name) == next(value for value in wanted if value is not None)


def test_zero_is_a_wish() -> None:
    assert resolve(SamplingWishes(temperature=0.0), SamplingWishes(temperature=0.6)).temperature == 0.0


@pytest.mark.long
@pytest.mark.parametrize("key", ["eos", "eot", "eom"])
def test_every_end_that_the_metadata_names_ends_the_generation(tmp_path: Path, catalog: Catalog, key: str) -> None:
    """What we leave to llama.cpp: an ordinary token becomes an end when the file says so."""
    file = vocabulary_of(catalog, tmp_path / "v.gguf", {f"tokenizer.ggml.{key}_token_id": 1234})
    model = Model(file, vocabulary_only=True)
    try:
        assert model.is_end(1234)
        assert not model.is_end(1235)
        assert model.is_end(2)  # <|im_end|>: known by its text, whatever the keys say
    finally:
        model.close()


def vocabulary_of(catalog: Catalog, target: Path, changed: dict[str, int]) -> Path:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(target, "llama")
    for key, field in gguf.GGUFReader(catalog.find("chat", "smollm2-135m-instruct").path).fields.items():
        if not key.startswith(("GGUF.", "general.architecture")) and key not in changed:
            inner = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(key, field.contents(), field.types[0], sub_type=inner)
    for key, token in changed.items():
        writer.add_uint32(key, token)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return target
