"""Checksums of the database file while nobody writes: ``library.sums`` beside it.

A writer that closes in order leaves two checksums of each block of ``library.sqlite``; the first thing that the next
writer does is to delete them. So where they are there, they hold, and a block that does not match them is damaged: in
rows, words, indexes and pages that hold nothing alike. Where they are not there (somebody writes, or was killed), the
checks of rows and of SQLite remain. docs/index-format.md has the file byte by byte.

Two sums, CRC-32 and Adler-32, because they are the fastest that zlib has, and because a single flipped bit can be found
with the first and confirmed with the second (bits.py).
"""

from __future__ import annotations

import contextlib
import itertools
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgerag.beside_sqlite import open_beside_sqlite
from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged
from edgerag.machine.disk import put_in_place, sync_folder
from edgerag.private_database import private_opener

NAME = "library.sums"
MAGIC = b"\x89ERSUM\r\n"
VERSION = 1
BLOCK_BYTES = 65_536  # small enough to name what is touched, large enough that the file is 1/8,192 of the database
_HEADER = struct.Struct("<8sIIQII")
_BLOCK = struct.Struct("<II")
_CRC_OFFSET = 28


@dataclass(frozen=True, slots=True)
class BlockSum:
    crc32: int
    adler32: int


@dataclass(frozen=True, slots=True)
class FileSums:
    """Of a database at rest."""

    size_bytes: int
    blocks: tuple[BlockSum, ...]


def block_sum(data: bytes | bytearray) -> BlockSum:
    return BlockSum(zlib.crc32(data), zlib.adler32(data))


def sums_of(database: Path) -> FileSums:
    """As the file is now. Raises OSError."""
    with open_beside_sqlite(database) as stream:
        blocks = tuple(block_sum(data) for data in iter(lambda: stream.read(BLOCK_BYTES), b""))
        return FileSums(stream.tell(), blocks)


def write_sums(folder: Path, database: Path) -> None:
    """Notes the sums of a database that nobody writes. Raises OSError; then there are none, as before."""
    sums = sums_of(database)
    body = b"".join(_BLOCK.pack(each.crc32, each.adler32) for each in sums.blocks)
    fields = (MAGIC, VERSION, BLOCK_BYTES, sums.size_bytes, len(sums.blocks))
    crc32 = zlib.crc32(_HEADER.pack(*fields, 0) + body)
    path = folder / NAME
    unfinished = path.with_name(NAME + ".tmp")
    try:
        with open(unfinished, "wb", opener=private_opener) as stream:
            stream.write(_HEADER.pack(*fields, crc32) + body)
        put_in_place(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def begin_to_write(folder: Path, database: Path) -> None:
    """To be called before the database is changed: forgets the sums, durably. Raises LibraryDamaged where the database
    does not match them: writing on would make damage part of what the next sums are made of. OSError."""
    path = folder / NAME
    if not path.exists():
        return
    if faults := damaged_blocks(folder, database):
        raise LibraryDamaged(
            f"{database} does not match its checksums ({blocks_text(faults)}); nothing was written to it.",
            remedy=REPAIR_LIBRARY,
        )
    forget(folder)


def forget(folder: Path) -> None:
    """Takes the sums away, durably, whatever they are: a folder of that name, which is not ours, is moved aside. Raises
    OSError."""
    path = folder / NAME
    if path.is_dir() and not path.is_symlink():
        numbers = itertools.count(1)
        aside = next(place for n in numbers if not (place := path.with_name(f"{NAME}.aside-{n}")).exists())
        path.rename(aside)
    else:
        path.unlink(missing_ok=True)
    sync_folder(folder)


def blocks_text(blocks: Sequence[int]) -> str:
    """For people: the first of them."""
    named = ", ".join(map(str, blocks[:5]))
    return f"block{'s' if len(blocks) > 1 else ''} {named}{', ...' if len(blocks) > 5 else ''} of {BLOCK_BYTES:,} bytes"


def read_sums(folder: Path) -> FileSums | None:
    """None where there are none. Raises LibraryDamaged for a file that is not what was written, OSError."""
    path = folder / NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise _damaged(path, "is a folder, and should be a file") from error
    if len(raw) < _HEADER.size:
        raise _damaged(path, "is cut short")
    magic, version, block_bytes, size_bytes, count, crc32 = _HEADER.unpack_from(raw)
    without = raw[:_CRC_OFFSET] + bytes(4) + raw[_CRC_OFFSET + 4 :]
    if magic != MAGIC or zlib.crc32(without) != crc32:
        raise _damaged(path, "does not match its own checksum")
    if version != VERSION or block_bytes != BLOCK_BYTES:
        raise _damaged(path, f"has the version {version} with blocks of {block_bytes:,} bytes, which is not known here")
    if len(raw) != _HEADER.size + count * _BLOCK.size:
        raise _damaged(path, f"does not hold the {count:,} checksums that it names")
    return FileSums(size_bytes, tuple(BlockSum(*pair) for pair in _BLOCK.iter_unpack(raw[_HEADER.size :])))


def damaged_blocks(folder: Path, database: Path, *, stopped: Callable[[], bool] = lambda: False) -> list[int] | None:
    """The blocks that do not match, in order; None where nothing can be told: no sums, or somebody began to write.

    Raises LibraryDamaged for sums that are damaged themselves, OSError.
    """
    before = _state(folder)
    sums = read_sums(folder)
    if sums is None:
        return None
    faults = [number for number, fits in enumerate(_compared(database, sums, stopped)) if not fits]
    if database.stat().st_size != sums.size_bytes and len(sums.blocks) - 1 not in faults:
        faults.append(max(0, len(sums.blocks) - 1))  # cut off, or longer than it was
    # A writer deletes the sums first: what was compared while they lay there was at rest.
    return faults if _state(folder) == before and not stopped() else None


def _compared(database: Path, sums: FileSums, stopped: Callable[[], bool]) -> Iterator[bool]:
    with open_beside_sqlite(database) as stream:
        for expected in sums.blocks:
            if stopped():
                return
            yield block_sum(stream.read(BLOCK_BYTES)) == expected


def _state(folder: Path) -> tuple[int, int] | None:
    try:
        stat = (folder / NAME).stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _damaged(path: Path, what: str) -> LibraryDamaged:
    return LibraryDamaged(
        f"{path} {what}.", remedy="`edgerag library repair` makes it anew if the database itself is whole."
    )
