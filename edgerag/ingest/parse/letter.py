"""A message as a person reads it: subject, who wrote to whom and when, what it says. EML and MSG share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgerag.errors import DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse import html
from edgerag.ingest.parse.dates import iso_date_ns
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.layout import Part, lay_out
from edgerag.ingest.parse.source import Source, clean_text, clean_title
from edgerag.types import Heading, ParsedDocument

_PGP_ENCRYPTED = "-----BEGIN PGP MESSAGE-----"
_PGP_SIGNED = re.compile(
    r"\A-----BEGIN PGP SIGNED MESSAGE-----\n(?:[^\n]+\n)*\n(.*?)\n-----BEGIN PGP SIGNATURE-----.*?"
    r"(?:-----END PGP SIGNATURE-----|\Z)",
    re.DOTALL,
)
_DEEPEST_HEADING = 6
# A plain version with less than this share of the words of the formatted one is a note that there is one.
_STUB_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Body:
    """What a message says, or a part of it."""

    text: str
    headings: tuple[Heading, ...] = ()
    hidden: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Letter:
    """Empty strings for what is not known."""

    subject: str
    date: str
    sender: str
    to: str
    cc: str
    bcc: str
    bodies: tuple[Body, ...]
    attachments: tuple[str, ...]
    warnings: tuple[str, ...]


def to_document(letter: Letter, source: Source, *, media_type: str) -> ParsedDocument:
    """Raises DocumentEmpty when nothing at all is said, attached or addressed, DocumentEncrypted for PGP."""
    fields = (
        ("From", letter.sender),
        ("To", letter.to),
        ("Cc", letter.cc),
        ("Bcc", letter.bcc),
        ("Date", letter.date),
        ("Attachments", ", ".join(letter.attachments)),
    )
    known = [f"{name}: {value}" for name, value in fields if value]
    bodies = [body for body in letter.bodies if body.text.strip()]
    if not bodies and not letter.attachments and not (letter.subject and known):
        raise DocumentEmpty("There is no message in the file.")
    head = lay_out(
        [Part("heading", letter.subject, level=1), *(Part("item", line) for line in known)]
        if letter.subject
        else [Part("item", line) for line in known]
    )
    text = head.text
    all_headings = list(head.headings)
    hidden: list[tuple[int, int]] = []
    for body in bodies:
        text += "\n\n" if text else ""
        all_headings += (
            Heading(min(heading.level + 1, _DEEPEST_HEADING), heading.title, heading.start + len(text))
            for heading in body.headings
        )
        hidden += ((start + len(text), end + len(text)) for start, end in body.hidden)
        text += body.text
    return name_hidden(
        ParsedDocument(
            text=text,
            title=clean_title(letter.subject) or source.fallback_title,
            media_type=media_type,
            headings=tuple(all_headings),
            warnings=tuple(dict.fromkeys(warning for warning in letter.warnings if warning)),
            hidden=tuple(hidden),
            dated_ns=iso_date_ns(letter.date),
        ),
        least_words=html.FEWEST_WORDS,
    )


def plain_body(text: str) -> Body:
    """Raises DocumentEncrypted when the text is a PGP message."""
    text = clean_text(text)
    if text.lstrip().startswith(_PGP_ENCRYPTED):
        raise encrypted("PGP")
    if signed := _PGP_SIGNED.search(text.lstrip()):
        text = re.sub("^- ", "", signed[1], flags=re.MULTILINE) + text.lstrip()[signed.end() :]
    return Body("\n".join(line.rstrip() for line in text.strip("\n").split("\n")).strip("\n"))


def html_body(markup: str) -> Body:
    """What a page says; nothing when it says nothing."""
    try:
        page = html.parse(Source(markup.encode("utf-8-sig", "replace"), ""))
    except DocumentEmpty:
        return Body("")
    return Body(page.text, page.headings, page.hidden)


def best_body(plain: Body, formatted: Body) -> Body:
    """Of two versions of the same the plain one, unless it only says that there is another."""
    if not formatted.text.strip():
        return plain
    words, formatted_words = len(plain.text.split()), len(formatted.text.split())
    return plain if words and words >= formatted_words * _STUB_SHARE else formatted


def unflow(text: str, *, delete_space: bool) -> str:
    """Lines that a program broke on sending, joined again (RFC 3676, format=flowed)."""
    lines: list[str] = []
    open_depth = -1  # quotation depth of a line that goes on
    for line in text.replace("\r\n", "\n").split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        flows = content.endswith(" ") and content != "-- "
        if open_depth == depth and content != "-- ":
            lines[-1] += content
        else:
            lines.append(f"{'>' * depth} {content}" if depth else content)
        if flows and delete_space:
            lines[-1] = lines[-1][:-1]
        open_depth = depth if flows else -1
    return "\n".join(lines)


def encrypted(method: str) -> DocumentEncrypted:
    return DocumentEncrypted(
        f"The message is encrypted with {method}.", remedy="Decrypt it in your mail program and save it from there."
    )


def left_out(pictures: int) -> str:
    return f"Left out: {pictures} {'picture' if pictures == 1 else 'pictures'} inside the text."


def addresses(people: Sequence[tuple[str, str]]) -> str:
    """Names and addresses as one line."""
    return ", ".join(
        f"{name} <{address}>" if name and address and name != address else name or address for name, address in people
    )
