"""One file to one reply: opened, read once, hashed, recognised, parsed. Runs in the parser process."""

from __future__ import annotations

import hashlib
import importlib
import os
import stat
from collections.abc import Callable
from pathlib import PurePath

from edgerag.errors import (
    DocumentDamaged,
    DocumentEmpty,
    DocumentError,
    DocumentUnsupported,
    ParserDied,
)
from edgerag.ingest.parse.sniff import HEAD_BYTES, Format, needs_whole_file, sniff
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.wire import Failed, FileState, Parsed, Reply, Request, Unchanged
from edgerag.types import ParsedDocument

# Imported when the first file of the kind comes: a folder of Markdown never loads a PDF library.
_PARSERS: dict[Format, str] = {
    "pdf": "edgerag.ingest.parse.pdf",
    "docx": "edgerag.ingest.parse.docx",
    "html": "edgerag.ingest.parse.html",
    "markdown": "edgerag.ingest.parse.markdown",
    "text": "edgerag.ingest.parse.text",
}
# Here emptiness is no finding but what the file is; a PDF or DOCX without text is a failure.
_MAY_BE_EMPTY: frozenset[Format] = frozenset({"text", "markdown", "html"})


def read(request: Request) -> Reply:
    """Never raises for what a file may hold; MemoryError and interrupts pass."""
    try:
        # O_NONBLOCK: something may have put a FIFO in the file's place since it was listed.
        descriptor = os.open(request.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _unreadable(error)
    try:
        return _read_open(descriptor, request)
    except OSError as error:
        return _unreadable(error)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, request: Request) -> Reply:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return Failed(DocumentUnsupported("It is not a regular file."), skipped=True, lasting=False)
    if status.st_size > request.max_bytes:
        return Failed(too_large(status.st_size, request.max_bytes), skipped=True, lasting=False)
    name = PurePath(request.path).name
    head = os.pread(descriptor, HEAD_BYTES, 0)
    format_: Format | None = None
    if status.st_size > len(head) and not needs_whole_file(head):
        try:
            format_ = sniff(Source(head, name))
        except DocumentError as error:
            return Failed(error, skipped=isinstance(error, DocumentUnsupported), lasting=False)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        data = file.read(request.max_bytes + 1)
    if len(data) > request.max_bytes:  # it grew while it was read
        return Failed(too_large(len(data), request.max_bytes), skipped=True, lasting=False)
    state = FileState(hashlib.sha256(data).hexdigest(), status.st_size, status.st_mtime_ns)
    if state.sha256 == request.known_sha256:
        return Unchanged(state)
    source = Source(data, name)
    try:
        format_ = format_ or sniff(source)
        document = parse(source, format_)
    except DocumentUnsupported as error:
        return Failed(error, skipped=True, lasting=False)
    except DocumentEmpty as error:
        blank = format_ in _MAY_BE_EMPTY
        return Failed(error, skipped=blank, lasting=not blank)
    except DocumentError as error:
        return Failed(error, skipped=False, lasting=True)
    return Parsed(document, state)


def parse(source: Source, format_: Format) -> ParsedDocument:
    """The document in a file of a known format. Raises DocumentError."""
    parser: Callable[[Source], ParsedDocument] = importlib.import_module(_PARSERS[format_]).parse
    try:
        return parser(source)
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentDamaged("It is nested too deeply to be read.") from error
    except Exception as error:  # a parser fed with a hostile file may raise anything; it is named
        raise ParserDied(
            f"The {format_} parser gave up: {type(error).__name__}: {str(error)[:200]}".rstrip(": ") + "."
        ) from error


def too_large(size_bytes: int, max_bytes: int) -> DocumentUnsupported:
    return DocumentUnsupported(
        f"It is larger than the limit ({size_bytes / 1e6:.1f} MB, the limit is {max_bytes / 1e6:.1f} MB).",
        remedy="Raise ingest.max_file_size to read it.",
    )


def _unreadable(error: OSError) -> Failed:
    # Not remembered: the permission may be given without the file changing.
    return Failed(
        DocumentDamaged(f"It cannot be opened: {os.strerror(error.errno or 0)}."), skipped=False, lasting=False
    )
