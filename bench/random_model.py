"""Writes a GGUF chat model of any size with random weights: for speed, memory and limits, which do not depend on
what a model has learned.

    python bench/random_model.py FOLDER [--size 7b] [--weights Q4_0] [--vocabulary models/smollm2-135m-instruct.gguf]

The architecture is llama with the shape of that size class; tokenizer and chat template are those of the model
named as ``--vocabulary``. One tensor is in memory at a time. The same size, weights and seed give the same file.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CHECKOUT = Path(__file__).resolve().parent.parent
VOCABULARY = CHECKOUT / "models" / "smollm2-135m-instruct.gguf"
_BLOCK = 32  # weights that share a scale, in both types
_CONTEXT_TOKENS = 8192
_HEADROOM_BYTES = 500_000_000  # of the disk, left free for everybody else
# Of a uniform random value of the type: 16 steps, and 256 steps.
_DEVIATION = {"Q4_0": 4.61, "Q8_0": 73.9}
_BLOCK_BYTES = {"Q4_0": 18, "Q8_0": 34}


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a llama: the published shapes of models of that class, whose vocabulary is replaced by a small one."""

    layers: int
    width: int
    heads: int
    cached_heads: int
    feed_forward: int


SHAPES = {
    "tiny": Shape(layers=2, width=64, heads=4, cached_heads=2, feed_forward=128),  # for tests of what has no speed
    "0.5b": Shape(layers=24, width=896, heads=14, cached_heads=2, feed_forward=4864),
    "1b": Shape(layers=16, width=2048, heads=32, cached_heads=8, feed_forward=8192),
    "3b": Shape(layers=28, width=3072, heads=24, cached_heads=8, feed_forward=8192),
    "7b": Shape(layers=32, width=4096, heads=32, cached_heads=8, feed_forward=14336),
}


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    rows: int
    columns: int  # 1 row of a norm
    gain: float  # of the output over the input; 0: a norm, all ones


def write_model(
    folder: Path, *, size: str, weights: str = "Q4_0", vocabulary: Path = VOCABULARY, seed: int = 0
) -> Path:
    """Writes ``random-<size>-<weights>.gguf`` into ``folder`` and gives its path. Raises OSError when the disk has
    no room for it; then nothing is left behind."""
    shape = SHAPES[size]
    target = folder / f"random-{size}-{weights.lower()}.gguf"
    writer = gguf.GGUFWriter(target, "llama")
    token_count = _copy_vocabulary(writer, vocabulary)
    tensors = list(_tensors(shape, token_count))
    needed = sum(_size_bytes(tensor, weights) for tensor in tensors)
    free = shutil.disk_usage(folder).free
    if needed + _HEADROOM_BYTES > free:
        raise OSError(f"{target} needs {needed / 1e9:.1f} GB, and only {free / 1e9:.1f} GB are free in {folder}")
    _describe(writer, shape, size=size, weights=weights, token_count=token_count)
    raw_type = gguf.GGMLQuantizationType[weights]
    for tensor in tensors:
        if tensor.gain:
            row_bytes = tensor.columns // _BLOCK * _BLOCK_BYTES[weights]
            size_bytes = tensor.rows * row_bytes
            writer.add_tensor_info(tensor.name, (tensor.rows, row_bytes), np.dtype(np.uint8), size_bytes, raw_type)
        else:
            writer.add_tensor_info(tensor.name, (tensor.columns,), np.dtype(np.float32), 4 * tensor.columns)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        random = np.random.default_rng(seed)
        for tensor in tensors:
            writer.write_tensor_data(_data(tensor, weights, random))
        writer.close()
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target


def _copy_vocabulary(writer: gguf.GGUFWriter, file: Path) -> int:
    """Copies everything of the tokenizer, the chat template too; gives the number of tokens."""
    fields = _vocabulary(file)
    for key, (value, kind, inner) in fields.items():
        writer.add_key_value(key, value, kind, sub_type=inner)
    return len(fields["tokenizer.ggml.tokens"][0])


@cache
def _vocabulary(file: Path) -> dict[str, tuple[Any, gguf.GGUFValueType, gguf.GGUFValueType | None]]:
    return {
        key: (field.contents(), field.types[0], field.types[1] if len(field.types) > 1 else None)
        for key, field in gguf.GGUFReader(file).fields.items()
        if key.startswith("tokenizer.")
    }


def _describe(writer: gguf.GGUFWriter, shape: Shape, *, size: str, weights: str, token_count: int) -> None:
    writer.add_name(f"Random {size} {weights}")
    writer.add_license("cc0-1.0")
    writer.add_block_count(shape.layers)
    writer.add_context_length(_CONTEXT_TOKENS)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.cached_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500_000.0)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_vocab_size(token_count)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{weights}"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _tensors(shape: Shape, token_count: int) -> Iterator[_Tensor]:
    """In the order of the file. The output layer is the embedding table, as in most small models."""
    width, cached = shape.width, shape.width // shape.heads * shape.cached_heads
    # Each layer adds to the stream twice; so its size stays that of the embedding whatever the depth.
    adding = 1 / math.sqrt(2 * shape.layers)
    yield _Tensor("token_embd.weight", token_count, width, 1.0)
    yield _Tensor("output_norm.weight", 1, width, 0.0)
    for layer in range(shape.layers):
        for name, rows, columns, gain in (
            ("attn_norm", 1, width, 0.0),
            ("attn_q", width, width, 1.0),
            ("attn_k", cached, width, 1.0),
            ("attn_v", cached, width, 1.0),
            ("attn_output", width, width, adding),
            ("ffn_norm", 1, width, 0.0),
            ("ffn_gate", shape.feed_forward, width, 1.0),
            ("ffn_up", shape.feed_forward, width, 1.0),
            ("ffn_down", width, shape.feed_forward, adding),
        ):
            yield _Tensor(f"blk.{layer}.{name}.weight", rows, columns, gain)


def _size_bytes(tensor: _Tensor, weights: str) -> int:
    return tensor.rows * tensor.columns // _BLOCK * _BLOCK_BYTES[weights] if tensor.gain else 4 * tensor.columns


def _data(tensor: _Tensor, weights: str, random: np.random.Generator) -> np.ndarray[Any, Any]:
    if not tensor.gain:
        return np.ones(tensor.columns, np.float32)
    blocks = np.frombuffer(random.bytes(_size_bytes(tensor, weights)), np.uint8).copy()
    blocks = blocks.reshape(-1, _BLOCK_BYTES[weights])
    # The scale that keeps the size of what comes in; of either sign, because the steps are not symmetric about 0.
    scale = np.float16(tensor.gain / math.sqrt(tensor.columns) / _DEVIATION[weights])
    signs = np.where(blocks[:, 0] & 1, scale, -scale).astype("<f2")
    blocks[:, :2] = signs.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(tensor.rows, -1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SHAPES, default="7b")
    parser.add_argument("--weights", choices=_BLOCK_BYTES, default="Q4_0")
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        file = write_model(
            arguments.folder,
            size=arguments.size,
            weights=arguments.weights,
            vocabulary=arguments.vocabulary,
            seed=arguments.seed,
        )
    except OSError as error:
        print(f"random_model: {error}", file=sys.stderr)
        return 1
    print(file, file.stat().st_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
