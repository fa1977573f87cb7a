"""Models of the BERT family computed by torch, from the weights of the GGUF file: the only importer of torch.

Texts of one job lie behind each other without padding: products go over all of their tokens, attention over each text
alone. So no text is computed with another's, and none is computed for padding. That is about twice as fast as
``SentenceTransformer.encode`` with the same arithmetic, in half of its memory (docs/decisions/035).
Source of the model: Devlin et al. 2018, https://arxiv.org/abs/1810.04805.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgerag.engine.gguf import Header, TensorPlace
from edgerag.errors import EngineUnavailable, ModelDamaged, ModelError, ModelWrongKind

if TYPE_CHECKING:
    from edgerag.engine.passages import Tokens
    from edgerag.types import Vectors

Arithmetic = Literal["bf16", "f32"]

# For products of some hundred tokens; more is no faster and takes more memory.
BATCH_TOKENS = 1024
# oneDNN keeps a compiled kernel for each shape that it has met: token counts are rounded up to few.
_ROUNDED_TO = 128
_TYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_MEAN, _CLS = 1, 2  # llama_pooling_type
_WORD_TABLE = "token_embd.weight"
# A block of Q4_0: a scale and 32 numbers of 4 bits, those of the first half in the low bits.
_BLOCK, _BLOCK_BYTES = 32, 18
_LAYER = ("attn_output", "ffn_up", "ffn_down")


def torch_version() -> str:
    """The version of torch on this machine, or "" when there is none. Imports nothing."""
    if importlib.util.find_spec("torch") is None:
        return ""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def why_not(header: Header) -> str:
    """Why torch cannot compute this model, in a sentence; "" when it can."""
    if header.architecture != "bert":
        return f"Models of the family {header.architecture!r} are left to llama.cpp."
    if header.number("bert.pooling_type", 0) not in (_MEAN, _CLS):
        return "Its pooling is neither mean nor CLS."
    for name in _names(header):
        place = header.tensors.get(name)
        if place is None:
            return f"It has no tensor {name!r}."
        if place.type_name not in _TYPES and (name, place.type_name) != (_WORD_TABLE, "Q4_0"):
            return f"Its weights are {place.type_name}; F32, F16 and BF16 can be used."
    return ""


@dataclass(frozen=True, slots=True)
class _Layer:
    """Products and norms of one layer; each takes a tensor and gives one."""

    qkv: Callable[[Any], Any]
    attention: Callable[[Any], Any]
    attention_norm: Callable[[Any], Any]
    up: Callable[[Any], Any]
    down: Callable[[Any], Any]
    norm: Callable[[Any], Any]


class TorchBert:
    """A worker. Several threads may use one at a time: the weights are shared, and nothing else is kept."""

    def __init__(self, header: Header, *, arithmetic: Arithmetic) -> None:
        """Raises ModelWrongKind for a model that torch cannot compute, EngineUnavailable where torch is not usable,
        ModelDamaged."""
        if reason := why_not(header):
            raise ModelWrongKind(f"{header.path} cannot be computed by torch. {reason}")
        try:
            import torch
        except (ImportError, OSError, RuntimeError) as error:  # what a missing or broken library of it raises
            raise EngineUnavailable(
                f"torch is not usable: {error}.", remedy="Set ingest.embed_with to 'llama.cpp', or install torch again."
            ) from error
        self._torch = torch
        self._header = header
        self._type = torch.bfloat16 if arithmetic == "bf16" else torch.float32
        self._heads = header.number("bert.attention.head_count", 0)
        self._epsilon = header.real("bert.attention.layer_norm_epsilon") or 1e-12
        if not self._heads or header.dimension % self._heads:
            raise ModelDamaged(f"{header.path} claims {self._heads} heads for {header.dimension} dimensions.")
        self._words = self._word_table()
        self._places = self._tensor("position_embd.weight").float() + self._tensor("token_types.weight")[0].float()
        self._first_norm = self._norm("token_embd_norm")
        self._layers = [self._layer(number) for number in range(header.layers)]
        self._is_mean = header.number("bert.pooling_type", 0) == _MEAN

    def use_threads(self, count: int) -> None:
        """Threads of each worker: of threads of the program that compute for the first time after this."""
        self._torch.set_num_threads(count)

    def compute(self, texts: Sequence[Tokens]) -> Vectors:
        """(n, dim) float32 in the order of ``texts``. Raises ModelError when torch fails, mostly for want of memory."""
        try:
            with self._torch.inference_mode():
                vectors: Vectors = self._compute(texts).numpy()
        except (RuntimeError, MemoryError, IndexError) as error:
            raise ModelError(
                f"torch failed to embed {len(texts)} texts with {self._header.path}: {error}.",
                remedy="Set ingest.embed_with to 'llama.cpp'.",
            ) from error
        return vectors

    def _compute(self, texts: Sequence[Tokens]) -> Any:
        torch, functional = self._torch, self._torch.nn.functional
        lengths = [len(text) for text in texts]
        rows = -(-max(1, sum(lengths)) // _ROUNDED_TO) * _ROUNDED_TO
        ids, places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        spans, end = [], 0
        for text, length in zip(texts, lengths, strict=True):
            start, end = end, end + length
            ids[start:end], places[start:end] = text, np.arange(length)
            spans.append((start, end))
        state = self._first_norm(self._words(ids) + self._places[torch.from_numpy(places)])
        dimension = self._header.dimension
        shape = (3, self._heads, dimension // self._heads)
        seen = torch.zeros(rows, dimension, dtype=self._type)
        for layer in self._layers:
            qkv = layer.qkv(state.to(self._type))
            for start, end in spans:
                query, key, value = qkv[start:end].view(1, end - start, *shape).permute(2, 0, 3, 1, 4)
                found = functional.scaled_dot_product_attention(query, key, value)
                seen[start:end] = found.transpose(1, 2).reshape(end - start, dimension)
            state = layer.attention_norm(state + layer.attention(seen))
            inner = functional.gelu(layer.up(state.to(self._type)))
            state = layer.norm(state + layer.down(inner))
        zero = torch.zeros(dimension)  # of a text without a token
        pooled = [self._pool(state[start:end]) if end > start else zero for start, end in spans]
        return torch.stack(pooled) if pooled else torch.zeros(0, dimension)

    def _pool(self, state: Any) -> Any:
        return state.mean(0) if self._is_mean else state[0]

    # ------------------------------------------------------------ weights

    def _layer(self, number: int) -> _Layer:
        name = f"blk.{number}"
        parts = [f"{name}.attn_{part}" for part in ("q", "k", "v")]
        weight = self._torch.cat([self._tensor(f"{part}.weight") for part in parts])
        bias = self._torch.cat([self._tensor(f"{part}.bias") for part in parts])
        attention, up, down = (
            self._linear(self._tensor(f"{name}.{part}.weight"), self._tensor(f"{name}.{part}.bias")) for part in _LAYER
        )
        return _Layer(
            qkv=self._linear(weight, bias),
            attention=attention,
            attention_norm=self._norm(f"{name}.attn_output_norm"),
            up=up,
            down=down,
            norm=self._norm(f"{name}.layer_output_norm"),
        )

    def _linear(self, weight: Any, bias: Any) -> Callable[[Any], Any]:
        linear = self._torch.nn.functional.linear
        own_weight, own_bias = weight.to(self._type).contiguous(), bias.to(self._type)
        return lambda state: linear(state, own_weight, own_bias)

    def _norm(self, name: str) -> Callable[[Any], Any]:
        norm, shape, epsilon = self._torch.nn.functional.layer_norm, (self._header.dimension,), self._epsilon
        weight, bias = self._tensor(f"{name}.weight").float(), self._tensor(f"{name}.bias").float()
        return lambda state: norm(state, shape, weight, bias, epsilon)

    def _word_table(self) -> Callable[[Any], Any]:
        """Gives the vectors of words, (n, dim) float32, by their numbers. A packed table stays packed in memory: of a
        multilingual vocabulary it would take 400 MB."""
        torch, place = self._torch, self._header.tensors[_WORD_TABLE]
        if place.type_name in _TYPES:
            table = self._tensor(_WORD_TABLE)
            return lambda ids: table[torch.from_numpy(ids)].float()
        rows, dimension = place.shape
        packed = np.frombuffer(self._bytes(_WORD_TABLE), np.uint8).reshape(rows, dimension // _BLOCK, _BLOCK_BYTES)

        def unpack(ids: Any) -> Any:
            blocks = packed[ids]
            scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
            numbers = np.concatenate([blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4], axis=2).astype(np.float32) - 8
            return torch.from_numpy((numbers * scales).reshape(len(ids), dimension))

        return unpack

    def _tensor(self, name: str) -> Any:
        place: TensorPlace = self._header.tensors[name]
        data = self._bytes(name)
        return self._torch.frombuffer(data, dtype=getattr(self._torch, _TYPES[place.type_name])).reshape(place.shape)

    def _bytes(self, name: str) -> bytearray:
        place: TensorPlace = self._header.tensors[name]
        try:
            with self._header.path.open("rb") as file:
                file.seek(place.offset)
                data = bytearray(file.read(place.size_bytes))
        except OSError as error:
            raise ModelDamaged(f"{self._header.path} cannot be read: {error.strerror}.") from error
        if len(data) != place.size_bytes:
            raise ModelDamaged(f"{self._header.path} ends inside tensor {name!r}.", remedy="Copy or pull it again.")
        return data


def _names(header: Header) -> list[str]:
    """The tensors of a BERT as llama.cpp calls them."""
    norms = ["token_embd_norm"]
    matrices = []
    for number in range(header.layers):
        norms += [f"blk.{number}.attn_output_norm", f"blk.{number}.layer_output_norm"]
        matrices += [f"blk.{number}.{part}" for part in ("attn_q", "attn_k", "attn_v", *_LAYER)]
    tables = [_WORD_TABLE, "position_embd.weight", "token_types.weight"]
    return tables + [f"{name}.{kind}" for name in norms + matrices for kind in ("weight", "bias")]
