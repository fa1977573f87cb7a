"""The segment file: header, sections, blocks. docs/index-format.md has it byte by byte.

A segment is one immutable file: a header, then sections of equal-sized rows. Each section is cut into
blocks of ``block_bytes`` (64 MiB), each with its own CRC-32 in the header; the header has one of its own.
Rows are packed in groups of whole pages, so that none lies across a block and few lie across a page.
CRC-32 (zlib): it finds every error burst up to 32 bits and misses one in four billion others, zlib is
everywhere, and it is not meant against someone who forges files (who could write a right hash too).

This module reads and checks headers; write.py makes files (of version 2), search.py maps them. A file of version 1,
without codes, is still read and searched; the next seal rewrites it.
"""

from __future__ import annotations

import contextlib
import stat
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UnitDamaged
from edgerag.errors import REPAIR_LIBRARY, EmbedderMismatch, LibraryDamaged, LibraryVersionUnknown
from edgerag.index.hnsw import codes
from edgerag.index.hnsw.source import SegmentSource, open_source
from edgerag.index.segment_magic import MAGIC
from edgerag.types import EmbedderIdentity

VERSION = 2
OLDEST_VERSION = 1
PAGE_BYTES = 4096
BLOCK_BYTES = 64 * 2**20
METRIC_COSINE = 1
NO_ENTRY = 0xFFFF_FFFF
MAX_ROWS = 2**31 - 1
MAX_DIMENSION = 65_536
MAX_LINKS = 4_096  # of a row; hnswlib is used with 32
MAX_LEVELS = 64  # hnswlib's levels follow ln(n) / ln(M); 64 is out of reach

_FIXED = struct.Struct("<8sIIIIQIIIIQIIIIIII12x")
_SECTION = struct.Struct("<IIQQQIIII")
FIXED_BYTES = _FIXED.size
SECTION_BYTES = _SECTION.size
_CRC_OFFSET = 16
# More blocks than this (64 TiB of them) is a damaged count, not a file.
_MAX_HEADER_BYTES = 8 * 2**20


class SectionKind(IntEnum):
    """What the rows of a section are. Numbers stay; a row that changes gets a new one."""

    LABELS_1 = 1  # version 1: chunk id of each row, u64
    LEVELS_1 = 2  # version 1: u32 node, u32 count, u32 × m
    LINKS_1 = 3  # version 1: u32 count, u32 × m0
    VECTORS_1 = 4  # version 1: f32 × dimension
    LEVELS = 5  # links above level 0: u32 row, u32 position below, u32 count, u32 × m positions
    LINKS = 6  # links of level 0: u16 count, packed rows
    BITS = 7  # 1-bit codes, f32 factor
    NIBBLES = 8  # 4-bit codes, f32 factor
    VECTORS = 9  # the vectors, of unit length; u64 chunk id; u32 checksum of the row

    @property
    def title(self) -> str:
        """How messages call it."""
        return self.name.removesuffix("_1").lower()


class Encoding(IntEnum):
    """The number type of a section's rows, little-endian; mixed and packed rows are bytes."""

    F32 = 1
    U32 = 2
    U64 = 3
    F16 = 4
    BYTES = 5


ENCODING_DTYPE = {
    Encoding.F32: "<f4",
    Encoding.U32: "<u4",
    Encoding.U64: "<u8",
    Encoding.F16: "<f2",
    Encoding.BYTES: "u1",
}
# The vectors of a segment may be stored as either.
VECTOR_ENCODINGS = (Encoding.F16, Encoding.F32)
ROW_TAIL_BYTES = 12  # chunk id and checksum behind each vector


def vector_row_bytes(dimension: int, encoding: Encoding) -> int:
    """A vector with what stands behind it."""
    return dimension * np.dtype(ENCODING_DTYPE[encoding]).itemsize + ROW_TAIL_BYTES


@dataclass(frozen=True, slots=True)
class Section:
    """Where the rows of one kind lie: row i at offset + i // rows_per_group * group_bytes + i % rows_per_group
    * row_bytes."""

    kind: SectionKind
    encoding: Encoding
    row_bytes: int
    row_count: int
    offset: int
    length: int
    rows_per_group: int
    group_bytes: int
    block_count: int

    def offsets(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows begin, in the file."""
        groups, places = rows // self.rows_per_group, rows % self.rows_per_group
        offsets: NDArray[np.int64] = self.offset + groups * self.group_bytes + places * self.row_bytes
        return offsets


@dataclass(frozen=True, slots=True)
class Header:
    """All that is known of a segment before any of its blocks is read."""

    version: int
    block_bytes: int
    file_bytes: int
    dimension: int
    m: int  # most links of a node above level 0
    m0: int  # most links of a node on level 0; 0: there is no graph, the segment is scanned
    row_count: int
    entry_point: int
    entry_position: int  # of the entry point among the records of the highest level; 0 in version 1
    level_counts: tuple[int, ...]  # nodes on level 1, 2, ...
    model_name: str
    weights_sha256: str
    sections: tuple[Section, ...]
    block_crcs: tuple[int, ...]  # of the sections' blocks, in order

    @property
    def max_level(self) -> int:
        return len(self.level_counts)

    @property
    def has_graph(self) -> bool:
        return self.m0 > 0

    def section(self, kind: SectionKind) -> Section | None:
        return next((section for section in self.sections if section.kind is kind), None)

    def blocks_of(self, section: Section) -> range:
        """The numbers of a section's blocks in the file."""
        first = sum(each.block_count for each in self.sections[: self.sections.index(section)])
        return range(first, first + section.block_count)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How rows of one size are packed."""

    rows_per_group: int
    group_bytes: int


def group_rows(row_bytes: int, block_bytes: int) -> Grouping:
    """The smallest power-of-two group from one page up that wastes at most 1/16; else the least wasteful.

    One page where it fits well (128-dim vectors, links); 1,536-byte rows take two pages, because one
    page would waste a quarter of the file. Raises ValueError if a row is longer than a block.
    """
    best: Grouping | None = None
    group_bytes = PAGE_BYTES
    while group_bytes <= block_bytes:
        rows = group_bytes // row_bytes
        if rows:
            if (group_bytes - rows * row_bytes) * 16 <= group_bytes:
                return Grouping(rows, group_bytes)
            if best is None or rows * row_bytes * best.group_bytes > best.rows_per_group * row_bytes * group_bytes:
                best = Grouping(rows, group_bytes)
        group_bytes *= 2
    if best is None:
        raise ValueError(f"a row of {row_bytes} bytes does not fit in a block of {block_bytes}")
    return best


def header_size(*, section_count: int, level_count: int, name_bytes: int, weights_bytes: int, block_count: int) -> int:
    size = FIXED_BYTES + 4 * level_count + SECTION_BYTES * section_count + name_bytes + weights_bytes
    return _up(_up(size, 4) + 4 * block_count, PAGE_BYTES)


def encode_header(header: Header) -> bytes:
    name, weights = header.model_name.encode(), header.weights_sha256.encode()
    size = header_size(
        section_count=len(header.sections),
        level_count=header.max_level,
        name_bytes=len(name),
        weights_bytes=len(weights),
        block_count=len(header.block_crcs),
    )
    out = bytearray(
        _FIXED.pack(
            MAGIC,
            header.version,
            size,
            0,
            header.block_bytes,
            header.file_bytes,
            header.dimension,
            METRIC_COSINE,
            header.m,
            header.m0,
            header.row_count,
            header.entry_point,
            header.max_level,
            len(header.sections),
            len(header.block_crcs),
            len(name),
            len(weights),
            header.entry_position,
        )
    )
    out += struct.pack(f"<{header.max_level}I", *header.level_counts)
    for s in header.sections:
        out += _SECTION.pack(
            s.kind,
            s.row_bytes,
            s.row_count,
            s.offset,
            s.length,
            s.rows_per_group,
            s.group_bytes,
            s.block_count,
            s.encoding,
        )
    out += name + weights
    out += bytes(_up(len(out), 4) - len(out))
    out += struct.pack(f"<{len(header.block_crcs)}I", *header.block_crcs)
    out += bytes(size - len(out))
    struct.pack_into("<I", out, _CRC_OFFSET, zlib.crc32(out))
    return bytes(out)


def is_outdated(path: Path) -> bool:
    """Whether a segment file is of a format before today's; False for one that cannot be read, which others tell."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            fixed = file.read(len(MAGIC) + 4)
    except OSError:
        return False
    return fixed.startswith(MAGIC) and OLDEST_VERSION <= int.from_bytes(fixed[len(MAGIC) :], "little") < VERSION


def read_header(path: Path, *, identity: EmbedderIdentity | None, key: LibraryKey | None = None) -> Header:
    """The checked header of a segment file, which must be made with ``identity``, or with any for None; ``key``: of an
    encrypted one.

    Raises LibraryDamaged (not a segment, cut short, header damaged or contradicting itself, not of this key),
    LibraryVersionUnknown and EmbedderMismatch (other model, other dimension); OSError passes.
    """
    with contextlib.closing(opened(path, key)) as source:
        return header_of(path, source, identity=identity)


def opened(path: Path, key: LibraryKey | None) -> SegmentSource:
    """The file of a segment. Raises LibraryDamaged, OSError."""
    if not stat.S_ISREG(path.stat().st_mode):  # opening a named pipe would wait for its writer
        raise damaged(path, "is not a segment file")
    try:
        return open_source(path, key)
    except UnitDamaged as error:
        raise damaged(path, error.what) from error


def header_of(path: Path, source: SegmentSource, *, identity: EmbedderIdentity | None) -> Header:
    """As :func:`read_header`, of an open file."""
    try:
        return _checked_header(path, source, identity)
    except UnitDamaged as error:
        raise damaged(path, error.what) from error


def _checked_header(path: Path, source: SegmentSource, identity: EmbedderIdentity | None) -> Header:
    actual_bytes = source.size_bytes
    fixed = source.read(0, FIXED_BYTES)
    if not fixed.startswith(MAGIC):
        if actual_bytes < FIXED_BYTES and MAGIC.startswith(fixed[: len(MAGIC)]):
            raise damaged(path, f"is cut short: {actual_bytes} bytes are less than a header")
        raise damaged(path, "is not a segment file")
    if len(fixed) < FIXED_BYTES:
        raise damaged(path, f"is cut short: {actual_bytes} bytes are less than a header")
    version, size = struct.unpack_from("<II", fixed, len(MAGIC))
    if not OLDEST_VERSION <= version <= VERSION:
        raise LibraryVersionUnknown(
            f"{path} has segment format {version} and this program knows formats {OLDEST_VERSION} to {VERSION}.",
            remedy="Use the edgerag that wrote it, or ingest into a new library.",
        )
    if size % PAGE_BYTES or not FIXED_BYTES <= size <= _MAX_HEADER_BYTES:
        raise damaged(path, "has a damaged header (its size is impossible)")
    raw = fixed + source.read(FIXED_BYTES, size - FIXED_BYTES)
    if len(raw) < size:
        raise damaged(path, f"is cut short inside its header ({actual_bytes} of {size} bytes)")
    (stored_crc,) = struct.unpack_from("<I", raw, _CRC_OFFSET)
    if zlib.crc32(raw[:_CRC_OFFSET] + bytes(4) + raw[_CRC_OFFSET + 4 :]) != stored_crc:
        raise damaged(path, "has a damaged header (checksum)")
    header = _decode(raw, path)
    if identity is not None:
        _check_identity(header, path, identity)
    if actual_bytes < header.file_bytes:
        lost = next(
            (number for number, (_, end) in enumerate(block_spans(header)) if end > actual_bytes),
            len(header.block_crcs),
        )
        raise damaged(path, f"is cut short from block {lost} on ({actual_bytes} of {header.file_bytes} bytes)")
    if actual_bytes > header.file_bytes:
        raise damaged(path, f"is longer than it should be ({actual_bytes} bytes instead of {header.file_bytes})")
    return header


def _decode(raw: bytes, path: Path) -> Header:
    """The header behind a right checksum; still refuses one that contradicts itself."""
    (_, version, size, _, block_bytes, file_bytes, dimension, metric, m, m0, row_count, entry_point) = (
        _FIXED.unpack_from(raw)[:12]
    )
    level_count, section_count, block_count, name_bytes, weights_bytes, entry_position = _FIXED.unpack_from(raw)[12:18]
    expected = header_size(
        section_count=section_count,
        level_count=level_count,
        name_bytes=name_bytes,
        weights_bytes=weights_bytes,
        block_count=block_count,
    )
    if expected != size or level_count > MAX_LEVELS or metric != METRIC_COSINE:
        raise damaged(path, "has a damaged header (counts contradict its size)")
    position = FIXED_BYTES
    level_counts = struct.unpack_from(f"<{level_count}I", raw, position)
    position += 4 * level_count
    sections = []
    for _ in range(section_count):
        kind, row_bytes, rows, offset, length, per_group, group_bytes, blocks, encoding = _SECTION.unpack_from(
            raw, position
        )
        position += SECTION_BYTES
        try:
            section = Section(
                SectionKind(kind), Encoding(encoding), row_bytes, rows, offset, length, per_group, group_bytes, blocks
            )
        except ValueError as error:
            raise damaged(path, f"has a damaged header ({error})") from error
        sections.append(section)
    try:
        name = raw[position : position + name_bytes].decode()
        weights = raw[position + name_bytes : position + name_bytes + weights_bytes].decode()
    except UnicodeDecodeError as error:
        raise damaged(path, "has a damaged header (model name)") from error
    crcs = struct.unpack_from(f"<{block_count}I", raw, _up(position + name_bytes + weights_bytes, 4))
    header = Header(
        version, block_bytes, file_bytes, dimension, m, m0, row_count, entry_point, entry_position, level_counts, name,
        weights, tuple(sections), crcs,
    )  # fmt: skip
    _check_consistency(header, size, path)
    return header


def _expected_rows(header: Header) -> dict[SectionKind, tuple[int, int]]:
    """(row bytes, rows) of every section that a file with these counts has."""
    rows, dimension, upper = header.row_count, header.dimension, sum(header.level_counts)
    if header.version == 1:
        flat = {SectionKind.LABELS_1: (8, rows), SectionKind.VECTORS_1: (4 * dimension, rows)}
        graph = {SectionKind.LINKS_1: (4 * (1 + header.m0), rows), SectionKind.LEVELS_1: (4 * (2 + header.m), upper)}
    else:
        vectors = header.section(SectionKind.VECTORS)
        encoding = vectors.encoding if vectors and vectors.encoding in VECTOR_ENCODINGS else Encoding.F16
        flat = {SectionKind.VECTORS: (vector_row_bytes(dimension, encoding), rows)}
        graph = {
            SectionKind.LEVELS: (4 * (3 + header.m), upper),
            SectionKind.LINKS: (codes.links_row_bytes(rows, header.m0), rows),
            SectionKind.BITS: (codes.bits_row_bytes(dimension), rows),
            SectionKind.NIBBLES: (codes.nibbles_row_bytes(dimension), rows),
        }
    return flat | graph if header.has_graph else flat


_ENCODINGS = {
    SectionKind.LABELS_1: (Encoding.U64,),
    SectionKind.LEVELS_1: (Encoding.U32,),
    SectionKind.LINKS_1: (Encoding.U32,),
    SectionKind.VECTORS_1: (Encoding.F32,),
    SectionKind.LEVELS: (Encoding.U32,),
    SectionKind.LINKS: (Encoding.BYTES,),
    SectionKind.BITS: (Encoding.BYTES,),
    SectionKind.NIBBLES: (Encoding.BYTES,),
    SectionKind.VECTORS: VECTOR_ENCODINGS,
}


def _check_consistency(header: Header, size: int, path: Path) -> None:
    # Bounds first: what follows computes with these numbers.
    bounded = (
        0 < header.dimension <= MAX_DIMENSION
        and 0 < header.row_count <= MAX_ROWS
        and header.m0 <= MAX_LINKS
        and header.m <= MAX_LINKS // 2
        and header.block_bytes >= PAGE_BYTES
        and header.block_bytes & (header.block_bytes - 1) == 0
        and (header.entry_point < header.row_count if header.has_graph else header.entry_point == NO_ENTRY)
        and all(0 < count <= header.row_count for count in header.level_counts)
        and header.entry_position < max(1, header.level_counts[-1] if header.level_counts else 1)
    )
    if not bounded:
        raise damaged(path, "has a damaged header (numbers that cannot be)")
    found = {section.kind: (section.row_bytes, section.row_count) for section in header.sections}
    typed = all(section.encoding in _ENCODINGS[section.kind] for section in header.sections)
    kinds = [section.kind for section in header.sections]
    # In the order of the format: the kernel reads up to 7 bytes beyond a row of links, where VECTORS must follow.
    ordered = kinds == sorted(set(kinds))
    if found != _expected_rows(header) or not ordered or not typed:
        raise damaged(path, "has a damaged header (sections contradict the counts)")
    position = size
    for section in header.sections:
        if section.row_bytes > header.block_bytes:
            raise damaged(path, f"has a damaged header (section {section.kind.title})")
        grouping = group_rows(section.row_bytes, header.block_bytes)
        groups = -(-section.row_count // grouping.rows_per_group)
        if (
            (section.rows_per_group, section.group_bytes) != (grouping.rows_per_group, grouping.group_bytes)
            or section.offset != position
            or section.length != groups * grouping.group_bytes
            or section.block_count != -(-section.length // header.block_bytes)
        ):
            raise damaged(path, f"has a damaged header (section {section.kind.title})")
        position += section.length
    if position != header.file_bytes or sum(s.block_count for s in header.sections) != len(header.block_crcs):
        raise damaged(path, "has a damaged header (sections contradict the file size)")


def _check_identity(header: Header, path: Path, identity: EmbedderIdentity) -> None:
    if header.weights_sha256 != identity.weights_sha256:
        raise EmbedderMismatch(
            f"{path} was made with the embedder {header.model_name!r}, not with {identity.name!r}.",
            remedy="Restore the segment file that belongs to this library, or ingest again.",
        )
    if header.dimension != identity.dimension:
        raise EmbedderMismatch(
            f"{path} holds vectors of {header.dimension} dimensions, not of {identity.dimension}.",
            remedy="Restore the segment file that belongs to this library, or ingest again.",
        )


def block_spans(header: Header) -> list[tuple[int, int]]:
    """(first byte, byte after the last) of every block, in order."""
    return [
        (start, min(start + header.block_bytes, section.offset + section.length))
        for section in header.sections
        for start in range(section.offset, section.offset + section.length, header.block_bytes)
    ]


def block_name(header: Header, block: int) -> str:
    """How messages call a block: its number in the file and what it holds."""
    first = 0
    for section in header.sections:
        if block < first + section.block_count:
            return f"block {block} ({section.kind.title})"
        first += section.block_count
    return f"block {block}"


def damaged(path: Path, what: str) -> LibraryDamaged:
    return LibraryDamaged(f"{path} {what}.", remedy=REPAIR_LIBRARY)


def unreadable(path: Path, error: OSError) -> LibraryDamaged:
    """A file that is there and cannot be opened: often for a reason that goes away, so nothing is to be deleted yet."""
    return LibraryDamaged(
        f"{path} cannot be read: {error.strerror or error}.",
        remedy=f"Check the rights of the file, and the disk. If it goes on: {REPAIR_LIBRARY}",
    )


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
