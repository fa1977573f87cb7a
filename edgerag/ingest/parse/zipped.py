"""ZIP archives: the members that the directory lists, or, where it is lost, those whose own headers are found.

The directory is read by the standard library; the members are unpacked here, bounded by what is asked for and
not by what the archive declares, and entries that share bytes (Fifield, "A better zip bomb", 2019) are refused.
Format: PKWARE APPNOTE 6.3.10.
"""

from __future__ import annotations

import bz2
import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from edgerag.errors import DocumentDamaged, DocumentUnsupported
from edgerag.ingest.parse import members
from edgerag.ingest.parse.locked_zip import AES_METHOD, AesLock, aes_lock, open_aes, open_old
from edgerag.ingest.parse.name_encoding import name_encoding
from edgerag.ingest.parse.passwords import refused
from edgerag.ingest.parse.source import Container

_LOCAL = struct.Struct("<4s2xHHxxxxIIIHH")  # signature, flags, method, CRC, packed, unpacked, name and extra lengths
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 1, 8, 0x800
_UNIX = 3
_UNICODE_PATH = 0x7075
_ZIP64_MARK = 0xFFFFFFFF
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_METHODS = {9: "Deflate64", 93: "Zstandard", 95: "XZ", 98: "PPMd", AES_METHOD: "AES encryption"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file in the archive. ``None``: its header does not say."""

    raw_name: bytes
    name: str  # "" until it is decoded
    flags: int
    method: int
    start: int  # of its local header
    packed_bytes: int | None
    size_bytes: int | None
    crc: int | None
    aes: AesLock | None = None


def open_zip(data: bytes, passwords: Sequence[str] = ()) -> tuple[Container, list[str]]:
    """The members, and what is wrong with the archive or was left out of it, in sentences.

    Raises DocumentDamaged when nothing can be made of it, DocumentUnsupported for a bomb, DocumentEncrypted when
    no member can be read without a password.
    """
    found = members.Findings()
    try:
        entries = _listed(data, found)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError, struct.error, IndexError) as error:
        entries = list(_found(data))
        if not entries:
            raise DocumentDamaged(
                f"The zip archive is damaged: {error}.", remedy="Copy it again from where it came from."
            ) from error
        found.damage = "The archive is cut short or its directory is damaged: only the members found in it are read."
    _refuse_bombs(entries, len(data))
    by_name = _by_name(entries, found)
    locked = {name: entry for name, entry in by_name.items() if entry.flags & _ENCRYPTED}
    if locked and len(locked) == len(by_name) and not any(_opens(data, entry, passwords) for entry in locked.values()):
        raise refused("Everything in the archive", tried=bool(passwords))
    if locked and not passwords:
        found.locked = list(locked)

    def read(name: str, limit: int) -> bytes:
        if name not in by_name:
            raise members.missing(name)
        return _unpacked(data, by_name[name], limit, passwords)

    return Container(tuple(by_name), read), found.sentences()


def _listed(data: bytes, found: members.Findings) -> list[_Entry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
    entries = []
    for info in infos:
        mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
        if info.orig_filename.endswith(("/", "\\")) or stat.S_ISDIR(mode):
            continue
        if stat.S_IFMT(mode) and not stat.S_ISREG(mode):  # the content of a link is a path
            found.links.append(info.filename)
            continue
        utf8 = bool(info.flag_bits & _UTF8)
        raw = info.orig_filename.encode("utf-8" if utf8 else "cp437", "replace")
        entries.append(
            _Entry(
                raw_name=raw,
                name=info.orig_filename if utf8 else _unicode_path(info.extra, raw),
                flags=info.flag_bits,
                method=info.compress_type,
                start=info.header_offset,
                packed_bytes=info.compress_size,
                size_bytes=info.file_size,
                crc=info.CRC,
                aes=aes_lock(info.extra) if info.compress_type == AES_METHOD else None,
            )
        )
        if len(entries) > members.MOST_MEMBERS:
            raise members.too_many(len(infos), "files")
    return entries


def _found(data: bytes) -> Iterator[_Entry]:
    """The entries by their local headers, one after the other."""
    position, count = data.find(_LOCAL_SIGNATURE), 0
    while 0 <= position <= len(data) - _LOCAL.size:
        _, flags, method, crc, packed, size, name_length, extra_length = _LOCAL.unpack_from(data, position)
        name_end = position + _LOCAL.size + name_length
        raw = data[position + _LOCAL.size : name_end]
        known = not flags & _SIZES_FOLLOW and _ZIP64_MARK not in (packed, size)
        plausible = name_length > 0 and name_end <= len(data) and (method in _METHODS or method in (0, 8, 12, 14))
        if plausible and not raw.endswith((b"/", b"\\")):
            count += 1
            if count > members.MOST_MEMBERS:
                raise members.too_many(count, "files or more")
            yield _Entry(
                raw_name=raw,
                name=raw.decode("utf-8", "replace") if flags & _UTF8 else "",
                flags=flags,
                method=method,
                start=position,
                packed_bytes=packed if known else None,
                size_bytes=size if known else None,
                crc=crc if known else None,
            )
        skipped = name_end + extra_length + packed if plausible and known else position + len(_LOCAL_SIGNATURE)
        position = data.find(_LOCAL_SIGNATURE, skipped)


def _unicode_path(extra: bytes, raw: bytes) -> str:
    """The name in the Info-ZIP extra field, if it belongs to this name; "" without one."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        body = extra[position + 4 : position + 4 + length]
        if kind == _UNICODE_PATH and len(body) > 5 and struct.unpack_from("<I", body, 1)[0] == zlib.crc32(raw):
            return body[5:].decode("utf-8", "replace")
        position += 4 + length
    return ""


def _by_name(entries: Sequence[_Entry], found: members.Findings) -> dict[str, _Entry]:
    encoding = name_encoding(entry.raw_name for entry in entries if not entry.name)
    return members.named(
        ((entry.name or entry.raw_name.decode(encoding, "replace"), entry) for entry in entries), found
    )


def _refuse_bombs(entries: Sequence[_Entry], archive_bytes: int) -> None:
    members.refuse_bomb(archive_bytes, sum(entry.size_bytes or 0 for entry in entries))
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.start):
        if entry.start < end:
            raise DocumentDamaged("Members of the archive overlap, as in a zip bomb; no honest program writes that.")
        end = entry.start + _LOCAL.size + len(entry.raw_name) + (entry.packed_bytes or 0)


def _opens(data: bytes, entry: _Entry, passwords: Sequence[str]) -> bool:
    """Whether one of the passwords opens a member, as far as can be told without unpacking it."""
    if entry.aes is not None:
        packed = _packed(data, entry)
        return any(open_aes(packed, entry.aes, password) is not None for password in passwords)
    return any(open_old(data, entry.start, password, 0) is not None for password in passwords)


def _unpacked(data: bytes, entry: _Entry, limit: int, passwords: Sequence[str]) -> bytes:
    if entry.flags & _ENCRYPTED:
        return _unlocked(data, entry, limit, passwords)
    if entry.size_bytes is not None and entry.size_bytes > limit:
        raise members.too_large(limit)
    return _checked(_packed(data, entry), entry, limit)


def _packed(data: bytes, entry: _Entry) -> memoryview:
    """What stands behind the header of a member. Raises DocumentDamaged."""
    if data[entry.start : entry.start + 4] != _LOCAL_SIGNATURE or entry.start + _LOCAL.size > len(data):
        raise _damaged("its header is not where the directory says")
    *_, name_length, extra_length = _LOCAL.unpack_from(data, entry.start)
    begin = entry.start + _LOCAL.size + name_length + extra_length
    end = len(data) if entry.packed_bytes is None else begin + entry.packed_bytes
    if end > len(data):
        raise _damaged("it is cut short")
    return memoryview(data)[begin:end]


def _unlocked(data: bytes, entry: _Entry, limit: int, passwords: Sequence[str]) -> bytes:
    """A member that is encrypted. Raises DocumentEncrypted when no password is right."""
    if entry.size_bytes is not None and entry.size_bytes > limit:
        raise members.too_large(limit)
    for password in passwords:
        if entry.aes is None:
            content = open_old(data, entry.start, password, limit)
            if content is not None and len(content) > limit:
                raise members.too_large(limit)
        else:
            packed = open_aes(_packed(data, entry), entry.aes, password)
            plain = replace(entry, method=entry.aes.method, crc=entry.crc if entry.aes.has_crc else None)
            content = None if packed is None else _checked(memoryview(packed), plain, limit)
        if content is not None:
            return content
    raise refused("It", tried=bool(passwords))


def _checked(packed: memoryview, entry: _Entry, limit: int) -> bytes:
    """What comes out of a member, whole."""
    try:
        content = _inflated(packed, entry, limit)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, struct.error, IndexError) as error:
        raise _damaged(str(error)) from error
    if len(content) > limit:
        raise members.too_large(limit)
    if entry.size_bytes is not None and len(content) != entry.size_bytes:
        raise _damaged(f"it holds {len(content):,} bytes and not {entry.size_bytes:,}")
    if entry.crc is not None and zlib.crc32(content) != entry.crc:
        raise _damaged("its checksum is wrong")
    return content


def _inflated(packed: memoryview, entry: _Entry, limit: int) -> bytes:
    """At most one byte more than the limit."""
    if entry.method == _STORED:
        if entry.packed_bytes is None:
            raise _damaged("its length is not known")
        return bytes(packed[: limit + 1])
    if entry.method == _DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        content = inflater.decompress(packed, limit + 1)
        ended = inflater.eof
    elif entry.method == _BZIP2:
        bunzip = bz2.BZ2Decompressor()
        content = bunzip.decompress(packed, limit + 1)
        ended = bunzip.eof
    elif entry.method == _LZMA:
        unlzma, properties_length = _lzma(packed, entry, limit)
        content = unlzma.decompress(packed[4 + properties_length :], limit + 1)
        ended = unlzma.eof or len(content) == entry.size_bytes
    else:
        method = _METHODS.get(entry.method, "unknown")
        raise DocumentUnsupported(
            f"It is packed with a method that is not read ({entry.method}, {method}).",
            remedy="Unpack it and ingest the folder.",
        )
    if not ended and len(content) <= limit:
        raise _damaged("it is cut short")
    return content


def _lzma(packed: memoryview, entry: _Entry, limit: int) -> tuple[lzma.LZMADecompressor, int]:
    (length,) = struct.unpack_from("<H", packed, 2)
    properties, dictionary = struct.unpack_from("<BI", packed, 4)
    most = limit if entry.size_bytes is None else entry.size_bytes  # a larger dictionary is never used
    filters = {
        "id": lzma.FILTER_LZMA1,
        "dict_size": max(4096, min(dictionary, most)),
        "lc": properties % 9,
        "lp": properties // 9 % 5,
        "pb": properties // 45,
    }
    return lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=[filters]), length


def _damaged(why: str) -> DocumentDamaged:
    return DocumentDamaged(f"It is damaged in the archive: {why}.", remedy="Copy the archive again.")
