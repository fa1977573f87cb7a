"""Writes segment files of version 2. Every write is checked, and the file is on the disk when this returns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UnitWriter, stored_bytes
from edgerag.errors import StorageFull
from edgerag.index.hnsw import codes
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Encoding, Header, Section, SectionKind
from edgerag.index.hnsw.graph import Graph, reordered
from edgerag.index.hnsw.order import local_order
from edgerag.index.hnsw.source import role_of
from edgerag.types import EmbedderIdentity, VectorType

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Bytes built in memory at a time; larger gains nothing.
_PIECE_BYTES = 4 * 2**20
# Rows coded at a time: 6 MB of them at 384 dimensions, and some copies.
_CODED_ROWS = 4096

# Rows first to last (exclusive) of a section as (rows, row bytes) uint8.
_Encode = Callable[[int, int], NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class _Content:
    """The rows of one section, before it has a place in the file."""

    kind: SectionKind
    encoding: Encoding
    row_count: int
    row_bytes: int
    encode: _Encode


@dataclass(frozen=True, slots=True)
class Written:
    """A segment file that is on the disk."""

    header: Header
    labels: NDArray[np.int64]  # (n,) the chunk id of each row


def write_segment(
    path: Path,
    *,
    labels: NDArray[np.int64],
    vectors: Vectors,
    graph: Graph | None,
    identity: EmbedderIdentity,
    block_bytes: int = layout.BLOCK_BYTES,
    order: Literal["local", "given"] = "local",
    vector_type: VectorType = "f16",
    check: Callable[[], None] | None = None,
    key: LibraryKey | None = None,
) -> Written:
    """Writes a segment to ``path`` and syncs it. ``vectors`` (n, dim) are unit rows, ``labels`` (n,) their chunk ids;
    with a ``key`` it is encrypted.

    With a graph, rows are put in an order in which neighbours lie near each other, unless ``order`` is "given".
    ``check`` is called before each section and every few megabytes, and may raise to stop. Raises OSError, StorageFull
    and what ``check`` raises; then the file is of no use.
    """
    rows = np.arange(len(labels))
    if graph is not None and order == "local":
        rows = local_order(graph.links, start=graph.entry_point)
        graph = reordered(graph, rows)
    labels = labels[rows]
    encoding = Encoding.F16 if vector_type == "f16" else Encoding.F32
    contents: list[_Content] = []
    entry_position = 0
    if graph is not None:
        levels, entry_position = _level_records(graph)
        # The entry levels first: every search reads them, and they stay in memory.
        contents.append(
            _Content(SectionKind.LEVELS, Encoding.U32, len(levels), 4 * levels.shape[1], _encoded_array(levels))
        )
        contents += _walked_contents(graph, vectors, rows)
    contents.append(
        _Content(
            SectionKind.VECTORS,
            encoding,
            len(labels),
            layout.vector_row_bytes(vectors.shape[1], encoding),
            lambda first, last: _vector_rows(vectors[rows[first:last]], labels[first:last], encoding),
        )
    )
    planned = _plan(contents, block_bytes)
    header = Header(
        version=layout.VERSION,
        block_bytes=block_bytes,
        file_bytes=planned[-1].offset + planned[-1].length,
        dimension=vectors.shape[1],
        m=graph.m if graph else 0,
        m0=graph.m0 if graph else 0,
        row_count=len(labels),
        entry_point=graph.entry_point if graph else layout.NO_ENTRY,
        entry_position=entry_position,
        level_counts=graph.level_counts if graph else (),
        model_name=identity.name,
        weights_sha256=identity.weights_sha256,
        sections=planned,
        block_crcs=(0,) * sum(section.block_count for section in planned),
    )
    header = _shifted(header)
    head_bytes = header.sections[0].offset
    with _opened(path, key, head_bytes) as file:
        file.write(bytes(head_bytes))
        crcs: list[int] = []
        for section, content in zip(header.sections, contents, strict=True):
            crcs += _write_rows(file, section, content.encode, block_bytes, check or _go_on)
        header = replace(header, block_crcs=tuple(crcs))
        file.rewrite_head(layout.encode_header(header))
        file.finish()
    expected = header.file_bytes if key is None else stored_bytes(header.file_bytes)
    if (size := path.stat().st_size) != expected:
        raise StorageFull(
            f"{path} has {size} bytes after writing {expected}.", remedy="Free some space and run it again."
        )
    return Written(header, labels)


class _PlainFile:
    """As a UnitWriter, of a file that is not encrypted."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def rewrite_head(self, data: bytes) -> None:
        self._file.seek(0)
        self._file.write(data)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _opened(path: Path, key: LibraryKey | None, head_bytes: int) -> _PlainFile | UnitWriter:
    if key is None:
        return _PlainFile(path)
    return UnitWriter(path, key, role_of(path), head_bytes=head_bytes)


def _go_on() -> None:
    """For a writer that nobody stops."""


def _walked_contents(graph: Graph, vectors: Vectors, rows: NDArray[np.int64]) -> list[_Content]:
    """Links and codes of all rows; row i of the file is ``rows[i]`` of ``vectors`` (n, dim)."""
    links, count, dimension = graph.links, len(rows), vectors.shape[1]
    return [
        _Content(
            SectionKind.LINKS,
            Encoding.BYTES,
            count,
            codes.links_row_bytes(count, graph.m0),
            lambda first, last: codes.pack_links(links[first:last], count),
        ),
        _Content(
            SectionKind.BITS,
            Encoding.BYTES,
            count,
            codes.bits_row_bytes(dimension),
            lambda first, last: codes.encode_bits(codes.rotated(vectors[rows[first:last]]), dimension),
        ),
        _Content(
            SectionKind.NIBBLES,
            Encoding.BYTES,
            count,
            codes.nibbles_row_bytes(dimension),
            lambda first, last: codes.encode_nibbles(codes.rotated(vectors[rows[first:last]])),
        ),
    ]


def _level_records(graph: Graph) -> tuple[NDArray[np.uint32], int]:
    """((n, 3 + m): row, position below, count, links as positions in their own level; position of the entry point)."""
    records = np.zeros((len(graph.levels), 3 + graph.m), dtype=np.uint32)
    records[:, 0] = graph.levels[:, 0]
    records[:, 2] = graph.levels[:, 1]
    start, below = 0, None
    for count in graph.level_counts:
        level = graph.levels[start : start + count]
        nodes = level[:, 0]
        part = records[start : start + count]
        part[:, 1] = nodes if below is None else np.searchsorted(below, nodes)
        used = np.arange(graph.m) < level[:, 1:2]
        part[:, 3:][used] = np.searchsorted(nodes, level[:, 2:][used])
        start, below = start + count, nodes
    return records, 0 if below is None else int(np.searchsorted(below, graph.entry_point))


def _encoded_array(array: NDArray[np.uint32]) -> _Encode:
    return lambda first, last: np.ascontiguousarray(array[first:last], dtype="<u4").view(np.uint8)


def _vector_rows(vectors: Vectors, labels: NDArray[np.int64], encoding: Encoding) -> NDArray[np.uint8]:
    """Vector, chunk id and the CRC-32 of both."""
    size = layout.vector_row_bytes(vectors.shape[1], encoding)
    out = np.empty((len(vectors), size), dtype=np.uint8)
    stored = np.ascontiguousarray(vectors, dtype=layout.ENCODING_DTYPE[encoding])
    out[:, : size - layout.ROW_TAIL_BYTES] = stored.view(np.uint8)
    out[:, size - layout.ROW_TAIL_BYTES : size - 4] = labels.astype("<u8").view(np.uint8).reshape(-1, 8)
    crcs = np.fromiter((zlib.crc32(row[: size - 4].data) for row in out), dtype="<u4", count=len(out))
    out[:, size - 4 :] = crcs.view(np.uint8).reshape(-1, 4)
    return out


def _plan(contents: list[_Content], block_bytes: int) -> tuple[Section, ...]:
    """The sections one behind the other, from offset 0."""
    sections = []
    position = 0
    for content in contents:
        grouping = layout.group_rows(content.row_bytes, block_bytes)
        length = -(-content.row_count // grouping.rows_per_group) * grouping.group_bytes
        sections.append(
            Section(
                content.kind,
                content.encoding,
                content.row_bytes,
                content.row_count,
                position,
                length,
                grouping.rows_per_group,
                grouping.group_bytes,
                -(-length // block_bytes),
            )
        )
        position += length
    return tuple(sections)


def _shifted(header: Header) -> Header:
    """The header with its sections behind itself."""
    size = layout.header_size(
        section_count=len(header.sections),
        level_count=header.max_level,
        name_bytes=len(header.model_name.encode()),
        weights_bytes=len(header.weights_sha256.encode()),
        block_count=len(header.block_crcs),
    )
    sections = tuple(replace(section, offset=section.offset + size) for section in header.sections)
    return replace(header, sections=sections, file_bytes=header.file_bytes + size)


def _write_rows(
    file: _PlainFile | UnitWriter, section: Section, encode: _Encode, block_bytes: int, check: Callable[[], None]
) -> list[int]:
    """Writes one section, padded with zeros; returns the checksum of each of its blocks. Raises what ``check`` does."""
    groups_per_block = block_bytes // section.group_bytes
    most_groups = max(1, min(_PIECE_BYTES // section.group_bytes, _CODED_ROWS // section.rows_per_group))
    group_count = section.length // section.group_bytes
    used = section.rows_per_group * section.row_bytes
    crcs: list[int] = []
    unchecked_bytes = _PIECE_BYTES
    for block_start in range(0, group_count, groups_per_block):
        block_end = min(block_start + groups_per_block, group_count)
        crc = 0
        for start in range(block_start, block_end, most_groups):
            if unchecked_bytes >= _PIECE_BYTES:
                check()
                unchecked_bytes = 0
            groups = min(most_groups, block_end - start)
            first = start * section.rows_per_group
            rows = encode(first, min(first + groups * section.rows_per_group, section.row_count))
            flat = np.zeros((groups * section.rows_per_group, section.row_bytes), dtype=np.uint8)
            flat[: len(rows)] = rows
            padded = np.zeros((groups, section.group_bytes), dtype=np.uint8)
            padded[:, :used] = flat.reshape(groups, used)
            data = padded.tobytes()
            crc = zlib.crc32(data, crc)
            file.write(data)
            unchecked_bytes += len(data)
        crcs.append(crc)
    return crcs
