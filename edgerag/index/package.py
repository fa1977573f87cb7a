"""A library as one file: what ``library export`` and ``library backup`` write and ``library import`` reads.

    head | manifest (JSON) | part | part | ...

The manifest names each part with its size and SHA-256, the embedder, and the version of the database; the head has
the SHA-256 of the manifest. So every byte is checked, and a damaged one is named by its part. Parts lie one behind the
other without gaps, and are written and read as streams. docs/index-format.md has it byte by byte.

The names of parts are those of a library's own files and no others: a package cannot write anywhere else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path

from edgerag.encryption.key_record import FILE_NAME as KEY_NAME
from edgerag.errors import LibraryDamaged, LibraryVersionUnknown
from edgerag.index import at_rest
from edgerag.index.store import DATABASE_NAME
from edgerag.private_database import private_opener
from edgerag.types import EmbedderIdentity

MAGIC = b"\x89ERPACK\n"
VERSION = 1
ENCRYPTED_VERSION = 2  # of a library that is encrypted: a program that knows none refuses it by this number
_HEAD = struct.Struct("<8sIQ32s")
_MOST_MANIFEST_BYTES = 16_000_000  # of 100,000 segments; more is a damaged number
_READ_BYTES = 1 << 20
_SINGLE = "|".join(map(re.escape, (DATABASE_NAME, at_rest.NAME, KEY_NAME)))
_PART_NAME = re.compile(rf"{_SINGLE}|segments/[0-9]{{8,}}\.hnsw")

Progress = Callable[[int, int], None]  # bytes done, bytes of all parts


@dataclass(frozen=True, slots=True)
class Part:
    name: str  # of the file, inside the library's folder
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    library: str  # its name where it was made
    embedder: EmbedderIdentity
    database_version: int
    document_count: int
    chunk_count: int
    parts: tuple[Part, ...]

    @property
    def is_encrypted(self) -> bool:
        return any(part.name == KEY_NAME for part in self.parts)

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


def described(name: str, stream: BufferedReader) -> Part:
    """An open file as a part. Raises LibraryDamaged for one that cannot be read."""
    stream.seek(0)
    digest, size_bytes = hashlib.sha256(), 0
    while data := _read(stream, _READ_BYTES):
        digest.update(data)
        size_bytes += len(data)
    return Part(name, size_bytes, digest.hexdigest())


def write_package(
    sink: BufferedWriter, manifest: Manifest, streams: Mapping[str, BufferedReader], *, progress: Progress
) -> None:
    """Raises LibraryDamaged where a part is not what the manifest says any more, OSError."""
    text = json.dumps(_record(manifest), ensure_ascii=True, indent=1).encode("ascii")
    version = ENCRYPTED_VERSION if manifest.is_encrypted else VERSION
    sink.write(_HEAD.pack(MAGIC, version, len(text), hashlib.sha256(text).digest()) + text)
    done = 0
    for part in manifest.parts:
        digest, stream = hashlib.sha256(), streams[part.name]
        stream.seek(0)
        for data in _pieces(stream, part.size_bytes):
            digest.update(data)
            sink.write(data)
            done += len(data)
            progress(done, manifest.size_bytes)
        if digest.hexdigest() != part.sha256:
            raise LibraryDamaged(f"{part.name} changed while it was read.", remedy="Try again.")


def read_manifest(stream: BufferedReader, where: str) -> Manifest:
    """Leaves ``stream`` at the first part. Raises LibraryDamaged, LibraryVersionUnknown, OSError."""
    head = stream.read(_HEAD.size)
    if head[: len(MAGIC)] != MAGIC:
        raise LibraryDamaged(f"{where} is no library that edgerag exported.", remedy="Name a file of `library export`.")
    if len(head) < _HEAD.size:
        raise _damaged(where, "its head", "is cut short")
    _, version, length, digest = _HEAD.unpack(head)
    if version > ENCRYPTED_VERSION:
        raise LibraryVersionUnknown(
            f"{where} has the format version {version}, and this program knows versions up to {ENCRYPTED_VERSION}.",
            remedy="Import it with the newer edgerag that it was made with, or export it again with this one.",
        )
    if not 0 < length <= _MOST_MANIFEST_BYTES or version < 1:
        raise _damaged(where, "its head", "does not match its checksum")
    text = stream.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise _damaged(where, "its manifest", "is cut short" if len(text) < length else "does not match its checksum")
    try:
        return _manifest(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(where, "its manifest", f"is not what was written ({error})") from error


def read_parts(stream: BufferedReader, manifest: Manifest, where: str, folder: Path, *, progress: Progress) -> None:
    """Writes every part into ``folder``, durably, each compared with its checksum.

    Raises LibraryDamaged with the name of the first part that is not what was written, OSError.
    """
    done = 0
    for part in manifest.parts:
        path = folder / part.name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        digest, size_bytes = hashlib.sha256(), 0
        with open(path, "xb", opener=private_opener) as sink:
            for data in _pieces(stream, part.size_bytes):
                digest.update(data)
                size_bytes += len(data)
                sink.write(data)
                progress(done + size_bytes, manifest.size_bytes)
            sink.flush()
            os.fsync(sink.fileno())
        done += size_bytes
        if size_bytes < part.size_bytes:
            raise _damaged(
                where, f"its part {part.name}", f"is cut short ({size_bytes:,} of {part.size_bytes:,} bytes)"
            )
        if digest.hexdigest() != part.sha256:
            raise _damaged(where, f"its part {part.name}", "does not match its checksum")
    if stream.read(1):
        raise _damaged(where, "its end", "has bytes behind the last part")


def _pieces(stream: BufferedReader, size_bytes: int) -> Iterator[bytes]:
    left = size_bytes
    while left and (data := _read(stream, min(left, _READ_BYTES))):
        left -= len(data)
        yield data


def _read(stream: BufferedReader, size_bytes: int) -> bytes:
    """Raises LibraryDamaged with the name of the file: what is written meanwhile is another one."""
    try:
        return stream.read(size_bytes)
    except OSError as error:
        raise LibraryDamaged(
            f"{stream.name} cannot be read: {error.strerror or error}.", remedy="Check that disk and its connection."
        ) from error


def _record(manifest: Manifest) -> Mapping[str, object]:
    return {
        "library": manifest.library,
        "embedder": {
            "name": manifest.embedder.name,
            "weights_sha256": manifest.embedder.weights_sha256,
            "dimension": manifest.embedder.dimension,
            "languages": list(manifest.embedder.languages),
        },
        "database_version": manifest.database_version,
        "documents": manifest.document_count,
        "chunks": manifest.chunk_count,
        "parts": [{"name": part.name, "size_bytes": part.size_bytes, "sha256": part.sha256} for part in manifest.parts],
    }


def _manifest(record: Mapping[str, object]) -> Manifest:
    """Raises ValueError, KeyError or TypeError for what is no manifest, or names a file that no library has."""
    embedder, parts = record["embedder"], record["parts"]
    if not isinstance(embedder, dict) or not isinstance(parts, list):
        raise TypeError("embedder or parts")
    read = tuple(Part(str(each["name"]), int(each["size_bytes"]), str(each["sha256"])) for each in parts)
    names = [part.name for part in read]
    for part in read:
        if not _PART_NAME.fullmatch(part.name) or part.size_bytes < 0:
            raise ValueError(f"{part.name[:80]!r} is no file of a library")
    if len(set(names)) != len(names) or DATABASE_NAME not in names:
        raise ValueError("a part is there twice, or the database is not")
    return Manifest(
        library=str(record["library"]),
        embedder=EmbedderIdentity(
            name=str(embedder["name"]),
            weights_sha256=str(embedder["weights_sha256"]),
            dimension=int(embedder["dimension"]),
            languages=tuple(map(str, embedder["languages"])),
        ),
        database_version=_whole(record["database_version"]),
        document_count=_whole(record["documents"]),
        chunk_count=_whole(record["chunks"]),
        parts=read,
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _damaged(where: str, part: str, how: str) -> LibraryDamaged:
    return LibraryDamaged(
        f"{where}: {part} {how}.", remedy="Copy the file again, or export it again; nothing was imported."
    )
