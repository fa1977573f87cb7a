"""A bundle is written: one folder, or one .tar file, whole or not at all.

The same contents give the same bytes: nothing of when, where and by whom it was made is in it.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from edgerag.bundle.carried import tar
from edgerag.bundle.carried.manifest import NAME, SIGNATURE_NAME, File, Manifest, written
from edgerag.errors import BundleError, UsageError
from edgerag.machine.disk import storage_error, sync_folder

Content = Path | bytes
_READ_BYTES = 1 << 20


def described(contents: Mapping[str, Content]) -> tuple[File, ...]:
    """Every file with size and SHA-256, by name. Raises BundleError for one that cannot be read."""
    return tuple(File(name, *_measured(content)) for name, content in sorted(contents.items()))


def write_bundle(
    out: Path,
    manifest: Manifest,
    contents: Mapping[str, Content],
    *,
    sign: Callable[[bytes], bytes] | None,
    progress: Callable[[int, int], None],
) -> None:
    """Raises UsageError where ``out`` is there, BundleError where a file changed meanwhile, StorageFull."""
    if os.path.lexists(out):
        raise UsageError(f"{out} is there already.", remedy="Name another one, or delete it.")
    text = written(manifest)
    heads: dict[str, bytes] = {NAME: text}
    if sign is not None:
        heads[SIGNATURE_NAME] = sign(text)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            made = Path(scratch) / "made"
            writer = _write_tar if out.suffix == ".tar" else _write_folder
            writer(made, heads, _pieces(manifest, contents, progress))
            made.rename(out)
        sync_folder(out.parent)
    except OSError as error:
        raise storage_error(error, out) from error


Opened = Iterator[tuple[File, Iterator[bytes]]]


def _write_folder(made: Path, heads: Mapping[str, bytes], files: Opened) -> None:
    made.mkdir()
    for name, data in heads.items():
        (made / name).write_bytes(data)
    for file, pieces in files:
        path = made / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as sink:
            sink.writelines(pieces)
            sink.flush()
            os.fsync(sink.fileno())


def _write_tar(made: Path, heads: Mapping[str, bytes], files: Opened) -> None:
    with made.open("xb") as sink:
        for name, data in heads.items():
            _write_member(sink, name, len(data), iter((data,)))
        for file, pieces in files:
            _write_member(sink, file.name, file.size_bytes, pieces)
        sink.write(bytes(2 * tarfile.BLOCKSIZE))
        sink.flush()
        os.fsync(sink.fileno())


def _write_member(sink: BinaryIO, name: str, size_bytes: int, pieces: Iterator[bytes]) -> None:
    info = tarfile.TarInfo(tar.TOP + name)
    info.size, info.mode = size_bytes, 0o644
    sink.write(info.tobuf(tarfile.GNU_FORMAT, "ascii", "strict"))
    for piece in pieces:
        sink.write(piece)
    sink.write(bytes(-size_bytes % tarfile.BLOCKSIZE))


def _pieces(manifest: Manifest, contents: Mapping[str, Content], progress: Callable[[int, int], None]) -> Opened:
    done = 0
    for file in manifest.files:

        def read(file: File = file) -> Iterator[bytes]:
            nonlocal done
            digest, size_bytes = hashlib.sha256(), 0
            with _stream(contents[file.name]) as stream:
                while piece := stream.read(_READ_BYTES):
                    digest.update(piece)
                    size_bytes += len(piece)
                    done += len(piece)
                    yield piece
                    progress(done, manifest.size_bytes)
            if (size_bytes, digest.hexdigest()) != (file.size_bytes, file.sha256):
                raise BundleError(f"{file.name} changed while it was read.", remedy="Try again.")

        yield file, read()


def _measured(content: Content) -> tuple[int, str]:
    if isinstance(content, bytes):
        return len(content), hashlib.sha256(content).hexdigest()
    try:
        with content.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return stream.tell(), digest.hexdigest()
    except OSError as error:
        raise BundleError(f"{error.filename} cannot be read: {error.strerror}.") from error


@contextmanager
def _stream(content: Content) -> Iterator[BinaryIO]:
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as stream:
        yield stream
