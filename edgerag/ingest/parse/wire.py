"""Messages between the ingest and a parser process: JSON in frames of known length, never pickle.

A frame is a magic number, the length of its body (8 bytes, big endian) and the body. Everything that
comes from a parser is untrusted: it is checked field by field before a record is made of it.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from edgerag import errors
from edgerag.errors import DocumentError
from edgerag.ingest.parse import wire_fields as fields
from edgerag.ingest.parse.source import Recognised
from edgerag.ingest.parse.wire_page import PageReply, page_body, read_page, read_wanted, wanted_body
from edgerag.types import Heading, OcrMode, Page, PageWanted, ParsedDocument

MAGIC: Final = b"EDG1"
HEADER: Final = struct.Struct(">4sQ")
# Text of the largest file in JSON, with room for escapes; more is not an answer.
MAX_BODY_BYTES: Final = 4 * 2**30
MAX_TEXT_BYTES: Final = 8_000_000_000  # of a text that is read in parts, where nothing else is said


@dataclass(frozen=True, slots=True)
class Request:
    """Read this file, unless its content is the one already known."""

    path: str
    known_sha256: str  # "" when nothing is known
    max_bytes: int
    seconds: float
    member: tuple[str, ...] = ()  # names from the outermost container inwards; empty: the file itself
    passwords: tuple[str, ...] = field(default=(), repr=False)  # to be tried on what is protected; kept nowhere
    ocr: OcrMode = "off"  # other than "off" the reply may be ToRecognise
    recognised: tuple[Recognised, ...] = ()  # what OCR read on the pages that were asked for
    picture_of: int = 0  # draw this page, to be answered with Picture; 0: none
    max_text_bytes: int = MAX_TEXT_BYTES  # of a text that is read in parts
    view: PageWanted | None = None  # draw this page, to be answered with PageReply


@dataclass(frozen=True, slots=True)
class FileState:
    """The file as it was read; of a member the checksum is its own, size and time are those of the file around it."""

    sha256: str
    size_bytes: int
    mtime_ns: int
    content_bytes: int = 0  # of the file or the member itself


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document, or a container: then ``members`` are to be asked for one by one, and ``document`` is what it says
    itself, if anything. ``in_parts``: they are parts of one text."""

    document: ParsedDocument | None
    state: FileState
    members: tuple[str, ...] = ()
    in_parts: bool = False


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Another time stamp, but the content that was known."""

    state: FileState


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no document. ``skipped``: it is no failure, just nothing to read.
    ``lasting``: trying again before the file changes gives the same. ``sha256``: of what was refused, "" where it
    could not be read so far."""

    error: DocumentError
    skipped: bool
    lasting: bool
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ToRecognise:
    """The file is to be asked for again when OCR has read these pages."""

    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as an image file."""

    data: bytes


Reply = Parsed | Unchanged | Failed
# What a worker may say on the way to it.
WorkerReply = Reply | ToRecognise | Picture | PageReply


def frame(body: Mapping[str, Any]) -> bytes:
    """One message, ready to be written."""
    # Escaped, so that names that are not valid Unicode pass.
    data = json.dumps(body, separators=(",", ":")).encode("ascii")
    return HEADER.pack(MAGIC, len(data)) + data


def request_body(request: Request) -> Mapping[str, Any]:
    return {
        "path": request.path,
        "known_sha256": request.known_sha256,
        "max_bytes": request.max_bytes,
        "max_text_bytes": request.max_text_bytes,
        "seconds": request.seconds,
        "member": request.member,
        "passwords": request.passwords,
        "ocr": request.ocr,
        "recognised": [(page.page, page.text, page.confidence, page.trouble) for page in request.recognised],
        "picture_of": request.picture_of,
        "view": None if request.view is None else wanted_body(request.view),
    }


def reply_body(reply: WorkerReply) -> Mapping[str, Any]:
    match reply:
        case Parsed(document, state, members, in_parts):
            return {
                "in_parts": in_parts,
                "state": _state_body(state),
                "members": members,
                "document": None if document is None else _document_body(document),
            }
        case Unchanged(state):
            return {"state": _state_body(state)}
        case ToRecognise(pages):
            return {"to_recognise": pages}
        case Picture(data):
            return {"picture": base64.b64encode(data).decode("ascii")}
        case PageReply():
            return {"page": page_body(reply)}
        case Failed(error, skipped, lasting, sha256):
            return {
                "error": type(error).__name__,
                "message": error.message,
                "remedy": error.remedy,
                "skipped": skipped,
                "lasting": lasting,
                "sha256": sha256,
            }


def read_request(body: Any) -> Request:
    """Raises ValueError for anything that is not a request."""
    try:
        return Request(
            path=fields.text(body["path"]),
            known_sha256=fields.text(body["known_sha256"]),
            max_bytes=fields.whole_number(body["max_bytes"]),
            max_text_bytes=fields.whole_number(body["max_text_bytes"]),
            seconds=float(body["seconds"]),
            member=tuple(fields.text(name) for name in body["member"]),
            passwords=tuple(fields.text(password) for password in body["passwords"]),
            ocr=_ocr_mode(body["ocr"]),
            recognised=tuple(
                Recognised(fields.whole_number(page), fields.text(text), float(confidence), fields.text(trouble))
                for page, text, confidence, trouble in body["recognised"]
            ),
            picture_of=fields.whole_number(body["picture_of"]),
            view=None if body["view"] is None else read_wanted(body["view"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a request: {error}") from error


def read_reply(body: Any) -> WorkerReply:
    """Raises ValueError for anything that is not a reply, spans outside the text included."""
    try:
        if "error" in body:
            return _read_failure(body)
        if "to_recognise" in body:
            return ToRecognise(tuple(fields.whole_number(page) for page in body["to_recognise"]))
        if "picture" in body:
            return Picture(base64.b64decode(fields.text(body["picture"]), validate=True))
        if "page" in body:
            return read_page(body["page"])
        state = FileState(
            sha256=fields.text(body["state"]["sha256"]),
            size_bytes=fields.whole_number(body["state"]["size_bytes"]),
            mtime_ns=fields.whole_number(body["state"]["mtime_ns"]),
            content_bytes=fields.whole_number(body["state"]["content_bytes"]),
        )
        if "document" not in body:
            return Unchanged(state)
        document = None if body["document"] is None else _read_document(body["document"])
        return Parsed(document, state, tuple(fields.text(name) for name in body["members"]), body["in_parts"] is True)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a reply: {error}") from error


def _document_body(document: ParsedDocument) -> Mapping[str, Any]:
    return {
        "text": document.text,
        "title": document.title,
        "media_type": document.media_type,
        "pages": [(page.number, page.start, page.end) for page in document.pages],
        "headings": [(heading.level, heading.title, heading.start) for heading in document.headings],
        "warnings": document.warnings,
        "hidden": document.hidden,
        "first_line": document.first_line,
        "dated_ns": document.dated_ns,
    }


def _state_body(state: FileState) -> Mapping[str, Any]:
    return {
        "sha256": state.sha256,
        "size_bytes": state.size_bytes,
        "mtime_ns": state.mtime_ns,
        "content_bytes": state.content_bytes,
    }


def _read_failure(body: Any) -> Failed:
    kind = getattr(errors, fields.text(body["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, DocumentError)):
        raise ValueError(f"not an error of a document: {body['error']!r}")
    error = kind(fields.text(body["message"]), remedy=fields.text(body["remedy"]))
    return Failed(
        error, skipped=body["skipped"] is True, lasting=body["lasting"] is True, sha256=fields.text(body["sha256"])
    )


def _read_document(body: Any) -> ParsedDocument:
    text = fields.text(body["text"])
    pages = tuple(
        Page(fields.whole_number(n), fields.whole_number(start), fields.whole_number(end))
        for n, start, end in body["pages"]
    )
    headings = tuple(
        Heading(fields.whole_number(level), fields.text(title), fields.whole_number(start))
        for level, title, start in body["headings"]
    )
    position = 0
    for page in pages:
        if not position <= page.start <= page.end <= len(text):
            raise ValueError("the pages do not lie in the text")
        position = page.end
    position = 0
    for heading in headings:
        if not position <= heading.start <= len(text):
            raise ValueError("the headings do not lie in the text")
        position = heading.start
    hidden = tuple((fields.whole_number(start), fields.whole_number(end)) for start, end in body["hidden"])
    position = 0
    for start, end in hidden:
        if not position <= start <= end <= len(text):
            raise ValueError("the hidden spans do not lie in the text")
        position = end
    first_line = fields.whole_number(body["first_line"])
    if first_line < 1:
        raise ValueError("lines count from 1")
    return ParsedDocument(
        text=text,
        title=fields.text(body["title"]),
        media_type=fields.text(body["media_type"]),
        pages=pages,
        headings=headings,
        warnings=tuple(fields.text(warning) for warning in body["warnings"]),
        hidden=hidden,
        first_line=first_line,
        dated_ns=_moment(body["dated_ns"]),
    )


def _ocr_mode(value: Any) -> OcrMode:
    for mode in get_args(OcrMode):
        if value == mode:
            return mode  # type: ignore[no-any-return]
    raise TypeError(f"{value!r:.100} is not a mode of OCR")


def _moment(value: Any) -> int | None:
    if value is None or -(2**63) <= fields.whole_number(value) < 2**63:  # what the database can hold
        return value  # type: ignore[no-any-return]
    raise ValueError(f"{value!r:.100} is no moment")
