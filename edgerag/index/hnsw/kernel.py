"""Binds kernel.c, which the package's build compiles beside this file; ctypes releases the GIL while it works.

Where it was not compiled, or does not belong to this version, :func:`load_kernel` says so and reference.py
serves instead: the same hits, slowly.
"""

from __future__ import annotations

import ctypes
import errno
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.units import UnitDamaged
from edgerag.index.hnsw import codes, view
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Encoding, Section, SectionKind
from edgerag.index.hnsw.source import SegmentSource
from edgerag.index.hnsw.view import Effort, Found, Room, Rows, SegmentView, Walk

if TYPE_CHECKING:
    from edgerag.types import Vectors

LIBRARY_FILE = Path(__file__).with_name("_kernel" + (".dylib" if sys.platform == "darwin" else ".so"))
_ELF_HEADER = struct.Struct("<40xQ10xHH2x")  # where the table of sections starts, bytes and number of its rows
_ABI_VERSION = 5
_BAD_LINK, _BAD_ROW, _READ_FAILED = -2, -3, -4  # what else is below zero: no memory
_WALKS: dict[Walk, int] = {"bits": 1, "nibbles": 4}


class _RowsStruct(Structure):
    _fields_ = (
        ("base", c_void_p),
        ("offset", c_uint64),
        ("reciprocal", c_uint64),
        ("row_bytes", c_uint32),
        ("rows_per_group", c_uint32),
        ("group_bytes", c_uint32),
        ("block_shift", c_uint32),
        ("hits", c_void_p),
    )


class _SegmentStruct(Structure):
    _fields_ = (
        ("row_count", c_uint64),
        ("dimension", c_uint32),
        ("padded_dimension", c_uint32),
        ("m", c_uint32),
        ("m0", c_uint32),
        ("link_bits", c_uint32),
        ("entry_row", c_uint32),
        ("entry_position", c_uint32),
        ("level_count", c_uint32),
        ("level_starts", c_void_p),
        ("signs", c_void_p),
        ("levels", _RowsStruct),
        ("links", _RowsStruct),
        ("bits", _RowsStruct),
        ("nibbles", _RowsStruct),
        ("vectors", _RowsStruct),
        ("absent", c_void_p),
        ("file", c_int32),
        ("vector_type", c_uint32),
        ("read", c_void_p),
        ("path", c_int32),
        ("walk", c_int32),
    )


@dataclass(frozen=True, slots=True)
class Kernel:
    """The compiled library and the instructions it is to use."""

    library: ctypes.CDLL
    path: int
    path_name: str

    def crc32(self, data: NDArray[np.uint8], crc: int = 0) -> int:
        """As zlib.crc32, several times as fast where the processor helps."""
        return int(self.library.er_crc32(self.path, crc, data.ctypes.data, data.nbytes))

    def local_order(self, links: NDArray[np.uint32], *, window: int, start: int) -> Rows:
        """(n,) rows in an order in which linked ones lie near each other; ``links`` (n, 1 + m0): count, links in
        range. Raises MemoryError."""
        count, width = links.shape
        checked = np.ascontiguousarray(links, dtype=np.uint32)
        order = np.empty(count, dtype=np.uint32)
        if self.library.er_order(count, width, checked.ctypes.data, window, start, order.ctypes.data):
            raise MemoryError("no memory for ordering the rows of a segment")
        return order.astype(np.int64)


@lru_cache(maxsize=8)
def load_kernel(path: str = "", file: Path = LIBRARY_FILE) -> Kernel | None:
    """The kernel with the best instructions of this processor, or those named; None where there is none.

    Raises ValueError for a ``path`` that this kernel or this processor does not have.
    """
    if not file.is_file():
        return None
    try:
        if not _is_whole(file):
            return None
        library = ctypes.CDLL(str(file))
        if library.er_abi() != _ABI_VERSION:
            return None
    except (OSError, AttributeError):
        return None  # made for another machine, or another version: doctor tells
    _declare(library)
    names = supported_paths(library)
    if path and path not in names:
        raise ValueError(f"this kernel has no instructions {path!r} here; it has {', '.join(names)}")
    chosen = path or list(names)[-1]
    return Kernel(library, names[chosen], chosen)


def _is_whole(file: Path) -> bool:
    """False for an ELF file of 64 bits that was cut short: loading it would end the process. Others may be loaded."""
    with file.open("rb") as stream:
        header = stream.read(_ELF_HEADER.size)
        size_bytes = stream.seek(0, 2)
    if len(header) < _ELF_HEADER.size or header[:6] != b"\x7fELF\x02\x01":
        return True  # the loader reads this much before it maps anything
    # The table of sections stands at the end of the file.
    table_start, row_bytes, row_count = _ELF_HEADER.unpack(header)
    return bool(table_start + row_bytes * row_count <= size_bytes)


def supported_paths(library: ctypes.CDLL) -> dict[str, int]:
    """Instruction sets that the kernel has and this processor too, best last."""
    return {
        library.er_path_name(number).decode(): number
        for number in range(library.er_path_count())
        if library.er_path_supported(number)
    }


def _declare(library: ctypes.CDLL) -> None:
    segment, scratch = POINTER(_SegmentStruct), c_void_p
    found = (c_void_p, c_void_p, POINTER(c_uint64))
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "er_path_count": (c_int32, ()),
        "er_path_name": (c_char_p, (c_int32,)),
        "er_path_supported": (c_int32, (c_int32,)),
        "er_crc32": (c_uint32, (c_int32, c_uint32, c_void_p, c_uint64)),
        "er_scratch_new": (c_void_p, ()),
        "er_scratch_free": (None, (scratch,)),
        "er_fault": (None, (scratch, POINTER(c_uint64), POINTER(c_int32), POINTER(c_int32))),
        "er_begin": (c_int32, (segment, scratch, c_void_p, c_uint64, c_void_p)),
        "er_set_room": (None, (scratch, c_int64)),
        "er_set_exact": (None, (scratch,)),
        "er_least": (c_float, (scratch,)),
        "er_compared": (c_uint64, (scratch,)),
        "er_step": (c_int32, (segment, scratch)),
        "er_finish": (c_int32, (segment, scratch, c_uint64, c_uint64, c_float, *found)),
        "er_search": (
            c_int32,
            (segment, scratch, c_void_p, *[c_uint64] * 4, c_float, *[c_void_p] * 4),
        ),
        "er_compare_rows": (c_int32, (segment, scratch, c_void_p, c_uint64)),
        "er_score_rows": (c_int32, (segment, scratch, c_void_p, c_void_p, c_uint64, c_uint64, *found)),
        "er_scan": (c_int32, (segment, scratch, c_void_p, c_uint64, c_void_p, *found)),
        "er_read_rows": (c_int32, (segment, scratch, c_void_p, c_uint64, c_void_p)),
        "er_order": (c_int32, (c_uint64, c_uint32, c_void_p, c_uint64, c_uint32, c_void_p)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


_ReadFunction = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_void_p)


class _Decrypting:
    """How the kernel reads the rows of an encrypted file; it calls back in the thread that called it."""

    def __init__(self, source: SegmentSource, vectors: Section) -> None:
        self._source = source
        self._vectors = vectors
        self._failure = threading.local()
        self._function = _ReadFunction(self._read)  # kept: the kernel has its address
        self.address = ctypes.cast(self._function, c_void_p).value

    def _read(self, rows: int, count: int, to: int) -> int:
        numbers = np.frombuffer(ctypes.string_at(rows, 8 * count), dtype=np.uint64) >> np.uint64(32)
        try:
            data = self._source.gather(self._vectors.offsets(numbers.astype(np.int64)), self._vectors.row_bytes)
        except UnitDamaged as error:
            self._failure.damage = error
            return errno.EIO
        except OSError as error:
            return error.errno or errno.EIO
        if len(data) < count * self._vectors.row_bytes:
            return errno.EIO
        ctypes.memmove(to, data, len(data))
        return 0

    def damage(self) -> UnitDamaged | None:
        """What the last read of this thread came upon; forgotten by asking."""
        found: UnitDamaged | None = getattr(self._failure, "damage", None)
        self._failure.damage = None
        return found


class _Scratch:
    """The working memory of one search at a time; kept for later ones."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.pointer = library.er_scratch_new()
        if not self.pointer:
            raise MemoryError("no memory for a search")
        weakref.finalize(self, library.er_scratch_free, self.pointer)


class KernelSearcher:
    """Searches one segment with the kernel; usable from many threads at once."""

    def __init__(self, segment: SegmentView, kernel: Kernel) -> None:
        self._view = segment
        self._library = kernel.library
        self._idle: list[_Scratch] = []
        header = segment.header
        self._level_starts = np.concatenate([[0], np.cumsum(header.level_counts)]).astype(np.uint64)
        self._signs = codes.signs(header.dimension)
        vectors = header.section(SectionKind.VECTORS)
        self._decrypting = _Decrypting(segment.source, vectors) if segment.is_encrypted and vectors else None
        self._address = int(np.frombuffer(segment.mapping, dtype=np.uint8).ctypes.data)
        self._structs = {walk: self._struct(kernel, number) for walk, number in _WALKS.items()}
        self._row_bytes = vectors.row_bytes if vectors else 0

    def walk(
        self, query: Vectors, effort: Effort, *, walk: Walk, excluded: NDArray[np.bool_] | None, room: Room | None
    ) -> Found:
        struct = byref(self._structs[walk])
        with self._scratch() as scratch:
            self._begin(struct, scratch, query, effort, excluded)
            self._in_slices(scratch, room, lambda: int(self._library.er_step(struct, scratch.pointer)))
            return self._finish(struct, scratch, effort)

    def near_rows(self, query: Vectors, effort: Effort, *, walk: Walk, rows: Rows, room: Room | None) -> Found:
        struct, chosen = byref(self._structs[walk]), rows.astype(np.uint32)
        data, count = chosen.ctypes.data, len(chosen)
        with self._scratch() as scratch:
            self._begin(struct, scratch, query, effort, None)
            compare = self._library.er_compare_rows
            self._in_slices(scratch, room, lambda: int(compare(struct, scratch.pointer, data, count)))
            return self._finish(struct, scratch, effort)

    def walk_many(
        self, queries: Vectors, effort: Effort, *, walk: Walk
    ) -> tuple[Rows, NDArray[np.float32], NDArray[np.float32]]:
        """(q, limit) chunk ids and similarities of (q, dim) queries in one call, and (q,) the worst estimates kept.

        Ids beyond what was found are -1.
        """
        count = len(queries)
        labels = np.full((count, effort.limit), -1, dtype=np.int64)
        similarities = np.full((count, effort.limit), -1, dtype=np.float32)
        found, least = np.zeros(count, dtype=np.uint64), np.empty(count, dtype=np.float32)
        with self._scratch() as scratch:
            result = self._library.er_search(
                byref(self._structs[walk]), scratch.pointer, queries.ctypes.data, count, effort.limit, effort.ef,
                effort.rescore, effort.margin, labels.ctypes.data, similarities.ctypes.data, found.ctypes.data,
                least.ctypes.data,
            )  # fmt: skip
            self._check(scratch, result)
        return labels, similarities, least

    def score_rows(self, query: Vectors, *, limit: int, rows: Rows) -> Found:
        chosen = rows.astype(np.uint32)
        labels, similarities, found = _empty(min(limit, len(chosen)))
        with self._scratch() as scratch:
            result = self._library.er_score_rows(
                byref(self._structs["bits"]), scratch.pointer, query.ctypes.data, chosen.ctypes.data, len(chosen),
                len(labels), labels.ctypes.data, similarities.ctypes.data, byref(found),
            )  # fmt: skip
            self._check(scratch, result)
            compared = self._compared(scratch)
        return Found(labels[: found.value], similarities[: found.value], compared=compared)

    def scan(self, query: Vectors, *, limit: int, excluded: NDArray[np.bool_] | None) -> Found:
        labels, similarities, found = _empty(min(limit, self._view.header.row_count))
        with self._scratch() as scratch:
            result = self._library.er_scan(
                byref(self._structs["bits"]), scratch.pointer, query.ctypes.data, len(labels), _address(excluded),
                labels.ctypes.data, similarities.ctypes.data, byref(found),
            )  # fmt: skip
            self._check(scratch, result)
            compared = self._compared(scratch)
        return Found(labels[: found.value], similarities[: found.value], compared=compared)

    def read_rows(self, rows: Rows) -> NDArray[np.uint8]:
        chosen = rows.astype(np.uint32)
        out = np.empty((len(chosen), self._row_bytes), dtype=np.uint8)
        with self._scratch() as scratch:
            result = self._library.er_read_rows(
                byref(self._structs["bits"]), scratch.pointer, chosen.ctypes.data, len(chosen), out.ctypes.data
            )
            self._check(scratch, result)
        return out

    def _begin(
        self, struct: Any, scratch: _Scratch, query: Vectors, effort: Effort, excluded: NDArray[np.bool_] | None
    ) -> None:
        flags = _address(excluded)
        self._check(scratch, self._library.er_begin(struct, scratch.pointer, query.ctypes.data, effort.ef, flags))
        if effort.exact:
            self._library.er_set_exact(scratch.pointer)

    def _in_slices(self, scratch: _Scratch, room: Room | None, step: Callable[[], int]) -> None:
        """Steps until it is done; without a bound on what may become resident, that is once."""
        room_bytes = -1 if room is None else room.first_bytes
        while True:
            self._library.er_set_room(scratch.pointer, room_bytes)
            if not self._check(scratch, step()) or room is None:
                return
            room_bytes = room.more_bytes()

    def _finish(self, struct: Any, scratch: _Scratch, effort: Effort) -> Found:
        labels, similarities, found = _empty(effort.limit)
        result = self._library.er_finish(
            struct, scratch.pointer, effort.limit, effort.rescore, effort.margin, labels.ctypes.data,
            similarities.ctypes.data, byref(found),
        )  # fmt: skip
        self._check(scratch, result)
        least = self._library.er_least(scratch.pointer)
        return Found(labels[: found.value], similarities[: found.value], least, self._compared(scratch))

    def _compared(self, scratch: _Scratch) -> int:
        return int(self._library.er_compared(scratch.pointer))

    @contextmanager
    def _scratch(self) -> Iterator[_Scratch]:
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = _Scratch(self._library)
        try:
            yield scratch
        finally:
            self._idle.append(scratch)

    def _check(self, scratch: _Scratch, result: int) -> int:
        """Raises LibraryDamaged naming file and block, or MemoryError; other results pass."""
        if result >= 0:
            return result
        row, level, number = c_uint64(), c_int32(), c_int32()
        self._library.er_fault(scratch.pointer, byref(row), byref(level), byref(number))
        if result == _BAD_LINK:
            raise view.bad_link(self._view, row.value, level.value)
        if result == _BAD_ROW:
            raise view.bad_row(self._view, row.value)
        if result == _READ_FAILED:
            if self._decrypting is not None and (damage := self._decrypting.damage()) is not None:
                raise layout.damaged(self._view.path, damage.what) from damage
            raise view.read_failed(self._view, number.value)
        raise MemoryError("no memory for a search")

    def _struct(self, kernel: Kernel, walk: int) -> _SegmentStruct:
        header = self._view.header
        struct = _SegmentStruct(
            row_count=header.row_count,
            dimension=header.dimension,
            padded_dimension=codes.padded_dimension(header.dimension),
            m=header.m,
            m0=header.m0,
            link_bits=codes.link_bits(header.row_count),
            entry_row=header.entry_point,
            entry_position=header.entry_position,
            level_count=header.max_level,
            level_starts=self._level_starts.ctypes.data,
            signs=self._signs.ctypes.data,
            absent=self._view.absent.ctypes.data,
            file=self._view.source.descriptor,
            read=None if self._decrypting is None else self._decrypting.address,
            path=kernel.path,
            walk=walk,
        )
        for section in header.sections:
            if section.kind is SectionKind.VECTORS:
                struct.vector_type = 4 if section.encoding is Encoding.F16 else 1
            setattr(struct, section.kind.title, self._rows(section))
        return struct

    def _rows(self, section: Section) -> _RowsStruct:
        header = self._view.header
        return _RowsStruct(
            base=self._address + section.offset,
            offset=section.offset,
            reciprocal=0 if section.rows_per_group == 1 else (2**64 - 1) // section.rows_per_group + 1,
            row_bytes=section.row_bytes,
            rows_per_group=section.rows_per_group,
            group_bytes=section.group_bytes,
            block_shift=header.block_bytes.bit_length() - 1,
            hits=self._view.hits.ctypes.data + 8 * header.blocks_of(section).start,
        )


def _address(flags: NDArray[np.bool_] | None) -> int | None:
    return None if flags is None else flags.ctypes.data


def _empty(limit: int) -> tuple[Rows, NDArray[np.float32], c_uint64]:
    return np.empty(limit, dtype=np.int64), np.empty(limit, dtype=np.float32), c_uint64()
