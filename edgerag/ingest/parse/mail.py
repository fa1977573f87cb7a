"""EML and MHT: what the message says is the document, what is attached to it are members.

The plain version of the text is read, the formatted one where it says more; pictures that belong to the formatted
one are left out. Signed parts are read without checking the signature; encrypted ones are refused.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
from email.utils import parsedate_to_datetime

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse import html, letter, members, text
from edgerag.ingest.parse.cms import signed_content
from edgerag.ingest.parse.encoding import decode
from edgerag.ingest.parse.letter import Body, Letter
from edgerag.ingest.parse.mime import Part, split_mail, subject
from edgerag.ingest.parse.source import Container, Source, clean_title
from edgerag.types import ParsedDocument

_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
_SMIME = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_TNEF = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_MESSAGES = frozenset({"message/rfc822", "message/global", "message/news"})
# What mail servers say about a mail: read as its text.
_REPORTS = frozenset({"message/delivery-status", "message/disposition-notification", "text/rfc822-headers"})
_ENRICHED = frozenset({"text/enriched", "text/richtext"})
_EXTENSIONS = {
    "text/plain": ".txt",
    "text/html": ".html",
    "text/calendar": ".ics",
    "text/csv": ".csv",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "application/xml": ".xml",
    "image/png": ".png",
    "image/jpeg": ".jpg",
}
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WIDE_SEARCHED = 64
_ARCHIVED_PAGES = frozenset({".mht", ".mhtml"})
_TAG = re.compile(r"<<|<[^<>]{0,100}>")
_MAIL_HEADERS = ("From", "To", "Subject", "Date", "Received", "Message-ID", "MIME-Version", "Content-Type", "Sender")
_EMLX = re.compile(rb"[ \t]*([0-9]{1,12})[ \t]*\r?\n")


def parse(source: Source) -> ParsedDocument | Container:
    """Raises DocumentEmpty when there is no message, DocumentEncrypted when it cannot be read without a key,
    DocumentDamaged and DocumentUnsupported when it is built to do harm."""
    data = _eight_bit(source)
    if not data.strip():
        raise DocumentEmpty("There is no message in the file.")
    root = split_mail(data)
    if not any(root.header(name) for name in _MAIL_HEADERS):
        return text.parse(source)  # a text that is only named like a mail
    if source.extension in _ARCHIVED_PAGES:
        return _page(root, source)
    content = _Content()
    content.add(root)
    names = members.Names()
    attached = {names.unique(_member_name(part, number)): part for number, part in enumerate(content.attached, 1)}
    document = letter.to_document(
        Letter(
            subject=root.header("Subject"),
            date=_date(root.header("Date")),
            sender=root.header("From") or root.header("Sender"),
            to=root.header("To"),
            cc=root.header("Cc"),
            bcc=root.header("Bcc"),
            bodies=tuple(content.bodies),
            attachments=tuple(attached),
            warnings=(*content.warnings, *_warnings(content, attached)),
        ),
        source,
        media_type="message/rfc822",
    )
    if not attached:
        return document

    def read(name: str, limit: int) -> bytes:
        if name not in attached:
            raise members.missing(name)
        return attached[name].body(limit=limit)

    return Container(tuple(attached), read, document)


def _eight_bit(source: Source) -> bytes:
    """The mail in an encoding whose ASCII is ASCII, without what Apple Mail puts around it (.emlx)."""
    data = source.data
    if data.startswith(_WIDE_MARKS) or b"\x00" in data[:_WIDE_SEARCHED]:
        decoded = decode(data)
        if decoded.encoding.startswith(("utf-16", "utf-32")):
            data = decoded.text.encode("utf-8", "replace")
    data = data.removeprefix(codecs.BOM_UTF8)
    if source.extension == ".emlx" and (length := _EMLX.match(data)):
        return data[length.end() : length.end() + int(length[1])]
    return (data if b"\n" in data else data.replace(b"\r", b"\n")).lstrip(b"\r\n")


class _Content:
    """What is said and what is attached, in the order of the mail."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.attached: list[Part] = []
        self.warnings: list[str] = []
        self.decorations = 0

    def add(self, part: Part) -> None:
        kind = part.content_type
        if kind == "multipart/encrypted" or kind in _SMIME:
            self._add_sealed(part)
        elif kind == "multipart/alternative" and part.parts:
            self._add_alternatives(part)
        elif kind == "multipart/related" and part.parts:
            self._add_related(part)
        elif part.parts:
            for inner in part.parts:
                self.add(inner)
        elif kind in _SIGNATURES or kind == "application/applefile":
            return
        elif self._is_said(part):
            self._add_text(part)
        else:
            self.attached.append(part)

    def _is_said(self, part: Part) -> bool:
        kind = part.content_type
        if kind in _REPORTS or kind.startswith("multipart/"):  # a multipart without boundaries is read as it stands
            return True
        if kind not in ("text/plain", "text/html") and kind not in _ENRICHED:
            return False
        # The first text is the message even if some program gave it a file name.
        return not part.is_attachment and not (part.file_name and self.bodies)

    def _add_text(self, part: Part) -> None:
        said, warning = part.text()
        self.warnings.append(warning)
        if part.content_type == "text/html":
            self.bodies.append(letter.html_body(said))
            return
        if part.content_type in _ENRICHED:
            said = _TAG.sub(lambda tag: "<" if tag[0] == "<<" else "", said)
        elif part.parameter("format").lower() == "flowed":
            said = letter.unflow(said, delete_space=part.parameter("delsp").lower() == "yes")
        self.bodies.append(letter.plain_body(said))

    def _add_alternatives(self, part: Part) -> None:
        plain, formatted, other = Body(""), Body(""), Body("")
        for inner in part.parts:
            version = _Content()
            version.add(inner)
            said = _joined(version.bodies)
            if inner.content_type == "text/plain" and not plain.text:
                plain = said
            elif inner.content_type == "text/html" or inner.parts:
                formatted = said if said.text else formatted
            else:
                other = said
            self.attached += version.attached
            self.warnings += version.warnings
            self.decorations += version.decorations
        best = letter.best_body(plain, formatted)
        self.bodies.append(best if best.text else other)

    def _add_related(self, part: Part) -> None:
        start = part.parameter("start").strip("<>")
        named = (inner for inner in part.parts if start and inner.header("Content-ID").strip("<>") == start)
        root = next(named, part.parts[0])
        self.add(root)
        for inner in part.parts:
            if inner is root:
                continue
            # With an identifier it stands in the text, whatever its disposition says.
            stands_in_text = bool(inner.header("Content-ID")) or not inner.is_attachment
            if stands_in_text and inner.content_type.startswith(("image/", "text/css", "font/")):
                self.decorations += 1
            else:
                self.add(inner)

    def _add_sealed(self, part: Part) -> None:
        """S/MIME that is only signed holds the message openly; anything else needs a key."""
        if part.content_type in _SMIME:
            if part.parameter("smime-type").lower() == "certs-only":
                return
            inner = signed_content(part.body(limit=len(part.data)))
            if inner is not None:
                self.add(split_mail(inner))
                return
        method = "PGP" if "pgp" in part.parameter("protocol").lower() else "S/MIME"
        if not any(body.text for body in self.bodies):
            raise letter.encrypted(method)
        self.warnings.append(f"A part of it is encrypted with {method} and was left out.")


def _joined(bodies: list[Body]) -> Body:
    text, headings, hidden = "", [], []
    for body in bodies:
        text += "\n\n" if text and body.text else ""
        headings += [dataclasses.replace(heading, start=heading.start + len(text)) for heading in body.headings]
        hidden += [(start + len(text), end + len(text)) for start, end in body.hidden]
        text += body.text
    return Body(text, tuple(headings), tuple(hidden))


def _member_name(part: Part, number: int) -> str:
    kind = part.content_type
    if kind not in _MESSAGES:
        fallback = "winmail.dat" if kind in _TNEF else f"attachment {number}{_EXTENSIONS.get(kind, '')}"
        return members.file_name(part.file_name, fallback=fallback)
    message = part.body(limit=len(part.data))
    name = part.file_name or subject(message, 0, len(message)).replace("/", "-")
    name = members.file_name(name.removesuffix(".eml"), fallback=f"message {number}")
    return f"{name}.eml"  # by this it is recognised


def _date(written: str) -> str:
    """In ISO 8601 with its zone; as it is written where that is no date of RFC 5322."""
    try:
        return parsedate_to_datetime(written).isoformat(timespec="seconds")
    except (ValueError, TypeError, LookupError, OverflowError):
        return written


def _warnings(content: _Content, attached: dict[str, Part]) -> list[str]:
    warnings = []
    if content.decorations:
        warnings.append(letter.left_out(content.decorations))
    if any(part.content_type in _TNEF or name.lower().startswith("winmail") for name, part in attached.items()):
        warnings.append("Attachments in winmail.dat, a format of Outlook alone, are not read.")
    return warnings


def _page(root: Part, source: Source) -> ParsedDocument:
    """The web page that an MHT file holds, or the pages of its frames."""
    pages = [part for part in _leaves(root) if part.content_type in ("text/html", "application/xhtml+xml")]
    start = root.parameter("start").strip("<>")
    pages.sort(key=lambda part: not start or part.header("Content-ID").strip("<>") != start)
    for page in pages:
        markup, warning = page.text()
        try:
            document = html.parse(Source(markup.encode("utf-8-sig", "replace"), source.name))
        except DocumentEmpty:
            continue
        title = document.title if document.title != source.fallback_title else clean_title(root.header("Subject"))
        return dataclasses.replace(
            document,
            title=title or source.fallback_title,
            media_type="multipart/related",
            warnings=(*document.warnings, *filter(None, [warning])),
        )
    raise DocumentEmpty("There is no web page with text in the file.")


def _leaves(part: Part) -> list[Part]:
    return [leaf for inner in part.parts for leaf in _leaves(inner)] if part.parts else [part]
