"""Archives: ZIP, TAR, and GZ, BZ2 and XZ around a TAR or a single file, as a container of their regular files.

A compressed TAR is unpacked once, into memory, so that asking for its members one by one stays linear; how much
that may be follows from the memory the parser has. A damaged archive gives what is whole in it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentUnsupported
from edgerag.ingest.parse import members
from edgerag.ingest.parse.name_encoding import name_encoding
from edgerag.ingest.parse.source import Container, Source
from edgerag.ingest.parse.zipped import open_zip
from edgerag.types import ParsedDocument

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_COMPRESSED: tuple[tuple[bytes, Callable[[IO[bytes]], io.BufferedIOBase]], ...] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ", lzma.LZMAFile),
)
_SUFFIXES = frozenset({".gz", ".bz2", ".xz", ".tgz", ".tbz", ".tbz2", ".txz"})
_BLOCK = tarfile.BLOCKSIZE
_PIECE = 2**20
# Of the parser's address space: beside it stand the packed file (until the first answer) and the member in hand.
_UNPACKED_SHARE = 0.35
_UNPACKED_BYTES = 700_000_000  # where nothing limits the memory
_CUT = "The archive is cut short: the members before the cut are read."
_DAMAGED = "The archive is damaged in the middle: the members before and after it are read."
# What the standard library lets pass of a header that makes no sense.
_TAR_ERRORS = (tarfile.TarError, ValueError, OverflowError, LookupError, OSError)


def parse(source: Source) -> Container:
    """Raises DocumentDamaged when nothing can be made of it, DocumentEncrypted when all of it needs a password,
    DocumentUnsupported for a bomb or more members than are read."""
    data = source.data
    if data.startswith(_ZIP):
        container, warnings = open_zip(data, source.passwords)
        return _checked(container, warnings, source, "application/zip")
    for signature, opener in _COMPRESSED:
        if data.startswith(signature):
            return _compressed(source, opener)
    return _tar(io.BytesIO(data), source, "")


def is_tar(head: bytes) -> bool:
    """True for the first block of a TAR of any age: the checksum of its header is right."""
    block = head[:_BLOCK]
    if len(block) < _BLOCK or not block.strip(b"\x00"):
        return False
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


# ---------------------------------------------------------------- compressed


def _compressed(source: Source, opener: Callable[[IO[bytes]], io.BufferedIOBase]) -> Container:
    pieces = _pieces(source.data, opener)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _BLOCK:
            break
    if is_tar(head):
        unpacked = io.BytesIO()
        problem = ""
        try:
            unpacked.write(head)
            for piece in pieces:
                unpacked.write(piece)
                members.refuse_bomb(len(source.data), unpacked.tell())
                if unpacked.tell() > _room():
                    raise DocumentUnsupported(
                        f"Unpacked it is larger than {_room() / 1e6:,.0f} MB.",
                        remedy="Unpack it and ingest the folder, or raise ingest.parse_memory.",
                    )
        except DocumentDamaged:
            problem = _CUT
        return _tar(unpacked, source, problem)
    name = _inner_name(source)

    def read(asked: str, limit: int) -> bytes:
        if asked != name:
            raise members.missing(asked)
        content = bytearray()
        for piece in _pieces(source.data, opener):
            content += piece
            if len(content) > limit:
                raise members.too_large(limit)
            members.refuse_bomb(len(source.data), len(content))
        return bytes(content)

    return Container((name,), read)


def _pieces(data: bytes, opener: Callable[[IO[bytes]], io.BufferedIOBase]) -> Iterator[bytes]:
    """What is unpacked, piece by piece. Raises DocumentDamaged at the point where it is not whole."""
    with opener(io.BytesIO(data)) as file:
        while True:
            try:
                piece = file.read1(_PIECE)
            except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
                if isinstance(error, gzip.BadGzipFile) and str(error).startswith("Not a gzipped file"):
                    return  # something was appended behind the end, as gzip itself only remarks
                raise DocumentDamaged(
                    f"It is damaged or cut short: {error}.", remedy="Copy it again from where it came from."
                ) from error
            if not piece:
                return
            yield piece


def _inner_name(source: Source) -> str:
    path = PurePath(source.name)
    name = path.stem if path.suffix.lower() in _SUFFIXES else path.name
    return members.file_name(name, fallback="content")


def _room() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return _UNPACKED_BYTES if soft == resource.RLIM_INFINITY else int(soft * _UNPACKED_SHARE)


# ---------------------------------------------------------------- TAR


@dataclass(frozen=True, slots=True)
class _Entry:
    info: tarfile.TarInfo
    tar: tarfile.TarFile


def _tar(file: io.BytesIO, source: Source, problem: str) -> Container:
    length = file.seek(0, io.SEEK_END)
    found = members.Findings()
    entries, found_problem = _entries(file, length, found)
    found.damage = problem or found_problem
    if found.damage and not entries:
        raise DocumentDamaged("The tar archive is damaged or cut short.", remedy="Copy it again.")
    by_name = _by_name(entries, found)

    def read(name: str, limit: int) -> bytes:
        if name not in by_name:
            raise members.missing(name)
        return _content(by_name[name], file, length, limit)

    return _checked(Container(tuple(by_name), read), found.sentences(), source, "application/x-tar")


def _entries(file: io.BytesIO, length: int, found: members.Findings) -> tuple[list[_Entry], str]:
    """The regular files, and what is wrong with the archive ("" if nothing).

    Where a header is damaged the next one is looked for, which the standard library would take for the end.
    """
    entries: list[_Entry] = []
    problem = ""
    start: int | None = 0
    while start is not None:
        file.seek(start)
        end = start
        try:
            tar = tarfile.TarFile(fileobj=file, mode="r", encoding="utf-8", errors="surrogateescape")
            while (info := tar.next()) is not None:
                if info.offset < end or info.size < 0:
                    raise tarfile.ReadError("it goes back")
                end = info.offset_data
                if info.isreg():
                    entries.append(_Entry(info, tar))
                    if len(entries) > members.MOST_MEMBERS:
                        raise members.too_many(len(entries), "files or more")
                elif not info.isdir() and len(found.links) < members.MOST_MEMBERS:
                    found.links.append(info.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
            end = tar.offset
            file.seek(end)
            block = file.read(_BLOCK)
            if len(block) < _BLOCK:  # a whole archive ends with blocks of zeros
                return entries, problem or _CUT
            if block.strip(b"\x00"):
                problem = _DAMAGED
        except _TAR_ERRORS:
            problem = _CUT if entries and _end(entries[-1].info) > length else _DAMAGED
        start = _next_header(file, end + _BLOCK, length)
    return entries, problem


def _end(info: tarfile.TarInfo) -> int:
    return info.offset_data + (0 if info.issparse() else info.size)


def _next_header(file: io.BytesIO, position: int, length: int) -> int | None:
    position = -(-position // _BLOCK) * _BLOCK
    file.seek(position)
    for start in range(position, length, _BLOCK):
        block = file.read(_BLOCK)
        if block[257:262] == b"ustar" and is_tar(block):
            return start
    return None


def _by_name(entries: list[_Entry], found: members.Findings) -> dict[str, _Entry]:
    raw_names = [entry.info.name.encode("utf-8", "surrogateescape") for entry in entries]
    encoding = name_encoding(raw_names)
    decoded = (raw.decode(encoding, "replace") for raw in raw_names)
    return members.named(zip(decoded, entries, strict=True), found)


def _content(entry: _Entry, file: io.BytesIO, length: int, limit: int) -> bytes:
    info = entry.info
    if info.size > limit:
        raise members.too_large(limit)
    if _end(info) > length:
        raise DocumentDamaged("The archive is cut short in the middle of it.", remedy="Copy the archive again.")
    if info.issparse():
        try:
            sparse = entry.tar.extractfile(info)
            assert sparse is not None, "only regular files are members"
            return sparse.read()
        except _TAR_ERRORS as error:
            raise DocumentDamaged(
                f"It is damaged in the archive: {error}.", remedy="Copy the archive again."
            ) from error
    file.seek(info.offset_data)
    return file.read(info.size)


# ---------------------------------------------------------------- both


def _checked(container: Container, warnings: list[str], source: Source, media_type: str) -> Container:
    if not container.members:
        raise DocumentEmpty("There are no files in the archive, or only hidden ones.")
    if not warnings:
        return container
    # The archive has no words of its own; the document carries the warnings.
    document = ParsedDocument("", source.fallback_title, media_type, warnings=tuple(warnings))
    return Container(container.members, container.read, document)
