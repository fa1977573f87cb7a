"""MBOX: each message is a member, cut out of the file when it is asked for.

A line that begins with "From " starts a message when an empty line stands before it (RFC 4155) and a header or a
date bears it out: writers that do not quote such lines in their texts are common. Quoting (mboxrd, mboxo) is taken
back by one ">".
"""

from __future__ import annotations

import re

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentUnsupported
from edgerag.ingest.parse import members
from edgerag.ingest.parse.mime import looks_like_mail, subject
from edgerag.ingest.parse.source import Container, Source

# A mailbox of the largest file that is read holds fewer; an attack of empty messages more.
_MOST_MESSAGES = 500_000
_LONGEST_SUBJECT = 80  # characters, in a name
_FROM = re.compile(rb"^From (?P<envelope>[^\r\n]{0,1000})\r?\n(?=(?P<header>[!-9;-~]{1,100}):|>From )", re.MULTILINE)
_TIME = re.compile(rb"\b\d{1,2}:\d\d(?::\d\d)?\b.*\b(?:19|20)\d\d\b|\b(?:19|20)\d\d\b.*\b\d{1,2}:\d\d\b")
_KNOWN_HEADERS = frozenset(
    {
        *(b"return-path", b"received", b"from", b"to", b"date", b"subject", b"message-id", b"delivered-to"),
        *(b"x-gm-thrid", b"x-mozilla-status", b"x-original-to", b"mime-version", b"status", b"envelope-to"),
    }
)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def parse(source: Source) -> Container:
    """Raises DocumentEmpty for an empty mailbox, DocumentDamaged for what is none."""
    data = source.data
    if not data.strip():
        raise DocumentEmpty("The mailbox is empty.")
    starts = _starts(data)
    if not starts:
        raise DocumentDamaged("It is no mailbox: no line in it begins a message.")
    names = members.Names()
    spans: dict[str, tuple[int, int]] = {}
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(data)], strict=True), 1):
        title = subject(data, start, end).replace("/", "-")[:_LONGEST_SUBJECT]
        name = members.file_name(f"{number:04d} {title}".rstrip(" ."), fallback=f"{number:04d}")
        spans[names.unique(f"{name}.eml")] = (start, end)

    def read(name: str, limit: int) -> bytes:
        if name not in spans:
            raise members.missing(name)
        start, end = spans[name]
        if end - start > limit:
            raise members.too_large(limit)
        return _QUOTED.sub(rb"\1", data[start:end])

    return Container(tuple(spans), read)


def looks_like_mailbox(head: bytes) -> bool:
    """True for a file that begins as a mailbox does, whatever its name."""
    first = _FROM.match(head)
    return first is not None and bool(_TIME.search(first["envelope"])) and looks_like_mail(head[first.end() :])


def _starts(data: bytes) -> list[int]:
    starts = []
    for line in _FROM.finditer(data):
        start = line.start()
        if start and not _after_empty_line(data, start):
            continue
        if not (_TIME.search(line["envelope"]) or (line["header"] or b"").lower() in _KNOWN_HEADERS):
            continue
        starts.append(start)
        if len(starts) > _MOST_MESSAGES:
            raise DocumentUnsupported(
                f"There are more than {_MOST_MESSAGES:,} messages in it.", remedy="Divide it in your mail program."
            )
    return starts


def _after_empty_line(data: bytes, start: int) -> bool:
    before = data[max(0, start - 4) : start]
    return before.endswith((b"\n\n", b"\n\r\n")) or not before.strip()
