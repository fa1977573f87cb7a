"""What became of one file, as it is reported. Pure."""

from __future__ import annotations

from edgerag.ingest.parse.wire import Parsed
from edgerag.types import Document, FileReport, Outcome, ParsedDocument


def file_report(
    path: str,
    outcome: Outcome,
    reason: str,
    document: Document | ParsedDocument | None,
    chunk_count: int,
    *,
    size_bytes: int,
    seconds: float,
    moved_from: str,
) -> FileReport:
    """``document`` is what the library knows, or what was read now, with its number of chunks."""
    pages = characters = 0
    match document:
        case Document():
            size_bytes = size_bytes or document.content_bytes
            chunk_count, pages, characters = document.chunk_count, document.page_count, document.character_count
        case ParsedDocument():
            pages, characters = len(document.pages), len(document.text)
    return FileReport(
        path,
        outcome,
        reason,
        chunk_count,
        media_type="" if document is None else document.media_type,
        page_count=pages,
        character_count=characters,
        size_bytes=size_bytes,
        seconds=seconds,
        warnings=() if document is None else document.warnings,
        moved_from=moved_from,
        language="" if document is None else document.language,
    )


def holding(parsed: Parsed) -> str:
    """What a file that holds others is said to hold."""
    if not parsed.members:
        return ""
    if parsed.in_parts:
        return f"It is read in {len(parsed.members)} parts."
    return "It holds 1 file." if len(parsed.members) == 1 else f"It holds {len(parsed.members)} files."
