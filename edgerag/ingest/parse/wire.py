"""Messages between the ingest and a parser process: JSON in frames of known length, never pickle.

A frame is a magic number, the length of its body (8 bytes, big endian) and the body. Everything that
comes from a parser is untrusted: it is checked field by field before a record is made of it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from edgerag import errors
from edgerag.errors import DocumentError
from edgerag.types import Heading, Page, ParsedDocument

MAGIC: Final = b"EDG1"
HEADER: Final = struct.Struct(">4sQ")
# Text of the largest file in JSON, with room for escapes; more is not an answer.
MAX_BODY_BYTES: Final = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Request:
    """Read this file, unless its content is the one already known."""

    path: str
    known_sha256: str  # "" when nothing is known
    max_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FileState:
    """The file as it was read."""

    sha256: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Parsed:
    document: ParsedDocument
    state: FileState


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Another time stamp, but the content that was known."""

    state: FileState


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no document. ``skipped``: it is no failure, just nothing to read.
    ``lasting``: trying again before the file changes gives the same."""

    error: DocumentError
    skipped: bool
    lasting: bool


Reply = Parsed | Unchanged | Failed


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
        "seconds": request.seconds,
    }


def reply_body(reply: Reply) -> Mapping[str, Any]:
    match reply:
        case Parsed(document, state):
            return {
                "state": _state_body(state),
                "document": {
                    "text": document.text,
                    "title": document.title,
                    "media_type": document.media_type,
                    "pages": [(page.number, page.start, page.end) for page in document.pages],
                    "headings": [(heading.level, heading.title, heading.start) for heading in document.headings],
                    "warnings": document.warnings,
                },
            }
        case Unchanged(state):
            return {"state": _state_body(state)}
        case Failed(error, skipped, lasting):
            return {
                "error": type(error).__name__,
                "message": error.message,
                "remedy": error.remedy,
                "skipped": skipped,
                "lasting": lasting,
            }


def read_request(body: Any) -> Request:
    """Raises ValueError for anything that is not a request."""
    try:
        return Request(
            path=_text(body["path"]),
            known_sha256=_text(body["known_sha256"]),
            max_bytes=_number(body["max_bytes"]),
            seconds=float(body["seconds"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a request: {error}") from error


def read_reply(body: Any) -> Reply:
    """Raises ValueError for anything that is not a reply, spans outside the text included."""
    try:
        if "error" in body:
            return _read_failure(body)
        state = FileState(
            sha256=_text(body["state"]["sha256"]),
            size_bytes=_number(body["state"]["size_bytes"]),
            mtime_ns=_number(body["state"]["mtime_ns"]),
        )
        if "document" not in body:
            return Unchanged(state)
        return Parsed(_read_document(body["document"]), state)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a reply: {error}") from error


def _state_body(state: FileState) -> Mapping[str, Any]:
    return {"sha256": state.sha256, "size_bytes": state.size_bytes, "mtime_ns": state.mtime_ns}


def _read_failure(body: Any) -> Failed:
    kind = getattr(errors, _text(body["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, DocumentError)):
        raise ValueError(f"not an error of a document: {body['error']!r}")
    error = kind(_text(body["message"]), remedy=_text(body["remedy"]))
    return Failed(error, skipped=body["skipped"] is True, lasting=body["lasting"] is True)


def _read_document(body: Any) -> ParsedDocument:
    text = _text(body["text"])
    pages = tuple(Page(_number(n), _number(start), _number(end)) for n, start, end in body["pages"])
    headings = tuple(Heading(_number(level), _text(title), _number(start)) for level, title, start in body["headings"])
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
    return ParsedDocument(
        text=text,
        title=_text(body["title"]),
        media_type=_text(body["media_type"]),
        pages=pages,
        headings=headings,
        warnings=tuple(_text(warning) for warning in body["warnings"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is not text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is not a whole number")
    return value
