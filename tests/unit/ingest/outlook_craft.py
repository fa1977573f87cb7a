"""Outlook messages made on the spot: an OLE file (MS-CFB, version 3) around the properties of MS-OXMSG."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

Tree = Mapping[str, "bytes | Tree"]

_SECTOR, _MINI = 512, 64
_MINI_LIMIT = 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def ole(tree: Tree) -> bytes:
    """An OLE file with these streams and storages."""
    entries: list[list[object]] = []  # name, kind, right sibling, child, content
    _add(entries, "Root Entry", tree)
    entries[0][1] = 5
    mini, mini_fat = bytearray(), []
    sectors: list[bytes] = []
    fat: list[int] = []

    def chain(data: bytes) -> int:
        if not data:
            return _END
        start = len(sectors)
        pieces = [data[at : at + _SECTOR].ljust(_SECTOR, b"\0") for at in range(0, len(data), _SECTOR)]
        sectors.extend(pieces)
        fat.extend([*range(start + 1, start + len(pieces)), _END])
        return start

    starts = []
    for entry in entries:
        content = entry[4]
        if not isinstance(content, bytes) or not content:
            starts.append((0 if not isinstance(content, bytes) else _END, 0))
        elif len(content) < _MINI_LIMIT:
            start, count = len(mini) // _MINI, -(-len(content) // _MINI)
            mini += content.ljust(count * _MINI, b"\0")
            mini_fat += [*range(start + 1, start + count), _END]
            starts.append((start, len(content)))
        else:
            starts.append((chain(content), len(content)))
    starts[0] = (chain(bytes(mini)), len(mini))
    directory = b"".join(
        str(name).encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBBIII", len(str(name)) * 2 + 2, kind, 1, _FREE, right, child)
        + bytes(36)
        + struct.pack("<IQ", *start)
        for (name, kind, right, child, _), start in zip(entries, starts, strict=True)
    )
    first_directory = chain(directory.ljust(-(-len(directory) // _SECTOR) * _SECTOR, b"\0"))
    first_mini = chain(struct.pack(f"<{len(mini_fat)}I", *mini_fat).ljust(-(-len(mini_fat) // 128) * _SECTOR, b"\xff"))
    fat_count = 1
    while (len(fat) + fat_count) * 4 > fat_count * _SECTOR:
        fat_count += 1
    first_fat = len(sectors)
    fat += [_FAT] * fat_count
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(fat_count * _SECTOR, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    mini_fat_count = -(-len(mini_fat) // 128)
    header += struct.pack("<HHHHH6xII", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_count)
    header += struct.pack("<IIIIIII", first_directory, 0, _MINI_LIMIT, first_mini, mini_fat_count, _END, 0)
    header += struct.pack("<109I", *range(first_fat, first_fat + fat_count), *[_FREE] * (109 - fat_count))
    return header + b"".join(sectors) + table


def _add(entries: list[list[object]], name: str, content: bytes | Tree) -> int:
    index = len(entries)
    entries.append([name, 2 if isinstance(content, bytes) else 1, _FREE, _FREE, content])
    before = None
    for child, inner in content.items() if not isinstance(content, bytes) else ():
        number = _add(entries, child, inner)
        entries[before if before is not None else index][2 if before is not None else 3] = number
        before = number
    return index


@dataclass(frozen=True)
class Attached:
    name: str
    data: bytes | Message
    media_type: str = ""
    flags: int = 0
    content_id: str = ""


@dataclass(frozen=True)
class Message:
    subject: str = ""
    body: str = ""
    html: bytes = b""
    rtf: bytes = b""
    kind: str = "IPM.Note"
    sender: tuple[str, str] = ("Ann", "ann@example.org")
    to: Sequence[tuple[str, str]] = ()
    cc: Sequence[tuple[str, str]] = ()
    sent: datetime | None = None
    attached: Sequence[Attached] = field(default=())
    codepage: int = 0  # other than 0: strings are written in it instead of in Unicode


def msg(message: Message) -> bytes:
    return ole(_message(message, header=32))


def _message(message: Message, *, header: int) -> Tree:
    codec = f"cp{message.codepage}" if message.codepage else ""
    tree: dict[str, bytes | Tree] = {}
    strings = {0x001A: message.kind, 0x0037: message.subject, 0x1000: message.body}
    strings |= {0x0C1A: message.sender[0], 0x0C1F: message.sender[1]}
    for number, text in strings.items():
        tree[f"__substg1.0_{number:04X}{'001E' if codec else '001F'}"] = text.encode(codec or "utf-16-le")
    tree |= {f"__substg1.0_{n:04X}0102": data for n, data in ((0x1013, message.html), (0x1009, message.rtf)) if data}
    fixed = b""
    if message.sent is not None:
        ticks = int((message.sent - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
        fixed += struct.pack("<HHIQ", 0x0040, 0x0039, 6, ticks)
    fixed += struct.pack("<HHIQ", 0x0003, 0x3FFD, 6, message.codepage) if codec else b""
    tree["__properties_version1.0"] = bytes(header) + fixed
    people = [(1, person) for person in message.to] + [(2, person) for person in message.cc]
    for number, (kind, (name, address)) in enumerate(people):
        tree[f"__recip_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8) + struct.pack("<HHIQ", 0x0003, 0x0C15, 6, kind),
            "__substg1.0_3001001F": name.encode("utf-16-le"),
            "__substg1.0_3003001F": address.encode("utf-16-le"),
        }
    for number, attached in enumerate(message.attached):
        tree[f"__attach_version1.0_#{number:08X}"] = _attachment(attached)
    return tree


def _attachment(attached: Attached) -> Tree:
    embedded = isinstance(attached.data, Message)
    fixed = struct.pack("<HHIQ", 0x0003, 0x3705, 6, 5 if embedded else 1)
    fixed += struct.pack("<HHIQ", 0x0003, 0x3714, 6, attached.flags)
    content: dict[str, bytes | Tree] = {
        "__properties_version1.0": bytes(8) + fixed,
        "__substg1.0_3707001F": attached.name.encode("utf-16-le"),
        "__substg1.0_370E001F": attached.media_type.encode("utf-16-le"),
        "__substg1.0_3712001F": attached.content_id.encode("utf-16-le"),
    }
    if isinstance(attached.data, Message):
        content["__substg1.0_3701000D"] = _message(attached.data, header=24)
    else:
        content["__substg1.0_37010102"] = attached.data
    return content
