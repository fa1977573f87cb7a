"""The properties of an Outlook message (MS-OXMSG): streams and storages of an OLE file, named by what they hold."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import olefile

# Sizes of the header before the fixed properties, by what has them.
_ROOT_HEADER, _EMBEDDED_HEADER, _OTHER_HEADER = 32, 24, 8
_FIXED = struct.Struct("<HHI8s")  # type, property, flags, value
_STRING_8, _STRING, _BINARY, _STORAGE = "001E", "001F", "0102", "000D"
_TIME, _INTEGER, _BOOLEAN = 0x0040, 0x0003, 0x000B
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MESSAGE_CODEPAGE, _INTERNET_CODEPAGE = 0x3FFD, 0x3FDE
_DEFAULT_CODEPAGE = "cp1252"
_CODEPAGES = {65001: "utf-8", 1200: "utf-16-le", 20866: "koi8-r", 21866: "koi8-u", 51949: "euc_kr", 54936: "gb18030"}
_ISO_8859 = range(28591, 28606)
_JAPANESE = range(50220, 50223)
_EMBEDDED = f"__substg1.0_3701{_STORAGE}"


@dataclass(frozen=True)
class Storage:
    """A message, a recipient or an attachment: a folder in the OLE file."""

    file: olefile.OleFileIO[Any]
    path: tuple[str, ...] = ()
    outer_encoding: str = _DEFAULT_CODEPAGE

    def text(self, number: int) -> str:
        """A string property; "" without one."""
        raw = self._stream(number, _STRING)
        if raw is not None:
            return raw.decode("utf-16-le", "replace").rstrip("\x00")
        raw = self._stream(number, _STRING_8)
        return "" if raw is None else raw.decode(self.encoding, "replace").rstrip("\x00")

    def binary(self, number: int) -> bytes | None:
        return self._stream(number, _BINARY)

    def has_binary(self, number: int) -> bool:
        return bool(self.file.exists([*self.path, f"__substg1.0_{number:04X}{_BINARY}"]))

    def integer(self, number: int) -> int | None:
        value = self._fixed.get((number, _INTEGER))
        return None if value is None else int.from_bytes(value[:4], "little")

    def is_set(self, number: int) -> bool:
        return bool(self._fixed.get((number, _BOOLEAN), b"\x00")[0])

    def time(self, number: int) -> datetime | None:
        value = self._fixed.get((number, _TIME))
        ticks = 0 if value is None else int.from_bytes(value, "little")
        try:
            return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None
        except OverflowError:
            return None

    @cached_property
    def encoding(self) -> str:
        """Of the strings that are not Unicode."""
        return codepage(self.integer(_MESSAGE_CODEPAGE)) or self.internet_encoding or self.outer_encoding

    @property
    def internet_encoding(self) -> str:
        return codepage(self.integer(_INTERNET_CODEPAGE))

    def children(self, prefix: str) -> list[Storage]:
        """The storages directly in this one whose name begins so, in their order."""
        depth = len(self.path)
        names = {
            entry[depth]
            for entry in self.file.listdir(streams=True, storages=True)
            if len(entry) > depth and tuple(entry[:depth]) == self.path and entry[depth].startswith(prefix)
        }
        return [Storage(self.file, (*self.path, name), self.encoding) for name in sorted(names)]

    @property
    def embedded(self) -> Storage | None:
        """The message, or the object, that this attachment is."""
        path = (*self.path, _EMBEDDED)
        return Storage(self.file, path, self.encoding) if self.file.exists(list(path)) else None

    def _stream(self, number: int, kind: str) -> bytes | None:
        return self._read([*self.path, f"__substg1.0_{number:04X}{kind}"])

    def _read(self, path: Sequence[str]) -> bytes | None:
        if not self.file.exists(list(path)):
            return None
        return bytes(self.file.openstream(list(path)).read())

    @cached_property
    def _fixed(self) -> dict[tuple[int, int], bytes]:
        data = self._read([*self.path, "__properties_version1.0"]) or b""
        last = self.path[-1] if self.path else ""
        header = _OTHER_HEADER if last else _ROOT_HEADER
        if last == _EMBEDDED:
            header = _EMBEDDED_HEADER
        whole = data[header : header + (len(data) - header) // _FIXED.size * _FIXED.size]
        return {(number, kind): value for kind, number, _, value in _FIXED.iter_unpack(whole)}


def codepage(number: int | None) -> str:
    """Python's name of a Windows code page; "" for none that is known."""
    if not number:
        return ""
    name = _CODEPAGES.get(number, f"cp{number}")
    if number in _ISO_8859:
        name = f"iso8859-{number - _ISO_8859.start + 1}"
    elif number in _JAPANESE:
        name = "iso2022_jp_ext"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""
