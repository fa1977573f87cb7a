"""What a GGUF file says about itself, read without llama.cpp and without trusting a byte of it.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian).
Big arrays (vocabularies) are skipped. Every count is compared with the size of the file before
anything is allocated or looped over, so that a damaged file costs no more than reading it once;
whatever is wrong with it becomes ModelDamaged.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from edgerag.errors import ModelDamaged, ModelMissing, ModelWrongKind
from edgerag.types import ModelKind

Value = int | float | bool | str | tuple["Value", ...]

_MAGIC = b"GGUF"
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_SCALAR = {number: struct.Struct(code) for number, code in _SCALARS.items()}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")

_KEPT_ARRAY = 1024  # longer arrays (vocabulary, merges) are skipped: nobody here reads them
_MOST_ELEMENTS = 4_000_000  # of one array of strings; the largest vocabularies have 300,000
_MOST_ENTRIES = 65_536  # keys, and tensors; the largest models have a few thousand
_MOST_LAYERS = 512  # LLAMA_MAX_LAYERS of llama.cpp
_LONGEST_KEY = 65_535  # by the format
_READ_BYTES = 1 << 20
_VOCABULARY = repr("tokenizer.ggml.tokens")

# ggml type -> (name, elements per block, bytes per block). Source: ggml.c, type_traits.
_TENSOR_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip

_EMBEDDER_ARCHITECTURES = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"}
    | {"modern-bert", "neo-bert", "eurobert", "gemma-embedding"}
)
_NOT_GENERATORS = frozenset({"t5encoder", "clip", "wavtokenizer-dec"})
_POOLING_RANK = 4
_CLASSIFIER = "cls.output.weight"  # the last layer of what judges a question and a passage


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where the values of one tensor lie in the file."""

    type_name: str
    shape: tuple[int, ...]  # outermost first, as numpy has it
    offset: int  # from the beginning of the file
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a whole GGUF file: its length has been compared with what the tensors need."""

    path: Path
    size_bytes: int
    metadata: Mapping[str, Value]
    parameter_count: int
    weight_type: str  # of the type that most weights have: "Q8_0"
    vocabulary_size: int = 0  # 0: it has no vocabulary
    # Of the weights, in bytes: the table of token vectors where another one gives the output (of it one row is
    # read per token), and the experts (of which each token passes through a few).
    table_bytes: int = 0
    expert_bytes: int = 0
    tensors: Mapping[str, TensorPlace] = field(default_factory=dict)

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def kind(self) -> ModelKind:
        """Raises ModelWrongKind for what is none of them (adapters, projectors)."""
        what = self.text("general.type", "model")
        if what != "model" or self.architecture in _NOT_GENERATORS:
            name = what if what != "model" else self.architecture
            raise ModelWrongKind(
                f"{self.path} is a GGUF of type {name!r}, neither a chat model nor an embedder nor a reranker."
            )
        pooling = self.number(f"{self.architecture}.pooling_type", 0)
        if pooling == _POOLING_RANK or _CLASSIFIER in self.tensors:
            return "reranker"
        return "embedder" if pooling or self.architecture in _EMBEDDER_ARCHITECTURES else "chat"

    @property
    def context_tokens(self) -> int:
        """The context it was trained for; for an embedder the longest text, special tokens included."""
        trained = self.number(f"{self.architecture}.context_length", 0)
        limit = self.number("edgerag.max_tokens", 0)
        return min(trained, limit) if trained and limit else trained or limit

    @property
    def dimension(self) -> int:
        return self.number(f"{self.architecture}.embedding_length", 0)

    @property
    def layers(self) -> int:
        """Raises ModelDamaged when there are more than llama.cpp can hold."""
        count = self.number(f"{self.architecture}.block_count", 0)
        if count > _MOST_LAYERS:
            raise ModelDamaged(f"{self.path} claims {count:,} layers; llama.cpp takes {_MOST_LAYERS} at most.")
        return count

    @property
    def chat_template(self) -> str:
        """Jinja source, or "" when the file has none."""
        return self.text("tokenizer.chat_template", "")

    @property
    def licence(self) -> str:
        return self.text("general.license", "")

    @property
    def languages(self) -> tuple[str, ...]:
        found = self.metadata.get("general.languages", ())
        return tuple(code for code in found if isinstance(code, str)) if isinstance(found, tuple) else ()

    def text(self, key: str, default: str | None = None) -> str:
        value = self.metadata.get(key, default)
        if not isinstance(value, str):
            raise ModelDamaged(f"{self.path} has no text for {key!r} in its header.")
        return value

    def number(self, key: str, default: int) -> int:
        """A whole number; the largest one where the file gives one per layer."""
        value = self.metadata.get(key, default)
        if isinstance(value, tuple):
            value = max((v for v in value if isinstance(v, int)), default=default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ModelDamaged(f"{self.path} has no whole number for {key!r} in its header but {value!r}.")
        return value

    def per_layer(self, key: str, default: int) -> tuple[int, ...]:
        """A whole number for each layer, whether the file gives one for all or one for each. Raises ModelDamaged
        when it gives them for another number of layers."""
        value = self.metadata.get(key, default)
        if not isinstance(value, tuple):
            return (self.number(key, default),) * self.layers
        numbers = tuple(int(v) for v in value if isinstance(v, int) and v >= 0)
        if len(numbers) != len(value) or len(numbers) != self.layers:
            raise ModelDamaged(
                f"{self.path} has {len(value)} values for {key!r} in its header, not a whole number for each of its "
                f"{self.layers} layers."
            )
        return numbers

    def real(self, key: str) -> float | None:
        """A finite number, or None where the file has none."""
        value = self.metadata.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ModelDamaged(f"{self.path} has no number for {key!r} in its header but {value!r}.")
        return float(value)


def read_header(path: Path) -> Header:
    """Reads and checks the header of ``path``. Raises ModelMissing or ModelDamaged."""
    try:
        with path.open("rb") as file:
            size_bytes = path.stat().st_size
            return _read(_Cursor(path, file, size_bytes))
    except FileNotFoundError as error:
        raise ModelMissing(f"There is no model file {path}.") from error
    except OSError as error:
        raise ModelDamaged(f"Model file {path} cannot be read: {error.strerror}.") from error


class _Cursor:
    """Reads forward through a file of known size, a piece at a time, and never past its end."""

    def __init__(self, path: Path, file: BinaryIO, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.position = 0
        self.vocabulary_size = 0
        self._file = file
        self._data = b""
        self._start = 0  # where in the file ``_data`` begins

    def damaged(self, what: str) -> ModelDamaged:
        return ModelDamaged(
            f"Model file {self.path} ({self.size_bytes:,} bytes) is damaged or half copied: {what}.",
            remedy="Copy or pull it again.",
        )

    def check_room(self, length: int, what: str) -> None:
        if length > self.size_bytes - self.position:
            raise self.damaged(f"it ends inside {what}")

    def take(self, length: int, what: str) -> bytes:
        self.check_room(length, what)
        if self.position + length > self._start + len(self._data) or self.position < self._start:
            self._file.seek(self.position)
            self._start = self.position
            self._data = self._file.read(max(length, _READ_BYTES))
            if len(self._data) < length:
                raise self.damaged(f"it ends inside {what}")
        begin = self.position - self._start
        self.position += length
        return self._data[begin : begin + length]

    def skip(self, length: int, what: str) -> None:
        self.check_room(length, what)
        self.position += length

    def scalar(self, number: int, what: str) -> int | float | bool:
        layout = _SCALAR.get(number)
        if layout is None:
            raise self.damaged(f"{what} has the unknown type {number}")
        value: int | float | bool = layout.unpack(self.take(layout.size, what))[0]
        return value

    def count(self, what: str, *, code: int = 10) -> int:
        return int(self.scalar(code, what))

    def string(self, what: str) -> str:
        return self.take(self.count(what), what).decode("utf-8", "replace")

    def skip_strings(self, count: int, what: str) -> None:
        """The hot loop: a vocabulary has 30,000 to 300,000 of them."""
        unpack, position = _LENGTH.unpack_from, self.position
        data, start = self._data, self._start
        for _ in range(count):
            offset = position - start
            if offset < 0 or offset + 8 > len(data):
                self.position = position
                self.take(8, what)
                data, start, offset = self._data, self._start, position - self._start
            position += 8 + unpack(data, offset)[0]
            if position > self.size_bytes:
                raise self.damaged(f"it ends inside {what}")
        self.position = position


def _read(cursor: _Cursor) -> Header:
    if cursor.size_bytes == 0:
        raise cursor.damaged("it is empty")
    if cursor.size_bytes < 24 or cursor.take(4, "its magic") != _MAGIC:
        raise ModelDamaged(f"{cursor.path} ({cursor.size_bytes:,} bytes) is not a GGUF file.")
    version = cursor.count("its version", code=4)
    if version not in (2, 3):
        raise ModelDamaged(
            f"{cursor.path} is GGUF version {version:#x}; versions 2 and 3 (little endian) can be read.",
            remedy="Convert it with a current llama.cpp.",
        )
    tensor_count, entry_count = cursor.count("the header"), cursor.count("the header")
    if tensor_count > _MOST_ENTRIES or entry_count > _MOST_ENTRIES:
        raise cursor.damaged(f"it claims {tensor_count} tensors and {entry_count} keys")
    metadata: dict[str, Value] = {}
    for _ in range(entry_count):
        key = _key(cursor, "a key")
        if key in metadata:
            raise cursor.damaged(f"the key {key[:80]!r} comes twice")
        metadata[key] = _value(cursor, repr(key[:80]))
    weights = _tensors(cursor, tensor_count)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 65_536:
        raise cursor.damaged(f"its alignment is {alignment!r}")
    begin = math.ceil(cursor.position / alignment) * alignment
    needed = begin + weights.end
    if cursor.size_bytes < needed:
        raise ModelDamaged(
            f"Model file {cursor.path} is half copied or cut short: it has {cursor.size_bytes:,} bytes "
            f"and must have {needed:,}.",
            remedy="Copy or pull it again.",
        )
    _refuse_parts(cursor, metadata)
    header = Header(
        path=cursor.path,
        size_bytes=cursor.size_bytes,
        metadata=metadata,
        parameter_count=weights.parameter_count,
        weight_type=max(weights.by_type, key=lambda name: weights.by_type[name], default=""),
        vocabulary_size=cursor.vocabulary_size,
        table_bytes=weights.table_bytes if weights.has_output else 0,
        expert_bytes=weights.expert_bytes,
        tensors={name: replace(place, offset=begin + place.offset) for name, place in weights.places.items()},
    )
    if not header.architecture.isprintable() or not tensor_count:
        raise cursor.damaged("it has no architecture or no weights")
    return header


def _key(cursor: _Cursor, what: str) -> str:
    length = cursor.count(what)
    if length > _LONGEST_KEY:
        raise cursor.damaged(f"{what} claims {length:,} bytes")
    return cursor.take(length, what).decode("utf-8", "replace")


def _value(cursor: _Cursor, what: str) -> Value:
    number = cursor.count(what, code=4)
    if number == _STRING:
        return cursor.string(what)
    if number != _ARRAY:
        return cursor.scalar(number, what)
    element, count = cursor.count(what, code=4), cursor.count(what)
    if what == _VOCABULARY:
        cursor.vocabulary_size = count
    if element == _STRING:
        cursor.check_room(count * _LENGTH.size, what)
        if count > _MOST_ELEMENTS:
            raise cursor.damaged(f"{what} claims {count:,} texts")
        if count <= _KEPT_ARRAY:
            return tuple(cursor.string(what) for _ in range(count))
        cursor.skip_strings(count, what)
        return ()
    if element not in _SCALAR:
        raise cursor.damaged(f"{what} is an array of the unknown type {element}")
    if count <= _KEPT_ARRAY:
        return tuple(cursor.scalar(element, what) for _ in range(count))
    cursor.skip(count * _SCALAR[element].size, what)
    return ()


@dataclass(slots=True)
class _Weights:
    """What the tensors add up to, in bytes."""

    by_type: dict[str, int]
    places: dict[str, TensorPlace]  # counted from the beginning of the data part
    parameter_count: int = 0
    end: int = 0  # of the last tensor, in the data part
    table_bytes: int = 0
    expert_bytes: int = 0
    has_output: bool = False


def _tensors(cursor: _Cursor, count: int) -> _Weights:
    weights = _Weights(by_type={}, places={})
    for _ in range(count):
        name = _key(cursor, "a tensor name")
        what = f"tensor {name[:80]!r}"
        rank = cursor.count(what, code=4)
        if not 0 < rank <= 4:
            raise cursor.damaged(f"{what} has {rank} dimensions")
        shape = [cursor.count(what) for _ in range(rank)]
        number, offset = cursor.count(what, code=4), cursor.count(what)
        if number not in _TENSOR_TYPES:
            raise ModelDamaged(
                f"Model file {cursor.path} holds weights of the unknown type {number} ({what}).",
                remedy="It is damaged, or made for a newer llama.cpp.",
            )
        type_name, block, block_bytes = _TENSOR_TYPES[number]
        elements = math.prod(shape)
        if elements == 0 or shape[0] % block:
            raise cursor.damaged(f"{what} of type {type_name} has the shape {shape}")
        size = elements // block * block_bytes
        weights.places[name] = TensorPlace(type_name, tuple(reversed(shape)), offset, size)
        weights.by_type[type_name] = weights.by_type.get(type_name, 0) + size
        weights.parameter_count += elements
        weights.end = max(weights.end, offset + size)
        weights.has_output |= name == "output.weight"
        if name == "token_embd.weight":
            weights.table_bytes = size
        elif "_exps." in name:
            weights.expert_bytes += size
    return weights


def _refuse_parts(cursor: _Cursor, metadata: Mapping[str, Value]) -> None:
    parts = metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise ModelWrongKind(
            f"{cursor.path} is one of {parts} parts of a model.",
            remedy="Join them: llama-gguf-split --merge FIRST-PART WHOLE.gguf",
        )
