"""Writes segment files. Every write is checked, and the file is on the disk when this returns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import StorageFull
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Encoding, Header, Section, SectionKind
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Bytes built in memory at a time; larger gains nothing.
_PIECE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Graph:
    """An HNSW graph in rows. Links beyond a row's count are zero."""

    m: int
    m0: int
    entry_point: int
    level_counts: tuple[int, ...]  # nodes on level 1, 2, ...
    levels: NDArray[np.uint32]  # (sum of level_counts, 2 + m): node, count, links; by level, then node
    links: NDArray[np.uint32]  # (n, 1 + m0): count, links


def write_segment(
    path: Path,
    *,
    labels: NDArray[np.int64],
    vectors: Vectors,
    graph: Graph | None,
    identity: EmbedderIdentity,
    block_bytes: int = layout.BLOCK_BYTES,
) -> Header:
    """Writes a segment to ``path`` and syncs it. ``vectors`` (n, dim) are unit rows, ``labels`` their chunk ids.

    Raises OSError or StorageFull; then the file is of no use.
    """
    parts: list[tuple[SectionKind, Encoding, NDArray[Any]]] = [
        (SectionKind.LABELS, Encoding.U64, labels.astype("<u8").reshape(-1, 1))
    ]
    if graph is not None:
        # Before the rest: the entry levels are read by every search and stay in memory.
        parts.append((SectionKind.LEVELS, Encoding.U32, graph.levels))
        parts.append((SectionKind.LINKS, Encoding.U32, graph.links))
    parts.append((SectionKind.VECTORS, Encoding.F32, vectors))

    header = _plan(parts, graph, identity, block_bytes)
    with path.open("wb") as file:
        file.write(bytes(header.sections[0].offset))
        crcs: list[int] = []
        for section, (_, encoding, rows) in zip(header.sections, parts, strict=True):
            crcs += _write_rows(file, section, rows, layout.ENCODING_DTYPE[encoding], block_bytes)
        header = replace(header, block_crcs=tuple(crcs))
        file.seek(0)
        file.write(layout.encode_header(header))
        file.flush()
        os.fsync(file.fileno())
    if (size := path.stat().st_size) != header.file_bytes:
        raise StorageFull(
            f"{path} has {size} bytes after writing {header.file_bytes}.", remedy="Free some space and run it again."
        )
    return header


def _plan(
    parts: Sequence[tuple[SectionKind, Encoding, NDArray[Any]]],
    graph: Graph | None,
    identity: EmbedderIdentity,
    block_bytes: int,
) -> Header:
    groupings = [layout.group_rows(rows.shape[1] * _width(encoding), block_bytes) for _, encoding, rows in parts]
    lengths = [
        -(-len(rows) // g.rows_per_group) * g.group_bytes for (_, _, rows), g in zip(parts, groupings, strict=True)
    ]
    block_counts = [-(-length // block_bytes) for length in lengths]
    level_counts = graph.level_counts if graph else ()
    position = layout.header_size(
        section_count=len(parts),
        level_count=len(level_counts),
        name_bytes=len(identity.name.encode()),
        weights_bytes=len(identity.weights_sha256.encode()),
        block_count=sum(block_counts),
    )
    sections = []
    for (kind, encoding, rows), grouping, length, blocks in zip(parts, groupings, lengths, block_counts, strict=True):
        row_bytes = rows.shape[1] * _width(encoding)
        sections.append(
            Section(
                kind,
                encoding,
                row_bytes,
                len(rows),
                position,
                length,
                grouping.rows_per_group,
                grouping.group_bytes,
                blocks,
            )
        )
        position += length
    vectors = parts[-1][2]
    return Header(
        block_bytes=block_bytes,
        file_bytes=position,
        dimension=vectors.shape[1],
        m=graph.m if graph else 0,
        m0=graph.m0 if graph else 0,
        row_count=len(vectors),
        entry_point=graph.entry_point if graph else layout.NO_ENTRY,
        level_counts=level_counts,
        model_name=identity.name,
        weights_sha256=identity.weights_sha256,
        sections=tuple(sections),
        block_crcs=(0,) * sum(block_counts),
    )


def _write_rows(file: BinaryIO, section: Section, rows: NDArray[Any], dtype: str, block_bytes: int) -> list[int]:
    """Writes one section, padded with zeros; returns the checksum of each of its blocks."""
    groups_per_block = block_bytes // section.group_bytes
    groups_per_piece = max(1, min(groups_per_block, _PIECE_BYTES // section.group_bytes))
    group_count = section.length // section.group_bytes
    used = section.rows_per_group * section.row_bytes
    crcs: list[int] = []
    for block_start in range(0, group_count, groups_per_block):
        block_end = min(block_start + groups_per_block, group_count)
        crc = 0
        for start in range(block_start, block_end, groups_per_piece):
            groups = min(groups_per_piece, block_end - start)
            first = start * section.rows_per_group
            taken = rows[first : first + groups * section.rows_per_group]
            flat = np.zeros((groups * section.rows_per_group, rows.shape[1]), dtype=dtype)
            flat[: len(taken)] = taken
            piece = np.zeros((groups, section.group_bytes), dtype=np.uint8)
            piece[:, :used] = flat.view(np.uint8).reshape(groups, used)
            data = piece.tobytes()
            crc = zlib.crc32(data, crc)
            file.write(data)
        crcs.append(crc)
    return crcs


def _width(encoding: Encoding) -> int:
    return np.dtype(layout.ENCODING_DTYPE[encoding]).itemsize
