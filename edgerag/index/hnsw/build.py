"""Builds an HNSW graph with hnswlib and takes it over; the only module that knows hnswlib.

hnswlib is the builder, never the searcher: its saved file (no magic, no checksum, saving to a full disk
raises nothing) is written once to a temporary name, checked in every number that is used, exported into
:class:`~edgerag.index.hnsw.graph.Graph` and deleted. Same vectors in the same order give the same graph on
one thread, with a fixed seed. Nodes that the walk could not reach are linked.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hnswlib
import numpy as np
from numpy.typing import NDArray

from edgerag.errors import LibraryError, StorageFull
from edgerag.index.hnsw.graph import Graph, reordered
from edgerag.index.hnsw.repair import link_unreachable

if TYPE_CHECKING:
    from edgerag.types import Vectors

# hnswlib's level generator; any number, as long as it stays the same.
_SEED = 100
# offsetLevel0, max_elements, cur_element_count, size_data_per_element, label_offset, offsetData, maxlevel,
# enterpoint, maxM, maxM0, M, mult, ef_construction (hnswlib 0.8.0, hnswalg.h saveIndex).
_HEADER = struct.Struct("<6QiI3QdQ")
# Rows added between two looks at the user's wish to stop: half a second's work.
_SLICE_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """What a graph is built with."""

    m: int = 16
    ef_construction: int = 200
    threads: int = 1  # with more, the graph differs from run to run


class BuildCancelled(Exception):
    """The user asked to stop; nothing was made."""


def exercise() -> None:
    """A small graph is built and asked, so that a build of hnswlib for another processor ends whoever tries it."""
    vectors = np.eye(64, dtype=np.float32)  # wide enough for its widest loops
    index = hnswlib.Index(space="ip", dim=64)
    index.init_index(max_elements=64, M=16, ef_construction=100, random_seed=_SEED)
    index.add_items(vectors, np.arange(64), num_threads=1)
    index.knn_query(vectors, k=4, num_threads=1)


def build_graph(
    vectors: Vectors,
    *,
    scratch: Path | None,
    settings: GraphSettings,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Graph:
    """The HNSW graph of ``vectors`` (n, dim), unit rows, n >= 1; ``scratch`` is a file name to use meanwhile,
    None where nothing may lie in a file: then it is a file in memory (memfd_create).

    ``progress`` is told rows done and rows in all. Raises BuildCancelled, and StorageFull when hnswlib's
    file could not be written whole.
    """
    count, dimension = vectors.shape
    index = hnswlib.Index(space="ip", dim=dimension)
    index.init_index(max_elements=count, M=settings.m, ef_construction=settings.ef_construction, random_seed=_SEED)
    for start in range(0, count, _SLICE_ROWS):
        if cancelled is not None and cancelled():
            raise BuildCancelled
        end = min(start + _SLICE_ROWS, count)
        index.add_items(vectors[start:end], np.arange(start, end), num_threads=settings.threads)
        if progress is not None:
            progress(end, count)
    with _scratch_file(scratch) as file:
        try:
            index.save_index(str(file))
        except RuntimeError as error:
            raise _unwritten(file, str(error)) from error
        del index  # the graph twice in memory is enough
        graph = read_graph(file, count=count, dimension=dimension, settings=settings)
    return link_unreachable(graph, vectors)


@contextlib.contextmanager
def _scratch_file(scratch: Path | None) -> Iterator[Path]:
    if scratch is not None:
        try:
            os.close(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise _unwritten(scratch, error.strerror or str(error)) from error
        try:
            yield scratch
        finally:
            scratch.unlink(missing_ok=True)
        return
    if not hasattr(os, "memfd_create"):
        raise LibraryError(
            "This system has no files in memory, without which no index of an encrypted library can be built.",
            remedy="Build it on Linux; it can be read and asked here.",
        )
    descriptor = os.memfd_create("edgerag-graph", os.MFD_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def read_graph(file: Path, *, count: int, dimension: int, settings: GraphSettings) -> Graph:
    """The graph in a file that hnswlib saved, its rows in the order of their labels 0 to ``count`` - 1.

    Every number is checked. Raises StorageFull for a file that was not written whole.
    """
    if not file.is_file():
        raise _unwritten(file, "it was not written")
    size = file.stat().st_size
    if size < _HEADER.size:
        raise _unwritten(file, f"it has {size} bytes")
    raw = np.memmap(file, dtype=np.uint8, mode="r")
    _, _, rows, row_bytes, label_offset, data_offset, max_level, entry, _, m0, m, _, _ = _HEADER.unpack(
        raw[: _HEADER.size].tobytes()
    )
    expected = (count, 4 + 4 * m0 + 4 * dimension + 8, row_bytes - 8, 4 + 4 * m0, settings.m, 2 * settings.m)
    if (rows, row_bytes, label_offset, data_offset, m, m0) != expected or not 0 <= entry < count:
        raise _unwritten(file, "its header is not what was built")
    level0_end = _HEADER.size + count * row_bytes
    if size < level0_end + 4 * count:
        raise _unwritten(file, f"it ends at byte {size}")
    records = raw[_HEADER.size : level0_end].reshape(count, row_bytes)
    labels = np.ascontiguousarray(records[:, label_offset:]).view("<u8")[:, 0]
    if not np.array_equal(np.sort(labels), np.arange(count, dtype=np.uint64)):
        raise _unwritten(file, "its labels are not the rows that were added")
    links = np.ascontiguousarray(records[:, :data_offset]).view("<u4").astype(np.uint32)
    links[:, 0] &= 0xFFFF  # the count is 16 bits; the flags beside it mark deleted rows, and there are none
    _check_links(links, count=count, file=file)
    levels, level_counts = _export_levels(raw[level0_end:], count=count, m=m, max_level=max_level, file=file)
    graph = Graph(m, m0, entry, level_counts, levels, links)
    if np.array_equal(labels, np.arange(count, dtype=np.uint64)):
        return graph
    return reordered(graph, np.argsort(labels))  # several threads added rows in another order


def _export_levels(
    raw: NDArray[Any], *, count: int, m: int, max_level: int, file: Path
) -> tuple[NDArray[np.uint32], tuple[int, ...]]:
    """(records, nodes per level) of the levels above 0, by level, then node."""
    record_bytes = 4 + 4 * m
    per_level: list[list[NDArray[np.uint32]]] = [[] for _ in range(max_level)]
    data = raw.data
    position = 0
    for node in range(count):
        if position + 4 > len(data):
            raise _unwritten(file, "its upper levels are cut short")
        (length,) = struct.unpack_from("<I", data, position)
        position += 4
        levels, rest = divmod(length, record_bytes)
        if rest or levels > max_level or position + length > len(data):
            raise _unwritten(file, "its upper levels are cut short")
        for level in range(levels):
            start = position + level * record_bytes
            links = np.frombuffer(data[start : start + record_bytes], dtype="<u4")
            per_level[level].append(np.concatenate([np.array([node], dtype=np.uint32), links.astype(np.uint32)]))
        position += length
    if position != len(data):
        raise _unwritten(file, "it is longer than its graph")
    records = [np.stack(nodes) for nodes in per_level if nodes]
    levels_array = np.concatenate(records) if records else np.empty((0, 2 + m), dtype=np.uint32)
    _check_links(levels_array[:, 1:], count=count, file=file)
    return levels_array, tuple(len(nodes) for nodes in per_level)


def _check_links(records: NDArray[np.uint32], *, count: int, file: Path) -> None:
    """Counts and ids in range; what stands beyond a row's count is zeroed in place."""
    width = records.shape[1] - 1
    used = np.arange(width) < records[:, :1]
    if (records[:, 0] > width).any() or (records[:, 1:][used] >= count).any():
        raise _unwritten(file, "its links lead out of it")
    records[:, 1:][~used] = 0


def _unwritten(file: Path, why: str) -> StorageFull:
    return StorageFull(
        f"hnswlib's graph could not be saved to {file}: {why}.",
        remedy="Free some space on that disk and run it again; nothing committed is lost.",
    )
