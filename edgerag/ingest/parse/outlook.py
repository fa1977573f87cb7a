"""Outlook messages (MSG): the same document as of a mail in EML, attachments and attached messages as members.

A message inside a message has no file of its own: it is given as the EML that it would be.
"""

from __future__ import annotations

import base64
import importlib
import io
from dataclasses import dataclass

import olefile

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentError
from edgerag.ingest.parse import letter, lzfu, mail, members
from edgerag.ingest.parse.cms import signed_content
from edgerag.ingest.parse.letter import Body, Letter
from edgerag.ingest.parse.mail_encoding import decode_charset
from edgerag.ingest.parse.ole_message import Storage
from edgerag.ingest.parse.source import Container, Source, clean_text
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/vnd.ms-outlook"
# Properties (MS-OXPROPS).
_CLASS, _SUBJECT, _BODY, _HTML, _RTF, _HEADERS = 0x001A, 0x0037, 0x1000, 0x1013, 0x1009, 0x007D
_SENT, _DELIVERED, _CREATED = 0x0039, 0x0E06, 0x3007
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_NAME, _ADDRESS, _SMTP, _RECIPIENT_KIND = 0x3001, 0x3003, 0x39FE, 0x0C15
_DISPLAYED = {1: 0x0E04, 2: 0x0E03, 3: 0x0E02}  # To, Cc, Bcc as one line of names
_DATA, _METHOD, _LONG_NAME, _SHORT_NAME, _MIME_TYPE = 0x3701, 0x3705, 0x3707, 0x3704, 0x370E
_CONTENT_ID, _HIDDEN, _ATTACH_FLAGS = 0x3712, 0x7FFE, 0x3714
_IS_OBJECT = 6  # a value of the method
_STANDS_IN_HTML = 4
_SMIME, _SMIME_SIGNED = "ipm.note.smime", "ipm.note.smime.multipartsigned"
_ENCRYPTED_TYPES = frozenset({"application/pgp-encrypted", "application/x-microsoft-rpmsg-message"})
_LONGEST_RTF = 100_000_000
# Messages in messages; the mail parser goes as deep.
_DEEPEST = 10
# What the library raises on files that are cut short or built to do harm.
_OLE_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError)


def parse(source: Source) -> ParsedDocument | Container:
    """Raises DocumentEncrypted for what needs a key, DocumentEmpty when there is no message, DocumentDamaged when the
    file is not whole."""
    try:
        file = olefile.OleFileIO(io.BytesIO(source.data))
        return _parse(_Message(Storage(file)), source)
    except DocumentError:
        raise
    except _OLE_ERRORS as error:
        raise DocumentDamaged(
            f"The Outlook message is damaged: {error}.", remedy="Save it again from Outlook, or as EML."
        ) from error


def _parse(message: _Message, source: Source) -> ParsedDocument | Container:
    if message.kind.startswith(_SMIME):
        return mail.parse(Source(message.signed_mail(), source.name))
    attached = message.attached()
    document = letter.to_document(message.letter(tuple(attached)), source, media_type=MEDIA_TYPE)
    if not attached:
        return document

    def read(name: str, limit: int) -> bytes:
        if name not in attached:
            raise members.missing(name)
        try:
            content = attached[name].content()
        except _OLE_ERRORS as error:
            raise DocumentDamaged(f"The attachment is damaged: {error}.") from error
        if len(content) > limit:
            raise members.too_large(limit)
        return content

    return Container(tuple(attached), read, document)


@dataclass(frozen=True, slots=True)
class _Attachment:
    storage: Storage
    depth: int

    @property
    def message(self) -> _Message | None:
        embedded = self.storage.embedded
        is_message = embedded is not None and self.storage.integer(_METHOD) != _IS_OBJECT
        return _Message(embedded, self.depth + 1) if embedded is not None and is_message else None

    @property
    def is_object(self) -> bool:
        return not self.storage.has_binary(_DATA) and self.message is None

    @property
    def is_decoration(self) -> bool:
        """A picture that stands in the text."""
        storage = self.storage
        marked = storage.is_set(_HIDDEN) or bool((storage.integer(_ATTACH_FLAGS) or 0) & _STANDS_IN_HTML)
        return marked and self.media_type.startswith("image/") and bool(storage.text(_CONTENT_ID))

    @property
    def media_type(self) -> str:
        return self.storage.text(_MIME_TYPE).lower()

    def name(self, number: int) -> str:
        if (message := self.message) is not None:
            subject = message.subject or self.storage.text(_NAME)
            return members.file_name(subject.replace("/", "-"), fallback=f"message {number}") + ".eml"
        storage = self.storage
        name = storage.text(_LONG_NAME) or storage.text(_SHORT_NAME) or storage.text(_NAME)
        return members.file_name(name, fallback=f"attachment {number}")

    def content(self) -> bytes:
        if (message := self.message) is not None:
            return message.eml()
        return self.storage.binary(_DATA) or b""


@dataclass(frozen=True, slots=True)
class _Message:
    storage: Storage
    depth: int = 0

    @property
    def kind(self) -> str:
        return self.storage.text(_CLASS).lower()

    @property
    def subject(self) -> str:
        return _line(self.storage.text(_SUBJECT))

    def letter(self, attachments: tuple[str, ...]) -> Letter:
        """Raises DocumentEncrypted."""
        bodies, warnings = self._body()
        if self._is_encrypted():
            raise letter.encrypted("PGP or Microsoft rights management")
        pictures = sum(attachment.is_decoration for attachment in self._attachments())
        objects = sum(attachment.is_object for attachment in self._attachments())
        if pictures:
            warnings.append(letter.left_out(pictures))
        if objects:
            warnings.append(f"Embedded objects that are not read: {objects}.")
        return Letter(
            subject=self.subject,
            date=self._date(),
            sender=self._sender(),
            to=self._recipients(1),
            cc=self._recipients(2),
            bcc=self._recipients(3),
            bodies=tuple(bodies),
            attachments=attachments,
            warnings=tuple(warnings),
        )

    def attached(self) -> dict[str, _Attachment]:
        names = members.Names()
        shown = [
            attachment
            for attachment in self._attachments()
            if not attachment.is_decoration and not attachment.is_object
        ]
        if len(shown) > members.MOST_MEMBERS:
            raise members.too_many(len(shown), "attachments")
        return {names.unique(attachment.name(number)): attachment for number, attachment in enumerate(shown, 1)}

    def signed_mail(self) -> bytes:
        """The mail that S/MIME signed, under the headers of this one."""
        data = next((attachment.content() for attachment in self._attachments()), b"")
        inner = data if self.kind == _SMIME_SIGNED else signed_content(data)
        if inner is None:
            raise letter.encrypted("S/MIME")
        return self._header_lines() + inner

    def eml(self) -> bytes:
        """As a mail of its own. Raises DocumentDamaged when messages lie in messages without end."""
        if self.depth > _DEEPEST:
            raise DocumentDamaged("Messages are nested more deeply in it than in any mail.")
        if self.kind.startswith(_SMIME):
            return self.signed_mail()
        said = self.letter(())
        text = "\n\n".join(body.text for body in said.bodies)
        boundary = b"edgerag-part"
        while boundary in text.encode("utf-8", "replace"):
            boundary += b"-"
        pieces = [
            self._header_lines(),
            b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=",
            boundary,
            b"\n\n",
        ]
        pieces += [b"--", boundary, b"\nContent-Type: text/plain; charset=utf-8\n\n", text.encode("utf-8", "replace")]
        for name, attachment in self.attached().items():
            kind = b"message/rfc822" if attachment.message is not None else b"application/octet-stream"
            quoted = name.replace('"', "'").encode("utf-8", "replace")
            pieces += [b"\n--", boundary, b"\nContent-Type: ", kind, b"\nContent-Transfer-Encoding: base64\n"]
            pieces += [b'Content-Disposition: attachment; filename="', quoted, b'"\n\n']
            pieces.append(base64.encodebytes(attachment.content()))
        return b"".join([*pieces, b"\n--", boundary, b"--\n"])

    def _header_lines(self) -> bytes:
        fields = {
            "Subject": self.subject,
            "From": self._sender(),
            "To": self._recipients(1),
            "Cc": self._recipients(2),
            "Date": self._date(),
        }
        return "".join(f"{name}: {_line(value)}\n" for name, value in fields.items() if value).encode(
            "utf-8", "replace"
        )

    def _attachments(self) -> list[_Attachment]:
        return [_Attachment(storage, self.depth) for storage in self.storage.children("__attach_version1.0_")]

    def _is_encrypted(self) -> bool:
        headers = self.storage.text(_HEADERS).lower()
        return "content-type: multipart/encrypted" in headers or any(
            attachment.media_type in _ENCRYPTED_TYPES or attachment.name(0).lower().endswith(".rpmsg")
            for attachment in self._attachments()
        )

    def _body(self) -> tuple[list[Body], list[str]]:
        plain = letter.plain_body(self.storage.text(_BODY))
        markup, warning = self.storage.text(_HTML), ""
        raw = self.storage.binary(_HTML)
        if not markup and raw:
            markup, warning = decode_charset(raw, self.storage.internet_encoding)
        formatted = letter.html_body(markup) if markup.strip() else Body("")
        best = letter.best_body(plain, formatted)
        if best.text:
            return [best], [warning]
        packed = self.storage.binary(_RTF)
        if not packed:
            return [], []
        try:
            document = _rtf(lzfu.unpack_rtf(packed, limit=_LONGEST_RTF))
        except (DocumentEmpty, ValueError) as error:
            return [], [] if isinstance(error, DocumentEmpty) else [f"Its text cannot be unpacked: {error}."]
        return [Body(document.text, document.headings, document.hidden)], [*document.warnings]

    def _date(self) -> str:
        for number in (_SENT, _DELIVERED, _CREATED):
            if (time := self.storage.time(number)) is not None:
                return time.isoformat(timespec="seconds")
        return ""

    def _sender(self) -> str:
        address = self.storage.text(_SENDER_SMTP) or _smtp(self.storage.text(_SENDER_ADDRESS))
        return letter.addresses([(_line(self.storage.text(_SENDER_NAME)), _line(address))])

    def _recipients(self, kind: int) -> str:
        people = [
            (_line(person.text(_NAME)), _line(person.text(_SMTP) or _smtp(person.text(_ADDRESS))))
            for person in self.storage.children("__recip_version1.0_")
            if person.integer(_RECIPIENT_KIND) == kind
        ]
        return letter.addresses([person for person in people if any(person)]) or _line(
            self.storage.text(_DISPLAYED[kind])
        )


def _rtf(data: bytes) -> ParsedDocument:
    found: ParsedDocument = importlib.import_module("edgerag.ingest.parse.rtf").read(Source(data, ""))
    return found


def _line(text: str) -> str:
    return " ".join(clean_text(text).split())


def _smtp(address: str) -> str:
    """An address that means something outside its Exchange server."""
    return address if "@" in address else ""
