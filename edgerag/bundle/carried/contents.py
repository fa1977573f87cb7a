"""A bundle is opened, and every byte of it compared with its manifest.

Promises: what is handed on is what was compared (each file is read once, and copied as it is read); a file that was
changed, is missing or was added is named, all of them at once; links and devices are never followed nor opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from . import manifest as manifests
from . import minisign, tar
from .manifest import NAME, SIGNATURE_NAME, File, Manifest
from .refused import Refused

_READ_BYTES = 1 << 20
_PROBLEMS_NAMED = 20
_DEEPEST = 20  # folders; a bundle has five at most
Sink = Callable[[File], BinaryIO | None]  # where a file is to be copied to, if anywhere


class Bundle(Protocol):
    """An open bundle. ``files`` can be gone through once."""

    manifest_bytes: bytes
    signature_bytes: bytes | None

    def files(self) -> Iterator[tuple[str, int, Iterator[bytes]]]: ...


@dataclass(frozen=True, slots=True)
class Head:
    """What a bundle says that it is, and who says so."""

    manifest: Manifest
    signed_by: str  # the key's name, where it is signed; "" otherwise
    trusted: bool  # the signature was compared with a key that was given
    comment: str  # of the signature


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Bundle]:
    """Raises Refused where ``path`` is neither folder nor file of a bundle."""
    try:
        if path.is_dir():
            yield _Folder(path)
            return
        with path.open("rb") as stream:
            yield _Tar(stream, str(path))
    except FileNotFoundError as error:
        raise Refused(f"There is no {error.filename}.", remedy="Name what `edgerag bundle create` wrote.") from error
    except OSError as error:
        raise Refused(f"{error.filename or path} cannot be read: {error.strerror or error}.") from error


def head(bundle: Bundle, where: str, key: minisign.PublicKey | None) -> Head:
    """Raises Refused; also where a key is given and the bundle is not signed with it."""
    signed = None
    if bundle.signature_bytes is not None:
        signed = minisign.signature(bundle.signature_bytes, f"{where}: {SIGNATURE_NAME}")
    if key is not None:
        if signed is None:
            raise Refused(
                f"{where} is not signed, and the key {key.name} was asked for.",
                remedy="Do not use it, unless you trust the way that it came.",
            )
        minisign.check(bundle.manifest_bytes, signed, key, where)
    found = manifests.read(bundle.manifest_bytes, where)
    comment = signed.comment.decode("utf-8", "replace") if signed else ""
    return Head(found, minisign.shown_id(signed.key_id) if signed else "", key is not None, comment)


def check(bundle: Bundle, manifest: Manifest, where: str, *, sink: Sink, progress: Callable[[int, int], None]) -> None:
    """Compares every file, and copies those for which ``sink`` gives a file. Raises Refused, which names each file that
    was changed, is missing or was added; what was copied until then must not be used."""
    listed = {file.name: file for file in manifest.files}
    seen: set[str] = set()
    problems: list[str] = []
    done = 0
    for name, size, pieces in bundle.files():
        file = listed.get(name)
        if file is None or name in seen:
            problems.append(f"{name[:300]} is there twice" if name in seen else f"{name[:300]} was added")
            for _ in pieces:
                continue
            continue
        seen.add(name)
        digest = hashlib.sha256()
        target = sink(file) if size == file.size_bytes else None
        with target or contextlib.nullcontext():
            for piece in pieces:
                digest.update(piece)
                done += len(piece)
                if target is not None:
                    target.write(piece)
                progress(min(done, manifest.size_bytes), manifest.size_bytes)
        if size != file.size_bytes or digest.hexdigest() != file.sha256:
            problems.append(f"{name} was changed")
    problems += [f"{name} is missing" for name in listed if name not in seen]
    if problems:
        problems.sort()
        more = f", and {len(problems) - _PROBLEMS_NAMED:,} more" if len(problems) > _PROBLEMS_NAMED else ""
        raise Refused(
            f"{where} is not what its manifest says: {', '.join(problems[:_PROBLEMS_NAMED])}{more}.",
            remedy="Copy it again, or get it again from who made it; nothing was installed.",
            problems=tuple(problems),
        )


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.manifest_bytes = _small(path / NAME, manifests.LARGEST_BYTES)
        self.signature_bytes: bytes | None = None
        if os.path.lexists(path / SIGNATURE_NAME):
            self.signature_bytes = _small(path / SIGNATURE_NAME, minisign.LONGEST_FILE_BYTES)

    def files(self) -> Iterator[tuple[str, int, Iterator[bytes]]]:
        for name in sorted(self._names(self._path, "")):
            if name in (NAME, SIGNATURE_NAME):
                continue
            with _ordinary(self._path / name) as stream:
                size = os.fstat(stream.fileno()).st_size
                yield name, size, iter(lambda: stream.read(_READ_BYTES), b"")

    def _names(self, folder: Path, above: str) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{above}{entry.name}"
                if entry.is_dir(follow_symlinks=False) and name.count("/") < _DEEPEST:
                    yield from self._names(folder / entry.name, f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield name
                else:  # too deep a folder among them
                    raise _no_file(folder / entry.name)


class _Tar:
    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._members = tar.members(stream, where)
        self._first: tuple[str, int, Iterator[bytes]] | None = None
        name, size, pieces = next(self._members, ("", 0, iter(())))
        if name != NAME or size > manifests.LARGEST_BYTES:
            raise Refused(f"{where} is no bundle.", remedy="Name what `edgerag bundle create` wrote.")
        self.manifest_bytes = b"".join(pieces)
        self.signature_bytes: bytes | None = None
        second = next(self._members, None)
        if second is not None and second[0] == SIGNATURE_NAME and second[1] <= minisign.LONGEST_FILE_BYTES:
            self.signature_bytes = b"".join(second[2])
        else:
            self._first = second

    def files(self) -> Iterator[tuple[str, int, Iterator[bytes]]]:
        if self._first is not None:
            yield self._first
        yield from self._members


@contextlib.contextmanager
def _ordinary(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file, open; nothing else is waited for or followed. Raises Refused, OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise _no_file(path) from error
        raise
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _no_file(path)
        yield stream


def _small(path: Path, most_bytes: int) -> bytes:
    with _ordinary(path) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise Refused(f"{path} is too large.", remedy="Get the bundle again from who made it.")
    return data


def _no_file(path: Path) -> Refused:
    return Refused(
        f"{path} is a link, a device or a folder far down, and not a file.", remedy="Do not use it: edgerag makes none."
    )
