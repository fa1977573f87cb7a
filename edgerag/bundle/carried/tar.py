"""The one kind of .tar file that a bundle is: ordinary files in one folder, one behind the other.

It is read here and not by ``tarfile``, which knows links, devices, sparse files and extended headers that a bundle has
no use for and that have been ways to write elsewhere or to read for ever. Anything but an ordinary file is refused by
name. Promises: every byte of the file is accounted for; behind the end stand zeros alone.

tar(5); the format is GNU's, for names of more than 100 letters and files of more than 8 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from .refused import Refused

TOP = "edgerag-bundle/"  # so that unpacking makes one folder
_BLOCK = 512
_READ_BYTES = 1 << 20
_LONGEST_NAME = 2048
_KINDS = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"5": "a folder", b"6": "a pipe"}


def members(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Name (without the folder), size in bytes, and the content, which is to be read to its end, of each file.

    Raises Refused, OSError.
    """
    long_name: bytes | None = None
    while True:
        head = stream.read(_BLOCK)
        if len(head) < _BLOCK:
            raise _cut_short(where)
        if not any(head):
            break
        if head[148:156] != b"%06o\0 " % (sum(head[:148]) + 8 * 0x20 + sum(head[156:])):
            raise Refused(f"{where} is damaged: a header does not match its checksum.", remedy="Copy it again.")
        size, kind = _number(head[124:136], where), head[156:157]
        if kind == b"L" and long_name is None:
            if size > _LONGEST_NAME:
                raise Refused(f"{where} holds a name of {size:,} letters.", remedy="It was not made by edgerag.")
            long_name = b"".join(_content(stream, size, where)).rstrip(b"\0")
            continue
        name = _name(head[:100].partition(b"\0")[0] if long_name is None else long_name, where)
        long_name = None
        if kind not in (b"0", b"\0"):
            raise Refused(
                f"{where}: {name} is {_KINDS.get(kind, 'of a strange kind')}, and not a file.",
                remedy="Do not use it: it was not made by edgerag.",
            )
        yield name, size, _content(stream, size, where)
    while data := stream.read(_READ_BYTES):
        if data.strip(b"\0"):
            raise Refused(f"{where} has bytes behind its end.", remedy="Do not use it: it was not made by edgerag.")


def _content(stream: BinaryIO, size: int, where: str) -> Iterator[bytes]:
    left = size
    while left:
        data = stream.read(min(left, _READ_BYTES))
        if not data:
            raise _cut_short(where)
        left -= len(data)
        yield data
    padding = stream.read(-size % _BLOCK)
    if len(padding) < -size % _BLOCK:
        raise _cut_short(where)
    if padding.strip(b"\0"):
        raise Refused(f"{where} has bytes between its files.", remedy="Do not use it: it was not made by edgerag.")


def _name(raw: bytes, where: str) -> str:
    name = raw.decode("ascii", "backslashreplace")
    if not name.startswith(TOP):
        raise Refused(f"{where} holds {name[:200]!r}, and is no bundle.", remedy="Name what `bundle create` wrote.")
    return name.removeprefix(TOP)


def _number(field: bytes, where: str) -> int:
    """Octal digits; or, of a large file, the number itself behind a first byte of 0x80."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise Refused(f"{where} is no .tar file of a bundle.", remedy="Name what `bundle create` wrote.")
    return int(digits, 8)


def _cut_short(where: str) -> Refused:
    return Refused(f"{where} is cut short.", remedy="Copy it again.")
