"""The vector sets that the index is measured on, made once and kept as .npy files.

``c200k``, ``c1m``: clustered unit vectors, 384 dimensions, one centre per 100, queries of the same mixture.
``text100k``: over 100,000 sentences of real text under the static distillation of the default embedder
(:mod:`static_embedder`), queries are sentences that were held out. ``real100k``: the same sentences under the model
itself, twenty minutes of one core; ``real20k``: 20,000 of them and 500 queries. The distillation is the harder set:
at equal size it needs twice the ef of the model's own vectors, which spread over more directions.

    python bench/vector_sets.py NAME... [--graph]      makes them; --graph also builds hnswlib's index of each

Files: ``<name>.base.npy`` (n, dim) float32, ``.q.npy`` (queries, dim) float32, ``.gt.npy`` (queries, 10) int64 exact
best first, ``.hnsw`` hnswlib's file (M = 16, efConstruction = 200).
EDGERAG_BENCH_CACHE names the folders to look in, separated like a PATH; what is missing is made in the first.
Default: bench/.cache. The texts come from EDGERAG_BENCH_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from datasets import data_folder
from numpy.typing import NDArray
from passages import all_sentences
from record import CHECKOUT
from static_embedder import distil, piece_vectors

from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import open_embedder
from edgerag.engine.wordpiece import WordPiece
from edgerag.index.hnsw.build import GraphSettings
from edgerag.measure.hnswlib_peer import build_file
from edgerag.measure.sets import VectorSet, clustered, exact_truth

if TYPE_CHECKING:
    from edgerag.types import Vectors

NAMES = ("c200k", "c1m", "text100k", "real20k", "real100k")
_CLUSTERED_ROWS = {"c200k": 200_000, "c1m": 1_000_000}
_DIMENSION = 384
_HELD_OUT = 1_000
_REAL = {"real20k": (20_000, 500), "real100k": (10**9, _HELD_OUT)}  # indexed and held-out sentences, at most
# A held-out sentence that is this close to an indexed one is the same sentence in another spelling.
_NEAR_DUPLICATE = 0.95
_UNKNOWN_SHARE = 0.2  # of the pieces; a sentence with more is not in a script of this vocabulary


def vector_set(name: str) -> VectorSet:
    """The set of that name, made if it is not there yet. Exits with a sentence for an unknown name."""
    if name in _CLUSTERED_ROWS:
        return _kept(name) or clustered_kept(name, _CLUSTERED_ROWS[name])
    if name == "text100k":
        return text_set()
    if name in _REAL:
        return real_set(name, *_REAL[name])
    raise SystemExit(f"Unknown vector set {name!r}. Known: {', '.join(NAMES)}.")


def clustered_kept(name: str, rows: int) -> VectorSet:
    base, queries = clustered(rows, dimension=_DIMENSION, queries=2_000, seed=1)
    return _keep(name, base, queries)


def text_set() -> VectorSet:
    if kept := _kept("text100k"):
        return kept
    texts = all_sentences(data_folder(None))
    pieces, word_piece = _pieces()
    texts = [texts[row] for row in readable([word_piece.encode(text) for text in texts], word_piece.unknown)]
    embedder = distil(pieces, word_piece, texts)
    vectors = embedder.embed(texts)
    indexed, held_out = split(vectors, held_out=_HELD_OUT, seed=1)
    _write_text("text100k.texts.json", [texts[row] for row in indexed])
    _write_text("text100k.queries.json", [texts[row] for row in held_out])
    return _keep("text100k", vectors[indexed], vectors[held_out])


def real_set(name: str, rows: int, queries: int) -> VectorSet:
    """Sentences of ``text100k`` under the model itself: about 100 a second on one core."""
    if kept := _kept(name):
        return kept
    base_texts, query_texts = text_passages()
    picked = np.sort(np.random.default_rng(2).permutation(len(base_texts))[:rows])
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    embedder = open_embedder(catalog.find("embedder"), threads=1)
    try:
        base = embedder.embed_passages([base_texts[row] for row in picked])
        asked = np.stack([embedder.embed_query(text) for text in query_texts[:queries]])
    finally:
        embedder.close()
    return _keep(name, base, asked)


def text_passages() -> tuple[list[str], list[str]]:
    """The indexed and the held-out sentences, in the order of the rows of ``text100k``."""
    text_set()
    base, queries = (
        json.loads(cached(f"text100k.{part}.json").read_text(encoding="utf-8")) for part in ("texts", "queries")
    )
    return base, queries


def readable(encoded: list[list[int]], unknown: int) -> list[int]:
    """Rows of texts that the vocabulary can read, and whose bag of pieces was not seen before."""
    bags: dict[tuple[int, ...], int] = {}
    for row, text in enumerate(encoded):
        if text and text.count(unknown) <= _UNKNOWN_SHARE * len(text):
            bags.setdefault(tuple(sorted(text)), row)
    return list(bags.values())


def split(vectors: Vectors, *, held_out: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(indexed rows, held-out rows): random ones, none a near-duplicate of what is indexed.

    Candidates are twice as many as asked for; those that are not used are left out of both.
    Raises ValueError when too many are near-duplicates.
    """
    shuffled = np.random.default_rng(seed).permutation(len(vectors)).astype(np.int64)
    candidates, indexed = shuffled[: 2 * held_out], np.sort(shuffled[2 * held_out :])
    closest = exact_truth(vectors[indexed], vectors[candidates], k=1)[:, 0]
    similarity = np.einsum("ij,ij->i", vectors[indexed][closest], vectors[candidates])
    kept = candidates[similarity < _NEAR_DUPLICATE][:held_out]
    if len(kept) < held_out:
        raise ValueError(f"only {len(kept)} of {held_out} held-out rows are not near-duplicates")
    return indexed, kept


def hnswlib_file(data: VectorSet) -> Path:
    """hnswlib's saved index of the set, labelled by row; built if it is not there.

    Two threads build twice as fast as one; the graph then depends on their timing, which is why it is kept.
    """
    file = cached(f"{data.name}.hnsw")
    if not file.exists():
        partial = file.with_suffix(".part")
        build_file(partial, np.asarray(data.base), settings=GraphSettings(threads=2))
        partial.rename(file)
    return file


def cache_folders() -> list[Path]:
    """Where sets are looked for, the first being where they are made."""
    named = [Path(name) for name in os.environ.get("EDGERAG_BENCH_CACHE", "").split(os.pathsep) if name]
    return named or [CHECKOUT / "bench" / ".cache"]


def cached(file_name: str) -> Path:
    """The first folder's file of that name that exists; else where it is to be made."""
    folders = cache_folders()
    return next((folder / file_name for folder in folders if (folder / file_name).exists()), folders[0] / file_name)


def _pieces() -> tuple[Vectors, WordPiece]:
    """The vectors of the vocabulary of the default embedder, kept by the hash of its weights."""
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    model = catalog.find("embedder")
    name = f"pieces-{model.weights_sha256[:12]}"
    vectors_file, vocabulary_file = cached(f"{name}.npy"), cached(f"{name}.json")
    if not (vectors_file.exists() and vocabulary_file.exists()):
        vectors, vocabulary = piece_vectors(model.path, threads=1)
        _save(f"{name}.npy", vectors)
        _write_text(f"{name}.json", vocabulary)
    vocabulary = json.loads(cached(f"{name}.json").read_text(encoding="utf-8"))
    return np.load(cached(f"{name}.npy")), WordPiece(vocabulary)


def _kept(name: str) -> VectorSet | None:
    files = [cached(f"{name}.{part}.npy") for part in ("base", "q", "gt")]
    if not all(file.exists() for file in files):
        return None
    return VectorSet(name, np.load(files[0], mmap_mode="r"), np.load(files[1]), np.load(files[2]))


def _keep(name: str, base: Vectors, queries: Vectors) -> VectorSet:
    _save(f"{name}.base.npy", base)
    _save(f"{name}.q.npy", queries)
    _save(f"{name}.gt.npy", exact_truth(base, queries))
    kept = _kept(name)
    assert kept is not None
    return kept


def _save(file_name: str, array: NDArray[np.float32] | NDArray[np.int64]) -> None:
    """Whole or not at all, so that a stopped run leaves nothing that looks finished."""
    target = cache_folders()[0] / file_name
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part.npy")
    np.save(partial, array)
    partial.rename(target)


def _write_text(file_name: str, texts: list[str]) -> None:
    target = cache_folders()[0] / file_name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the vector sets that the index is measured on.")
    parser.add_argument("names", nargs="+", choices=NAMES)
    parser.add_argument("--graph", action="store_true", help="also build hnswlib's index of each")
    arguments = parser.parse_args()
    for name in arguments.names:
        started = time.perf_counter()
        data = vector_set(name)
        if arguments.graph:
            hnswlib_file(data)
        print(f"{name}: {data.base.shape}, {len(data.queries)} queries, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
