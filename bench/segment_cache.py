"""Segments of the vector sets, written by the product's own code and kept as long as that code stays the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np
from record import CHECKOUT
from vector_sets import cache_folders, hnswlib_file

from edgerag.index.hnsw.write import write_segment
from edgerag.measure.index import IndexFiles, graph_of, small_files
from edgerag.measure.searchers import identity_of
from edgerag.measure.sets import VectorSet

_WRITERS = CHECKOUT / "edgerag" / "index" / "hnsw"


def index_files(data: VectorSet) -> IndexFiles:
    """The set as a segment and as hnswlib's file, made where they are missing."""
    folder = cache_folders()[0]
    segment, hnswlib = segment_file(data), hnswlib_file(data)
    return IndexFiles(segment, hnswlib, *small_files(folder, data))


def segment_file(data: VectorSet, *, order: Literal["local", "given"] = "local") -> Path:
    """The segment of the set, with its rows in that order; "local" is what a library writes."""
    name = f"{data.name}.{order}"
    file = cache_folders()[0] / f"{name}.{_code_hash()}.segment"
    if not file.exists():
        for stale in file.parent.glob(f"{name}.*.segment"):
            stale.unlink()
        partial = file.with_suffix(".part")
        write_segment(
            partial,
            labels=np.arange(len(data.base), dtype=np.int64),
            vectors=data.base,
            graph=graph_of(hnswlib_file(data), data),
            identity=identity_of(data.base.shape[1]),
            order=order,
        )
        partial.rename(file)
    return file


def _code_hash() -> str:
    """Of every source that what a segment holds may depend on."""
    digest = hashlib.sha256()
    for source in sorted([*_WRITERS.glob("*.py"), *_WRITERS.glob("*.[ch]")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
