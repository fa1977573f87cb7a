"""The parts of a mail (RFC 5322, 2045 to 2047, 2231), found where they lie in the file and decoded when asked for.

The standard library reads each header block; the boundaries between parts are found here, on the bytes: an
attachment of 100 MB is never copied line by line, and an attached message keeps its exact bytes. The older of the
library's two header interfaces is used: it gives back what is written, where the newer one raises on much of what
real mail holds.
"""

from __future__ import annotations

import quopri
import re
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from email.policy import Compat32
from email.utils import collapse_rfc2231_value

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse import members
from edgerag.ingest.parse.mail_encoding import as_text, decode_charset, decode_words, from_base64, from_uuencode
from edgerag.ingest.parse.source import clean_text, clean_title

_LINE_END = rb"(?:\r\n|\n|\r|\Z)"
_HEADERS = re.compile(
    rb"(?:>?From [^\r\n]*" + _LINE_END + rb")?"
    rb"(?:[!-9;-~]+[ \t]*:[^\r\n]*"
    + _LINE_END
    + rb"(?:[ \t]+[^\s][^\r\n]*"
    + _LINE_END
    + rb"|[ \t]+(?:\r\n|\n|\r)(?=[ \t]))*)*"
)
_SUBJECT = re.compile(rb"^subject[ \t]*:([^\r\n]*(?:(?:\r\n|\n|\r)[ \t]+[^\s][^\r\n]*)*)", re.IGNORECASE | re.MULTILINE)
_HEADER_NAME = re.compile(rb"^([!-9;-~]+)[ \t]*:", re.MULTILINE)
_ORIGINS = frozenset({b"from", b"received", b"return-path"})
_MARKS_OF_MAIL = _ORIGINS | {b"date", b"message-id", b"mime-version", b"content-type"}
_LEAST_MARKS = 3
_BLANK_LINE = re.compile(rb"[ \t]*(?:\r\n|\n|\r)")
_LIKELY_BOUNDARY = re.compile(rb"^--([^\r\n]{1,200}?)[ \t]*\r?\n(?=content-)", re.MULTILINE | re.IGNORECASE)
# Mails nest to about ten levels; a hundred is an attack.
_DEEPEST = 30
# Of one header; longer ones are lists of thousands of recipients, and attacks.
_LONGEST_HEADER = 100_000


class _AsWritten(Compat32):
    def header_fetch_parse(self, name: str, value: str) -> str:  # noqa: ARG002 - the signature is the library's
        return value


_PARSER = HeaderParser(policy=_AsWritten())


@dataclass(frozen=True, slots=True)
class Part:
    """A mail or a part of one. ``parts`` is empty for one that holds no others."""

    headers: Message
    data: bytes  # of the whole file
    start: int  # of the body
    end: int
    default_type: str
    parts: tuple[Part, ...] = ()

    @property
    def content_type(self) -> str:
        if self.header("Content-Type"):
            return self.headers.get_content_type()
        return self.default_type

    @property
    def is_attachment(self) -> bool:
        return self.header("Content-Disposition").split(";")[0].strip().lower() == "attachment"

    @property
    def file_name(self) -> str:
        """As the sender wrote it, decoded; "" without one."""
        return self.parameter("filename", "Content-Disposition") or self.parameter("name")

    def header(self, name: str) -> str:
        """A header on one line, decoded; "" without one."""
        raw = self.headers.get(name, "")[:_LONGEST_HEADER]
        return " ".join(clean_text(decode_words(as_text(raw))).split())

    def parameter(self, name: str, header: str = "Content-Type") -> str:
        try:
            value = self.headers.get_param(name, "", header)
            text = collapse_rfc2231_value(value) if value else ""
        except (ValueError, LookupError, TypeError):  # what the library does with broken RFC 2231 continuations
            return ""
        return decode_words(as_text(text)).strip()

    def body(self, *, limit: int) -> bytes:
        """The decoded content. Raises DocumentUnsupported beyond so many bytes."""
        raw = memoryview(self.data)[self.start : self.end]
        encoding = self.header("Content-Transfer-Encoding").lower()
        if encoding == "base64":
            if len(raw) * 5 // 8 > limit:  # with line ends and without, it is between 5/8 and 3/4 of it
                raise members.too_large(limit)
            content = from_base64(bytes(raw))
        elif encoding == "quoted-printable":
            content = quopri.decodestring(bytes(raw))
        elif encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
            content = from_uuencode(bytes(raw))
        else:
            content = bytes(raw)
        if len(content) > limit:
            raise members.too_large(limit)
        return content

    def text(self) -> tuple[str, str]:
        """The body as text, and a warning where its encoding is not the one that it names ("" if it is)."""
        return decode_charset(self.body(limit=len(self.data)), self.parameter("charset"))


def split_mail(data: bytes) -> Part:
    """The tree of parts. Raises DocumentDamaged when it is deeper, DocumentUnsupported when it is wider than mails."""
    return _Splitter(data).part(0, len(data), default_type="text/plain", depth=0)


def looks_like_mail(head: bytes) -> bool:
    """True for a file that begins as mail does, whatever its name: headers that tell where it came from and when, down
    to an empty line. Memos with "From:" and "To:" are none."""
    found = _HEADERS.match(head)
    if found is None or not (found.end() == len(head) or _BLANK_LINE.match(head, found.end())):
        return False
    names = {name.lower() for name in _HEADER_NAME.findall(found[0])}
    return not _ORIGINS.isdisjoint(names) and len(names & _MARKS_OF_MAIL) >= _LEAST_MARKS


def subject(data: bytes, start: int, end: int) -> str:
    """The subject of a message in a file, without taking it apart; "" without one."""
    head = _HEADERS.match(data, start, end)
    found = _SUBJECT.search(data, start, start if head is None else head.end())
    if found is None:
        return ""
    raw = found[1][:_LONGEST_HEADER].decode("ascii", "surrogateescape")
    return clean_title(decode_words(as_text(raw)))


class _Splitter:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = 0

    def part(self, start: int, end: int, *, default_type: str, depth: int) -> Part:
        if depth > _DEEPEST:
            raise DocumentDamaged("Its parts are nested more deeply than in any mail.")
        self._count += 1
        if self._count > members.MOST_MEMBERS:
            raise members.too_many(self._count, "parts or more")
        head = _HEADERS.match(self._data, start, end)
        body = start if head is None else head.end()
        block = self._data[start:body].decode("ascii", "surrogateescape")
        headers = _PARSER.parsestr(block.removeprefix(">"))
        if blank := _BLANK_LINE.match(self._data, body, end):
            body = blank.end()
        part = Part(headers, self._data, body, end, default_type)
        if not part.content_type.startswith("multipart/"):
            return part
        inner = "message/rfc822" if part.content_type == "multipart/digest" else "text/plain"
        parts = tuple(
            self.part(inner_start, inner_end, default_type=inner, depth=depth + 1)
            for inner_start, inner_end in self._spans(part)
        )
        return Part(headers, self._data, body, end, default_type, parts)

    def _spans(self, part: Part) -> list[tuple[int, int]]:
        boundary = part.parameter("boundary").encode("utf-8", "surrogateescape").rstrip()
        spans = self._between(boundary, part) if boundary else []
        if not spans and (guess := _LIKELY_BOUNDARY.search(self._data, part.start, part.end)):
            spans = self._between(guess[1], part)
        return spans

    def _between(self, boundary: bytes, part: Part) -> list[tuple[int, int]]:
        line = re.compile(rb"^--" + re.escape(boundary) + rb"(?:(--)[^\r\n]*|[ \t]*)(?:\r\n|\n|\r|\Z)", re.MULTILINE)
        spans: list[tuple[int, int]] = []
        start: int | None = None
        for found in line.finditer(self._data, part.start, part.end):
            if start is not None:
                spans.append((start, self._before_line_end(start, found.start())))
            start = None if found[1] else found.end()
            if start is None:
                break
        if start is not None and start < part.end:  # cut short, or never closed
            spans.append((start, part.end))
        return spans

    def _before_line_end(self, start: int, end: int) -> int:
        # The line end before a boundary belongs to the boundary.
        for line_end in (b"\r\n", b"\n", b"\r"):
            if self._data.endswith(line_end, start, end):
                return end - len(line_end)
        return end
