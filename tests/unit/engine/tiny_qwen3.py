"""A reranker of Qwen3's form with random weights, written as GGUF, and computed once more in numpy.

Its vocabulary is bytes, so that a text has as many tokens as characters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

WIDTH, INNER, LAYERS, HEADS, HEAD_WIDTH, CONTEXT = 32, 64, 2, 2, 16, 256
EPSILON, ROPE_BASE = 1e-6, 1_000_000.0
CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = "<|im_start|>Is it so?\n<Query>: {query}\n<Document>: {document}<|im_end|>"

Tensors = dict[str, NDArray[np.float32]]


def _byte_tokens() -> list[str]:
    """As GPT-2 writes bytes: printable ones as they are, the others as characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


VOCABULARY = (*_byte_tokens(), *CONTROLS)


def tensors(seed: int = 0) -> Tensors:
    random = np.random.default_rng(seed)

    def values(*shape: int, scale: float = 0.25) -> NDArray[np.float32]:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    def norm(size: int) -> NDArray[np.float32]:
        return 1 + values(size, scale=0.1)

    made: Tensors = {
        "token_embd.weight": values(len(VOCABULARY), WIDTH, scale=1.0),
        "output_norm.weight": norm(WIDTH),
        "cls.output.weight": values(2, WIDTH, scale=0.5),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for part in ("q", "k", "v"):
            made[f"{block}.attn_{part}.weight"] = values(HEADS * HEAD_WIDTH, WIDTH)
        made[f"{block}.attn_output.weight"] = values(WIDTH, HEADS * HEAD_WIDTH)
        made |= {f"{block}.attn_{part}_norm.weight": norm(HEAD_WIDTH) for part in ("q", "k")}
        made |= {f"{block}.{part}_norm.weight": norm(WIDTH) for part in ("attn", "ffn")}
        made |= {f"{block}.ffn_{part}.weight": values(INNER, WIDTH) for part in ("gate", "up")}
        made[f"{block}.ffn_down.weight"] = values(WIDTH, INNER)
    return made


def write_gguf(path: Path, made: Tensors) -> Path:
    writer: Any = gguf.GGUFWriter(path, "qwen3")
    writer.add_type("model")
    writer.add_name(path.stem)
    writer.add_license("cc0-1.0")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HEAD_WIDTH)
    writer.add_value_length(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(list(VOCABULARY))
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(CONTROLS))
    writer.add_token_merges(["Ġ Ġ"])  # llama.cpp wants a list; this one makes no token
    writer.add_eos_token_id(VOCABULARY.index("<|im_end|>"))
    writer.add_pad_token_id(VOCABULARY.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_string("tokenizer.chat_template.rerank", TEMPLATE)
    for name, tensor in made.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tokens(question: str, passage: str) -> list[int]:
    start, end = (VOCABULARY.index(name) for name in CONTROLS[1:])
    text = f"Is it so?\n<Query>: {question}\n<Document>: {passage}"
    return [start, *text.encode(), end]  # a byte has its own number


def reference(made: Tensors, question: str, passage: str) -> float:
    """Log odds of "yes"."""
    weights = {name: tensor.astype(np.float64) for name, tensor in made.items()}
    ids = tokens(question, passage)

    def norm(state: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        scaled = state / np.sqrt((state**2).mean(-1, keepdims=True) + EPSILON)
        turned: NDArray[np.float64] = scaled * weights[f"{name}.weight"]
        return turned

    half = HEAD_WIDTH // 2
    angles = np.arange(len(ids))[:, None] / ROPE_BASE ** (np.arange(half) / half)[None, :]
    cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]

    def rotate(state: NDArray[np.float64]) -> NDArray[np.float64]:
        first, second = state[..., :half], state[..., half:]
        return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)

    state = weights["token_embd.weight"][ids]
    unseen = np.triu(np.full((len(ids), len(ids)), -np.inf), k=1)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        inner = norm(state, f"{block}.attn_norm")
        shape = (len(ids), HEADS, HEAD_WIDTH)
        query, key, value = ((inner @ weights[f"{block}.attn_{p}.weight"].T).reshape(shape) for p in "qkv")
        query, key = rotate(norm(query, f"{block}.attn_q_norm")), rotate(norm(key, f"{block}.attn_k_norm"))
        scores = np.einsum("ihd,jhd->hij", query, key) / np.sqrt(HEAD_WIDTH) + unseen
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", scores, value).reshape(len(ids), -1)
        state = state + seen @ weights[f"{block}.attn_output.weight"].T
        inner = norm(state, f"{block}.ffn_norm")
        gate = inner @ weights[f"{block}.ffn_gate.weight"].T
        up = inner @ weights[f"{block}.ffn_up.weight"].T
        state = state + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{block}.ffn_down.weight"].T
    yes, no = norm(state, "output_norm")[-1] @ weights["cls.output.weight"].T
    return float(yes - no)
