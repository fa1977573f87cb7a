"""Conversion of sentence-transformers folders: tiny random ones made here, right ones and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from edgerag.engine.catalog import Catalog
from edgerag.engine.convert import WeightType, auto_weight_type, convert_folder
from edgerag.engine.embedder import open_embedder
from edgerag.errors import ModelDamaged, ModelError, ModelMissing, ModelWrongKind

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "pump", "##s", "screw", "."]
CONFIG: dict[str, Any] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "vocab_size": len(WORDS),
    "type_vocab_size": 2,
}


def weights() -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    random = np.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (10, 32),
        "embeddings.position_embeddings.weight": (64, 32),
        "embeddings.token_type_embeddings.weight": (2, 32),
        "embeddings.LayerNorm.weight": (32,),
        "embeddings.LayerNorm.bias": (32,),
    }
    for name, rows, columns in (
        *((f"attention.self.{part}", 32, 32) for part in ("query", "key", "value")),
        ("attention.output.dense", 32, 32),
        ("intermediate.dense", 64, 32),
        ("output.dense", 32, 64),
    ):
        shapes[f"encoder.layer.0.{name}.weight"] = (rows, columns)
        shapes[f"encoder.layer.0.{name}.bias"] = (rows,)
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes[f"encoder.layer.0.{name}.weight"] = shapes[f"encoder.layer.0.{name}.bias"] = (32,)
    return {name: random.normal(size=shape).astype(np.float32) * 0.2 for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Tiny-BERT"
    (made / "1_Pooling").mkdir(parents=True)
    modules = [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in ("Transformer", "Normalize")]
    modules.insert(1, {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"})
    write(made / "modules.json", modules)
    write(made / "config.json", CONFIG)
    write(made / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    write(made / "sentence_bert_config.json", {"max_seq_length": 32})
    (made / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (made / "README.md").write_text("---\nlicense: mit\nlanguage:\n- en\n- de\n---\n# Tiny\n")
    save_file(weights(), made / "model.safetensors")
    return made


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content))


def test_a_folder_is_added_and_embeds(own_catalog: Catalog, folder: Path) -> None:
    model = own_catalog.add(folder)
    assert (model.name, model.kind, model.dimension, model.context_tokens) == ("tiny-bert", "embedder", 32, 32)
    assert (model.licence, model.languages) == ("mit", ("en", "de"))
    assert not list(own_catalog.folder.glob(".add-*"))
    opened = open_embedder(model, threads=1)
    try:
        assert opened.count_tokens("The pumps.") == 4
        assert opened.max_tokens == 30
        assert np.linalg.norm(opened.embed_query("the pump")) == pytest.approx(1, abs=1e-5)
    finally:
        opened.close()


def test_another_weight_type_of_the_same_weights_is_the_same_embedder(own_catalog: Catalog, folder: Path) -> None:
    hashes = set()
    types: tuple[WeightType, ...] = ("F32", "F16", "BF16", "Q8_0")
    vectors = []
    for weight_type in types:
        file = own_catalog.folder / f"{weight_type.lower()}.gguf"
        convert_folder(folder, file, weight_type=weight_type, name="tiny")
        opened = open_embedder(own_catalog.find("embedder", str(file)), threads=1)
        hashes.add(opened.identity.weights_sha256)
        vectors.append(opened.embed_query("the pumps of the screw"))
        opened.close()
    assert len(hashes) == 1
    assert np.min(np.stack(vectors) @ vectors[0]) > 0.99


def test_prompts_of_the_folder_are_put_before_the_text(own_catalog: Catalog, folder: Path) -> None:
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "screw ", "document": "the "}})
    opened = open_embedder(own_catalog.add(folder), threads=1)
    try:
        query, passage = opened.embed_query("pump"), opened.embed_passages(["pump"])[0]
        assert not np.allclose(query, passage)
        assert opened.max_tokens == 29
    finally:
        opened.close()


def change(**changes: object) -> Callable[[Path], None]:
    return lambda folder: write(folder / "config.json", {**CONFIG, **changes})


def cut_weights(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def drop_tensor(folder: Path) -> None:
    save_file({k: v for k, v in weights().items() if "query.bias" not in k}, folder / "model.safetensors")


def spoil_tensor(folder: Path) -> None:
    spoilt = weights()
    spoilt["embeddings.LayerNorm.bias"][3] = np.nan
    save_file(spoilt, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "error", "what"),
    [
        (change(model_type="xlm-roberta"), ModelWrongKind, "xlm-roberta"),
        (change(position_embedding_type="relative_key"), ModelWrongKind, "relative_key"),
        (change(hidden_act="relu"), ModelWrongKind, "relu"),
        (change(hidden_size="wide"), ModelDamaged, "'wide' for 'hidden_size'"),
        (change(intermediate_size=128), ModelDamaged, "has the shape (64, 32), not (128, 32)"),
        (change(vocab_size=500), ModelDamaged, "10 words in the vocabulary"),
        (lambda f: (f / "config.json").write_text("{"), ModelDamaged, "config.json cannot be read"),
        (lambda f: (f / "config.json").unlink(), ModelMissing, "config.json is missing"),
        (lambda f: (f / "model.safetensors").unlink(), ModelMissing, "has no model.safetensors"),
        (lambda f: (f / "vocab.txt").write_bytes(b"\xff\xfe"), ModelDamaged, "not UTF-8"),
        (lambda f: write(f / "tokenizer_config.json", {"do_lower_case": False}), ModelWrongKind, "cased"),
        (lambda f: write(f / "1_Pooling/config.json", {"pooling_mode_max_tokens": True}), ModelWrongKind, "max_tokens"),
        (lambda f: write(f / "modules.json", [{"type": "a.Dense", "path": "2"}]), ModelWrongKind, "'Dense'"),
        (cut_weights, ModelDamaged, "damaged or half copied"),
        (drop_tensor, ModelDamaged, "no tensor 'encoder.layer.0.attention.self.query.bias'"),
        (spoil_tensor, ModelDamaged, "not numbers"),
    ],
)
def test_what_cannot_be_converted_rightly_is_refused_by_name(
    own_catalog: Catalog, folder: Path, spoil: Callable[[Path], object], error: type[ModelError], what: str
) -> None:
    spoil(folder)
    with pytest.raises(error) as caught:
        own_catalog.add(folder)
    assert what in caught.value.message
    assert sorted(p.name for p in own_catalog.folder.iterdir() if not p.name.startswith(".")) == ["manifest.toml"]


def test_the_weight_type_suits_this_processor() -> None:
    assert auto_weight_type() in ("F32", "F16", "BF16")
