"""One file, or one member of an archive or a mail, to one reply: opened, read once, hashed, recognised, parsed.

Runs in the parser process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import BinaryIO

from edgerag.errors import (
    DocumentDamaged,
    DocumentEmpty,
    DocumentEncrypted,
    DocumentError,
    DocumentGone,
    DocumentScanned,
    DocumentTooLarge,
    DocumentUnsupported,
    ParserDied,
)
from edgerag.ingest.parse import locked_odf, locked_office
from edgerag.ingest.parse.dates import file_time_ns
from edgerag.ingest.parse.hidden_text import with_hidden_characters
from edgerag.ingest.parse.orders import with_orders_named
from edgerag.ingest.parse.sniff import HEAD_BYTES, Format, needs_whole_file, sniff
from edgerag.ingest.parse.source import Container, Source, Unrecognised
from edgerag.ingest.parse.text_parts import comes_in_parts, open_parts
from edgerag.ingest.parse.wire import Failed, FileState, Parsed, Picture, Request, ToRecognise, Unchanged, WorkerReply
from edgerag.ingest.parse.wire_page import PageReply
from edgerag.types import PageWanted, ParsedDocument

# Imported when the first file of the kind comes: a folder of Markdown never loads a PDF library.
_PARSERS: dict[Format, str] = {
    "pdf": "edgerag.ingest.parse.pdf",
    "docx": "edgerag.ingest.parse.docx",
    "pptx": "edgerag.ingest.parse.pptx",
    "spreadsheet": "edgerag.ingest.parse.spreadsheet",
    "opendocument": "edgerag.ingest.parse.opendocument",
    "rtf": "edgerag.ingest.parse.rtf",
    "epub": "edgerag.ingest.parse.epub",
    "html": "edgerag.ingest.parse.html",
    "markdown": "edgerag.ingest.parse.markdown",
    "rst": "edgerag.ingest.parse.rst",
    "asciidoc": "edgerag.ingest.parse.asciidoc",
    "latex": "edgerag.ingest.parse.latex",
    "notebook": "edgerag.ingest.parse.notebook",
    "csv": "edgerag.ingest.parse.csv_table",
    "structured": "edgerag.ingest.parse.structured",
    "code": "edgerag.ingest.parse.code",
    "text": "edgerag.ingest.parse.text",
    "mail": "edgerag.ingest.parse.mail",
    "mailbox": "edgerag.ingest.parse.mailbox",
    "outlook": "edgerag.ingest.parse.outlook",
    "archive": "edgerag.ingest.parse.archive",
    "image": "edgerag.ingest.parse.image",
}
# Here emptiness is no finding but what the file is; a PDF or DOCX without text is a failure.
_MAY_BE_EMPTY: frozenset[Format] = frozenset(
    {"text", "markdown", "html", "rst", "asciidoc", "latex", "csv", "structured", "code", "notebook"}
)
# The first part of such a file, which is never packed (ODF 1.3 part 2, 3.3).
_OPENDOCUMENT, _MIMETYPE_WITHIN = b"application/vnd.oasis.opendocument.", 200
# An archive in an archive in a mail is common; deeper is a bomb.
_DEEPEST = 3


class Reader:
    """Answers requests. The container that was opened last is kept, so that asking for its members one after the other
    reads it once."""

    def __init__(self) -> None:
        self._path = ""
        self._opened: _Opened | None = None

    def read(self, request: Request) -> WorkerReply:
        """Never raises for what a file may hold; MemoryError and interrupts pass."""
        try:
            # O_NONBLOCK: something may have put a FIFO in the file's place since it was listed.
            descriptor = os.open(request.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return _unreadable(error)
        try:
            return self._read_open(descriptor, request)
        except OSError as error:
            return _unreadable(error)
        finally:
            os.close(descriptor)

    def _read_open(self, descriptor: int, request: Request) -> WorkerReply:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Failed(DocumentUnsupported("It is not a regular file."), skipped=True, lasting=False)
        identity = (status.st_dev, status.st_ino, status.st_size, file_time_ns(status))
        if request.member and self._opened is not None and self._path == request.path and self._opened.is_of(identity):
            return self._opened.read(request)
        self._opened = None
        name = PurePath(request.path).name
        head = os.pread(descriptor, HEAD_BYTES, 0)
        format_: Format | None = None
        if status.st_size > len(head) and not needs_whole_file(head):
            try:
                format_ = sniff(Source(head, name, ocr=request.ocr))
            except DocumentError as error:
                return _failed(error, None)
            if comes_in_parts(format_, name, status.st_size):
                return self._open_parts(descriptor, request, name, format_)
        if status.st_size > request.max_bytes:
            return Failed(too_large(status.st_size, request.max_bytes), skipped=True, lasting=False)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(status.st_size + 1)  # memory is reserved for as much as is asked for
            if len(data) > status.st_size:  # it grew since
                data += file.read(request.max_bytes + 1 - len(data))
        if len(data) > request.max_bytes:  # it grew while it was read
            return Failed(too_large(len(data), request.max_bytes), skipped=True, lasting=False)
        state = FileState(hashlib.sha256(data).hexdigest(), status.st_size, file_time_ns(status), len(data))
        if not request.member and state.sha256 == request.known_sha256:
            return Unchanged(state)
        try:
            if request.member:  # what the file around it says itself was read before
                found = _parse_any(Source(data, name, request.passwords), format_)
            elif request.view is not None:
                return _viewed(_source(request, data, name), request.view, state.sha256)
            elif request.picture_of:
                return _picture(_source(request, data, name), request.picture_of)
            else:
                found = _parse_any(_source(request, data, name), format_)
        except _Refused as refused:
            own = "" if request.member else state.sha256
            return dataclasses.replace(_failed(refused.error, refused.format), sha256=own)
        del data  # a container may have unpacked it, and a member is yet to be read
        if not isinstance(found, Container):
            if request.member:
                gone = DocumentDamaged("The file around it holds nothing any more.")
                return Failed(gone, skipped=False, lasting=False)
            return ToRecognise(found.pages) if isinstance(found, Unrecognised) else Parsed(found, state)
        self._path, self._opened = request.path, _Opened(identity, state, found)
        return self._opened.read(request) if request.member else _opened_reply(found, state)

    def _open_parts(self, descriptor: int, request: Request, name: str, format_: Format) -> WorkerReply:
        status = os.fstat(descriptor)
        if status.st_size > request.max_text_bytes:
            error = too_large(status.st_size, request.max_text_bytes, "ingest.max_text_size")
            return Failed(error, skipped=True, lasting=False)
        container, sha256 = open_parts(lambda: _reopened(request.path), name, format_)
        state = FileState(sha256, status.st_size, file_time_ns(status))
        if not request.member and state.sha256 == request.known_sha256:
            return Unchanged(state)
        identity = (status.st_dev, status.st_ino, status.st_size, file_time_ns(status))
        self._path, self._opened = request.path, _Opened(identity, state, container)
        return self._opened.read(request) if request.member else _opened_reply(container, state)


@dataclass(slots=True)
class _Opened:
    """A container as it was read, and those inside that were opened on the way to a member."""

    identity: tuple[int, int, int, int]
    state: FileState
    container: Container
    inner: dict[tuple[str, ...], Container] = field(default_factory=dict)

    def is_of(self, identity: tuple[int, int, int, int]) -> bool:
        """Whether this is what was read of that file. A text in parts may have grown since, as logs do: it is read as
        far as it went, and the next run goes on."""
        if self.container.parse_part is not None:
            return identity[:2] == self.identity[:2] and identity[2] >= self.identity[2]
        return identity == self.identity

    def read(self, request: Request) -> WorkerReply:
        """The member that is asked for; its containers are opened one by one."""
        if len(request.member) > _DEEPEST:
            return _failed(DocumentUnsupported(f"It lies in more than {_DEEPEST} archives, one in the other."), None)
        # What was opened beside the way to it is not asked for again.
        self.inner = {
            chain: container for chain, container in self.inner.items() if chain == request.member[: len(chain)]
        }
        try:
            around = self._around(request)
            data = _content(around, request.member[-1], request.max_bytes)
        except _Refused as refused:
            if refused.gone:
                return Failed(refused.error, skipped=False, lasting=False)
            return _failed(refused.error, refused.format)
        state = dataclasses.replace(self.state, sha256=hashlib.sha256(data).hexdigest(), content_bytes=len(data))
        if state.sha256 == request.known_sha256:
            return Unchanged(state)
        try:
            if around.parse_part is not None:
                return Parsed(_parse_part(around.parse_part, request.member[-1], data), state)
            source = _source(request, data, PurePath(request.member[-1]).name)
            if request.view is not None:
                return _viewed(source, request.view, state.sha256)
            if request.picture_of:
                return _picture(source, request.picture_of)
            found = _parse_any(source, None)
        except _Refused as refused:
            return dataclasses.replace(_failed(refused.error, refused.format), sha256=state.sha256)
        if isinstance(found, Container):
            self.inner[request.member] = found
            return _opened_reply(found, state)
        return ToRecognise(found.pages) if isinstance(found, Unrecognised) else Parsed(found, state)

    def _around(self, request: Request) -> Container:
        container = self.container
        for depth in range(1, len(request.member)):
            chain = request.member[:depth]
            if chain not in self.inner:
                data = _content(container, chain[-1], request.max_bytes)
                found = _parse_any(Source(data, PurePath(chain[-1]).name, request.passwords), None)
                if not isinstance(found, Container):
                    raise _Refused(DocumentDamaged("What it lies in is no archive."), None)
                self.inner[chain] = found
            container = self.inner[chain]
        return container


def _reopened(path: str) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)


class _Refused(Exception):
    """Why a source gave no document, and as what it was read. ``gone``: there is no member of that name any more."""

    def __init__(self, error: DocumentError, format_: Format | None, *, gone: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.format = format_
        self.gone = gone


def _source(request: Request, data: bytes, name: str) -> Source:
    return Source(data, name, request.passwords, request.ocr, request.recognised)


def _picture(source: Source, page: int) -> Picture:
    """A page for OCR, drawn by the parser of its format."""
    format_: Format | None = None
    try:
        format_ = sniff(source)
        return Picture(importlib.import_module(_PARSERS[format_]).draw(source, page))
    except DocumentError as error:
        raise _Refused(error, format_) from error


def _viewed(source: Source, wanted: PageWanted, sha256: str) -> PageReply:
    """A page as it is seen."""
    format_: Format | None = None
    try:
        format_ = sniff(source)
        if format_ != "pdf":
            raise DocumentUnsupported("It is no PDF any more.")
        return PageReply(importlib.import_module(_PARSERS[format_]).view(source, wanted), sha256)
    except DocumentError as error:
        raise _Refused(error, format_) from error


def _parse_any(source: Source, format_: Format | None) -> ParsedDocument | Container | Unrecognised:
    try:
        source = _unlocked(source)
        format_ = format_ or sniff(source)
        if comes_in_parts(format_, source.name, len(source.data)):
            return open_parts(lambda: io.BytesIO(source.data), source.name, format_)[0]
        return parse(source, format_)
    except DocumentError as error:
        raise _Refused(error, format_) from error


def _unlocked(source: Source) -> Source:
    """The file without the encryption around it. What is encrypted in its own way is left to its parser."""
    data = source.data
    try:
        if locked_office.is_locked(data):
            return dataclasses.replace(source, data=locked_office.unlocked(data, source.passwords))
        if _OPENDOCUMENT in data[:_MIMETYPE_WITHIN] and locked_odf.is_locked(data):
            return dataclasses.replace(source, data=locked_odf.unlocked(data, source.passwords))
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # as of a parser
        raise _gave_up("It cannot be decrypted", error) from error
    return source


def _parse_part(parse_part: Callable[[str, bytes], ParsedDocument], name: str, data: bytes) -> ParsedDocument:
    try:
        return _looked_through(parse_part(name, data))
    except DocumentError as error:
        raise _Refused(error, "text") from error


def _opened_reply(container: Container, state: FileState) -> Parsed:
    return Parsed(container.document, state, container.members, in_parts=container.parse_part is not None)


def _content(container: Container, name: str, max_bytes: int) -> bytes:
    try:
        return container.read(name, max_bytes)
    except DocumentError as error:
        raise _Refused(error, None, gone=name not in container.members) from error
    except RecursionError as error:
        raise _Refused(DocumentDamaged("It is nested too deeply to be read."), None) from error
    except MemoryError:
        raise
    except Exception as error:  # what unpacks a hostile file may raise anything, as a parser may
        raise _Refused(_gave_up("It cannot be taken out of the file around it", error), None) from error


def _failed(error: DocumentError, format_: Format | None) -> Failed:
    if isinstance(error, DocumentUnsupported):
        return Failed(error, skipped=True, lasting=False)
    if isinstance(error, DocumentEmpty):
        blank = format_ in _MAY_BE_EMPTY
        return Failed(error, skipped=blank, lasting=not blank and not isinstance(error, DocumentScanned))
    # With a password, as with Tesseract on the machine, the next run may read it.
    return Failed(error, skipped=False, lasting=not isinstance(error, DocumentEncrypted))


def parse(source: Source, format_: Format) -> ParsedDocument | Container | Unrecognised:
    """The document in a file of a known format, or what holds others. Raises DocumentError."""
    parser: Callable[[Source], ParsedDocument | Container | Unrecognised]
    parser = importlib.import_module(_PARSERS[format_]).parse
    try:
        found = parser(source)
        if isinstance(found, ParsedDocument):
            return _looked_through(found)
        if isinstance(found, Container) and found.document is not None:
            return dataclasses.replace(found, document=_looked_through(found.document))
        return found
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentDamaged("It is nested too deeply to be read.") from error
    except Exception as error:  # a parser fed with a hostile file may raise anything; it is named
        raise _gave_up(f"The {format_} parser gave up", error) from error


def _looked_through(document: ParsedDocument) -> ParsedDocument:
    """With what it hides and whom it tries to command in its warnings."""
    return with_orders_named(with_hidden_characters(document))


def _gave_up(what: str, error: Exception) -> ParserDied:
    return ParserDied(f"{what}: {type(error).__name__}: {str(error)[:200]}".rstrip(": ") + ".")


def too_large(size_bytes: int, max_bytes: int, setting: str = "ingest.max_file_size") -> DocumentTooLarge:
    return DocumentTooLarge(
        f"It is larger than the limit ({size_bytes:,} bytes, the limit is {max_bytes:,}).",
        remedy=f"Raise {setting} to read it.",
    )


def _unreadable(error: OSError) -> Failed:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Failed(DocumentGone("It was gone when it was to be read."), skipped=True, lasting=False)
    # Not remembered: the permission may be given without the file changing.
    return Failed(
        DocumentDamaged(f"It cannot be opened: {os.strerror(error.errno or 0)}."), skipped=False, lasting=False
    )
