"""A large text read in parts: text, logs, tables and JSON Lines of any size in a few megabytes of memory.

Each part is a document of its own, named ``server.log!/part 0007``, whose lines have the numbers that they have in the
file. Parts end where the content says, at a line whose checksum has nine zero bits (Rabin's fingerprinting, as in LBFS,
2001): after an edit or with lines appended all other parts are what they were, and are not read, nor embedded, again.
"""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import BinaryIO

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse import csv_table, members, structured, text
from edgerag.ingest.parse.encoding import decode, wide_encoding
from edgerag.ingest.parse.sniff import Format
from edgerag.ingest.parse.source import Container, Source
from edgerag.types import Heading, ParsedDocument

# Up to here a text is one document: larger ones would take a hundred times their size on the way to the library.
WHOLE_BYTES = 16_000_000
# JSON, YAML, TOML and XML have names for their parts only as a whole; beyond this they are not looked for.
WHOLE_STRUCTURED_BYTES = structured.MOST_CHARACTERS
# Of a part, in bytes: an edit costs reading one again. Multiples of four, the widest character.
_LEAST, _MOST = 2 * 2**20, 4 * 2**20
_ANCHOR_MASK = 511
_HEAD = 65_536  # of the file, from which its encoding is told
_BLANK_SEARCH = 1024  # bytes, for a place to cut a line that is longer than a part
_BOMS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
_LINES = frozenset({".jsonl", ".ndjson"})


def comes_in_parts(format_: Format, name: str, size_bytes: int) -> bool:
    """Whether a file of that format and size is read in parts."""
    if format_ == "structured" and PurePath(name).suffix.lower() not in _LINES:
        return size_bytes > WHOLE_STRUCTURED_BYTES
    return format_ in ("text", "code", "csv", "structured") and size_bytes > WHOLE_BYTES


@dataclass(frozen=True, slots=True)
class _Part:
    start: int  # byte
    end: int
    first_line: int


@dataclass(frozen=True, slots=True)
class _Width:
    """How a text is written, as far as it decides where it may be cut."""

    encoding: str  # "" where a line feed is one byte
    newline: bytes
    mark: bytes  # to be put before a part
    legacy: str  # an encoding that was guessed from the beginning and holds for all parts; "" for none

    @classmethod
    def of(cls, head: bytes) -> _Width:
        encoding = next((name for name, mark in reversed(_BOMS.items()) if head.startswith(mark)), "")
        encoding = encoding or wide_encoding(head) or ""
        whole_lines = head[: head.rfind(b"\n") + 1] or head
        guess = decode(whole_lines)
        legacy = guess.encoding if guess.guessed and not encoding and not guess.encoding.startswith("utf") else ""
        return cls(encoding, "\n".encode(encoding or "ascii"), _BOMS.get(encoding, b""), legacy)

    @property
    def unit(self) -> int:
        return len(self.newline)

    def after_line(self, data: bytes, start: int) -> int:
        """Where the line ends that ``start`` lies in, behind its line feed; -1 when it goes on."""
        while (found := data.find(self.newline, start)) >= 0:
            if found % self.unit == 0:
                return found + self.unit
            start = found + 1
        return -1

    def line_ends(self, data: bytes) -> int:
        if self.encoding:
            lines = data.decode(self.encoding, "replace").replace("\r\n", "\n")
            return lines.count("\n") + lines.count("\r")
        return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def open_parts(open_file: Callable[[], BinaryIO], name: str, format_: Format) -> tuple[Container, str]:
    """The parts of a text, and the SHA-256 of all of it.

    ``open_file`` gives the file anew each time: it is read once now, and a part again when it is asked for.
    """
    digest = hashlib.sha256()
    found: dict[str, _Part] = {}
    start, line = 0, 1
    with open_file() as file:
        buffer = file.read(_MOST)
        digest.update(buffer)
        width = _Width.of(buffer[:_HEAD])
        while buffer:
            end = _end(buffer, width)
            found[f"part {len(found) + 1:04d}"] = _Part(start, start + end, line)
            start += end
            line += width.line_ends(buffer[:end])
            piece = file.read(end)
            digest.update(piece)
            buffer = buffer[end:] + piece

    def read(asked: str, _: int) -> bytes:
        if asked not in found:
            raise members.missing(asked)
        part = found[asked]
        with open_file() as file:
            file.seek(part.start)
            data = file.read(part.end - part.start)
        if len(data) < part.end - part.start:
            raise DocumentDamaged("The file became shorter while it was read.", remedy="Ingest it again.")
        return data

    columns = _columns(read(next(iter(found)), _MOST), name) if format_ == "csv" and found else ()

    def parse(asked: str, data: bytes) -> ParsedDocument:
        part = found[asked]
        if width.legacy:
            data = data.decode(width.legacy, "replace").encode()
        elif part.start:
            data = width.mark + data
        source = Source(data, name)
        if format_ == "csv" and part.start == 0:
            document = csv_table.parse(source)
        elif format_ == "structured" and source.extension in _LINES:
            document = structured.parse(source)
        else:
            document = replace(text.parse(source), headings=columns)
        warnings = document.warnings
        if width.legacy:
            warnings = (f"The encoding was taken to be {width.legacy}.", *warnings)
        return replace(document, first_line=part.first_line, warnings=warnings)

    return Container(tuple(found), read, parse_part=parse), digest.hexdigest()


def _end(data: bytes, width: _Width) -> int:
    """Where the first part of ``data`` ends, which is all there is or the most that a part may have."""
    position = width.after_line(data, _LEAST)
    last = 0
    while 0 <= position < len(data):
        last = position
        position = width.after_line(data, position)
        line = data[last:position] if position >= 0 else data[last:]
        # A line that is cut off by the end of what was read is judged when it is whole.
        if position >= 0 and zlib.crc32(line) & _ANCHOR_MASK == 0:
            return last
    if len(data) < _MOST:
        return len(data)
    return last or _between_characters(data, width)


def _between_characters(data: bytes, width: _Width) -> int:
    """For one endless line: the last blank, or else no place inside a character of UTF-8 or UTF-16."""
    end = len(data)
    if width.encoding:
        before = data[end - width.unit : end]
        high = width.unit == 2 and 0xD8 <= before[1 if width.encoding.endswith("le") else 0] <= 0xDB
        return end - width.unit if high else end
    blank = max(data.rfind(b" ", end - _BLANK_SEARCH), data.rfind(b",", end - _BLANK_SEARCH))
    if blank > 0:
        return blank + 1
    while end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if data[end - 1] >= 0xC0 or data[end - 1 : end] == b"\r" else len(data)


def _columns(data: bytes, name: str) -> tuple[Heading, ...]:
    """The row of labels, as a heading over the rows of every further part."""
    try:
        headings = csv_table.parse(Source(data, name)).headings
    except DocumentEmpty:
        return ()
    return tuple(replace(heading, level=1, start=0) for heading in headings[-1:])
