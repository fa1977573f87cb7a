"""A cross-encoder of random weights: small enough for a test, written as GGUF, and computed once more in numpy."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

WORDS = ("pump", "lid", "torque", "moon", "cheese", "made", "of", "is", "the", "what", "a", "b", "x", "12", "nm")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"▁{word}" for word in WORDS), "s", "es")
HIDDEN, INNER, LAYERS, HEADS, POSITIONS = 32, 64, 2, 2, 64
EPSILON = 1e-12

Tensors = dict[str, NDArray[np.float32]]


def tensors(*, classes: int = 1, seed: int = 0, pooler: bool = True) -> Tensors:
    random = np.random.default_rng(seed)

    def values(*shape: int, scale: float = 0.3) -> NDArray[np.float32]:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    made: Tensors = {
        "token_embd.weight": values(len(VOCABULARY), HIDDEN, scale=1.0),
        "position_embd.weight": values(POSITIONS, HIDDEN),
        "token_types.weight": values(2, HIDDEN, scale=1.0),
        "cls.output.weight": values(classes, HIDDEN, scale=1.0),
        "cls.output.bias": values(classes),
    }
    if pooler:
        made |= {"cls.weight": values(HIDDEN, HIDDEN), "cls.bias": values(HIDDEN)}
    norms = ["token_embd_norm"]
    for layer in range(LAYERS):
        norms += [f"blk.{layer}.attn_output_norm", f"blk.{layer}.layer_output_norm"]
        for name, rows, columns in (
            *((f"attn_{part}", HIDDEN, HIDDEN) for part in ("q", "k", "v", "output")),
            *(("ffn_up", INNER, HIDDEN), ("ffn_down", HIDDEN, INNER)),
        ):
            made[f"blk.{layer}.{name}.weight"] = values(rows, columns)
            made[f"blk.{layer}.{name}.bias"] = values(rows)
    for name in norms:
        made[f"{name}.weight"], made[f"{name}.bias"] = 1 + values(HIDDEN, scale=0.1), values(HIDDEN, scale=0.1)
    return made


def write_gguf(path: Path, made: Tensors, *, pooling: bool = True, words_as: str = "F32", **texts: str) -> Path:
    """``words_as``: the type of the table of words. ``texts`` by their names with ``__`` for dots."""
    writer: Any = gguf.GGUFWriter(path, "bert")
    writer.add_type("model")
    writer.add_name(path.stem)
    writer.add_license("mit")
    writer.add_context_length(POSITIONS)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    if pooling:
        writer.add_pooling_type(gguf.PoolingType.RANK)
    classes = len(made["cls.output.weight"])
    if classes > 1:
        writer.add_classifier_output_labels([f"class {number}" for number in range(classes)])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(list(VOCABULARY))
    kinds = [gguf.TokenType.NORMAL] * len(VOCABULARY)
    kinds[:5] = [gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 3]
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_sep_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_unk_token_id(1)
    for key, text in texts.items():
        writer.add_string(key.replace("__", "."), text)
    for name, tensor in made.items():
        if name == "token_embd.weight" and words_as != "F32":
            kind = gguf.GGMLQuantizationType[words_as]
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tokens(text: str) -> list[int]:
    """Of words that are in the vocabulary whole; others are unknown."""
    return [VOCABULARY.index(f"▁{word}") if f"▁{word}" in VOCABULARY else 1 for word in text.split()]


def reference(made: Tensors, question: str, passage: str) -> NDArray[np.float64]:
    """What transformers' BertForSequenceClassification gives for the pair, (classes,)."""
    asked, read = tokens(question), tokens(passage)
    return forward(made, [2, *asked, 3, *read, 3], [0] * (len(asked) + 2) + [1] * (len(read) + 1))


def forward(made: Tensors, ids: Sequence[int], segments: Sequence[int]) -> NDArray[np.float64]:
    weights = {name: tensor.astype(np.float64) for name, tensor in made.items()}

    def norm(state: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        mean, variance = state.mean(-1, keepdims=True), state.var(-1, keepdims=True)
        scaled = (state - mean) / np.sqrt(variance + EPSILON)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(state: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return state @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    state = weights["token_embd.weight"][list(ids)] + weights["token_types.weight"][list(segments)]
    state = norm(state + weights["position_embd.weight"][: len(ids)], "token_embd_norm")
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        shape = (len(ids), HEADS, HIDDEN // HEADS)
        query, key, value = (linear(state, f"{block}.attn_{part}").reshape(shape) for part in "qkv")
        scores = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(HIDDEN // HEADS)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", scores, value).reshape(len(ids), HIDDEN)
        state = norm(state + linear(seen, f"{block}.attn_output"), f"{block}.attn_output_norm")
        inner = linear(state, f"{block}.ffn_up")
        inner = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        state = norm(state + linear(inner, f"{block}.ffn_down"), f"{block}.layer_output_norm")
    pooled = state[0]
    if "cls.weight" in weights:
        pooled = np.tanh(linear(pooled, "cls"))
    return linear(pooled, "cls.output")


def write_folder(path: Path, made: Tensors, *, labels: Sequence[str] = ("LABEL_0",)) -> Path:
    """As transformers saves a cross-encoder."""
    path.mkdir()
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": POSITIONS,
        "vocab_size": len(VOCABULARY),
        "type_vocab_size": 2,
        "layer_norm_eps": EPSILON,
        "id2label": {str(number): label for number, label in enumerate(labels)},
    }
    (path / "config.json").write_text(json.dumps(config))
    words = [word[1:] if word[0] == "▁" else word if word[0] == "[" else f"##{word}" for word in VOCABULARY]
    (path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (path / "README.md").write_text("---\nlicense: apache-2.0\nlanguage:\n- en\n---\n# Tiny\n")
    save_file({_NAMES.sub(_original, name): tensor for name, tensor in made.items()}, path / "model.safetensors")
    return path


_ORIGINALS = {
    "token_embd": "bert.embeddings.word_embeddings",
    "position_embd": "bert.embeddings.position_embeddings",
    "token_types": "bert.embeddings.token_type_embeddings",
    "token_embd_norm": "bert.embeddings.LayerNorm",
    "cls": "bert.pooler.dense",
    "cls.output": "classifier",
}
_LAYER_ORIGINALS = {
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
    "layer_output_norm": "output.LayerNorm",
}
_NAMES = re.compile(r"(?:blk\.(\d+)\.)?([a-z_.]+)(?=\.(?:weight|bias)$)")


def _original(match: re.Match[str]) -> str:
    if match[1] is None:
        return _ORIGINALS[match[2]]
    return f"bert.encoder.layer.{match[1]}.{_LAYER_ORIGINALS[match[2]]}"
