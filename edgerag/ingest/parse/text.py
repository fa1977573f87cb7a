"""Plain text and everything text-like: the document is the file, so that its lines are the true lines."""

from __future__ import annotations

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.encoding import decode
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".xml": "application/xml",
    ".rst": "text/x-rst",
    ".adoc": "text/asciidoc",
    ".asciidoc": "text/asciidoc",
    ".tex": "text/x-tex",
    ".org": "text/org",
    ".log": "text/x-log",
    ".py": "text/x-python",
    ".js": "text/javascript",
    ".ts": "text/x-typescript",
    ".css": "text/css",
    ".java": "text/x-java",
    ".c": "text/x-c",
    ".h": "text/x-c",
    ".cc": "text/x-c++",
    ".cpp": "text/x-c++",
    ".hpp": "text/x-c++",
    ".rs": "text/x-rust",
    ".go": "text/x-go",
    ".rb": "text/x-ruby",
    ".php": "text/x-php",
    ".sh": "text/x-shellscript",
    ".sql": "text/x-sql",
}


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    return ParsedDocument(
        text=text,
        title=source.fallback_title,
        media_type=_MEDIA_TYPES.get(source.extension, "text/plain"),
        warnings=warnings,
    )


def read_text(source: Source) -> tuple[str, tuple[str, ...]]:
    """The decoded file and warnings; every kind of line end is a line feed, as in any editor.

    Raises DocumentEmpty when there is nothing but blanks.
    """
    if not source.data:
        raise DocumentEmpty("The file is empty.")
    decoded = decode(source.data)
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    # A NUL is a hole (a log after a power cut): as a blank it separates words and keeps the offsets.
    text = text.replace("\x00", " ")
    if not text.strip():
        raise DocumentEmpty("There is nothing but blanks in the file.")
    warnings = []
    if decoded.guessed:
        warnings.append(f"The encoding was taken to be {decoded.encoding}.")
    if lost := text.count("\ufffd"):
        warnings.append(f"{lost} characters could not be decoded.")
    return text, tuple(warnings)
