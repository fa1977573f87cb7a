"""Wheels are taken out of a pack: one .xz file in which they lie one behind the other.

A wheel in it is a ZIP file whose members are not compressed, so that what several wheels have in common is packed once.
Promises: what leaves here is what the manifest says of it, or is refused by name; never more is unpacked than that
says, and the memory that it takes is bounded, whatever is in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .manifest import File, Manifest, Pack
from .refused import Refused

if TYPE_CHECKING:
    import lzma

_READ_BYTES = 1 << 18
_PIECE_BYTES = 1 << 20
# A pack is made with a window of 64 MiB, which is what reading it takes; a damaged one may ask for anything.
_MOST_MEMORY_BYTES = 96 << 20


def check_can_unpack(manifest: Manifest) -> None:
    """Raises Refused where this Python cannot read the packs that the bundle has."""
    if not manifest.packs:
        return
    try:
        import lzma  # noqa: F401 - a Python that was built without liblzma has none
    except ImportError as error:
        raise Refused(
            "This Python has no module lzma, with which the wheels of this bundle are packed.",
            remedy="Use the system's python3, or a Python that was built with liblzma.",
        ) from error


def packs_of(manifest: Manifest, wheels: Collection[str]) -> list[Pack]:
    """Those in which any of ``wheels`` lies."""
    return [pack for pack in manifest.packs if any(wheel.name in wheels for wheel in pack.wheels)]


def unpack(pack: Pack, folder: Path, wheels: Collection[str]) -> None:
    """Writes those of ``wheels`` that lie in ``pack`` into ``folder``, in which the pack is, by their names in the
    manifest. Raises Refused, OSError."""
    import lzma

    last = max(place for place, wheel in enumerate(pack.wheels) if wheel.name in wheels)
    try:
        with (folder / pack.file).open("rb") as source:
            unpacked = _Unpacked(source)
            for wheel in pack.wheels[: last + 1]:
                pieces = unpacked.take(wheel.size_bytes)
                if wheel.name in wheels:
                    _write(wheel, pieces, folder, pack)
                else:
                    for _ in pieces:
                        continue
    except (lzma.LZMAError, EOFError) as error:
        raise Refused(f"{pack.file} cannot be unpacked: {error}.", remedy="Get the bundle again.") from error
    except MemoryError as error:
        raise Refused(
            f"{pack.file} cannot be unpacked: that takes {_MOST_MEMORY_BYTES >> 20} MB of memory, which are not there.",
            remedy="Close other programs, or raise the limit (ulimit -v).",
        ) from error


def _write(wheel: File, pieces: Iterator[bytes], folder: Path, pack: Pack) -> None:
    path, digest = folder / wheel.name, hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as sink:
        for piece in pieces:
            digest.update(piece)
            sink.write(piece)
    if digest.hexdigest() != wheel.sha256:
        raise Refused(
            f"{wheel.name}, as it lies in {pack.file}, is not what the manifest says.",
            remedy="Get the bundle again from who made it; nothing was installed.",
        )


class _Unpacked:
    """What a compressed file holds, from its beginning to its end, a megabyte at a time."""

    def __init__(self, source: BinaryIO) -> None:
        import lzma

        self._source = source
        self._decoder: lzma.LZMADecompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY_BYTES)

    def take(self, size_bytes: int) -> Iterator[bytes]:
        """The next so many bytes. Raises LZMAError, and EOFError where it ends before."""
        left = size_bytes
        while left:
            if self._decoder.eof:
                raise EOFError("it ends before what the manifest lists")
            data = self._source.read(_READ_BYTES) if self._decoder.needs_input else b""
            if self._decoder.needs_input and not data:
                raise EOFError("it is cut short")
            piece = self._decoder.decompress(data, max_length=min(left, _PIECE_BYTES))
            left -= len(piece)
            if piece:
                yield piece
