"""A picture of text, such as a photographed letter: one page, read by OCR. Without OCR it is skipped.

The image is not decoded here: Tesseract does that, in a process with a bound on its memory.
"""

from __future__ import annotations

from edgerag.errors import DocumentUnsupported
from edgerag.ingest.parse.source import Source, Unrecognised, clean_text
from edgerag.types import Page, ParsedDocument

_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image", "image/png"),
    (b"\xff\xd8\xff", "a JPEG image", "image/jpeg"),
    (b"II*\x00", "a TIFF image", "image/tiff"),
    (b"MM\x00*", "a TIFF image", "image/tiff"),
    (b"RIFF", "a WebP image", "image/webp"),
)


def parse(source: Source) -> ParsedDocument | Unrecognised:
    """Raises DocumentUnsupported when OCR is off, or has found no text: most pictures hold none."""
    kind, media_type = _kind(source.data)
    if source.ocr == "off":
        raise DocumentUnsupported(
            f"It is {kind}, which is read by OCR only.", remedy="Install Tesseract and use --ocr auto."
        )
    if not source.recognised:
        return Unrecognised((1,))
    read = source.recognised[0]
    text = clean_text(read.text).strip()
    if not text:
        raise DocumentUnsupported(f"It is {kind} in which OCR found no text. {read.trouble}".rstrip())
    return ParsedDocument(
        text=text,
        title=source.fallback_title,
        media_type=media_type,
        pages=(Page(1, 0, len(text)),),
        warnings=(f"It was read by OCR (confidence {read.confidence:.0f} %).",),
    )


def draw(source: Source, number: int) -> bytes:
    """The image itself, which is page 1. Raises DocumentUnsupported for what is none."""
    _kind(source.data)
    return source.data if number == 1 else b""


def _kind(data: bytes) -> tuple[str, str]:
    for start, kind, media_type in _KINDS:
        if data.startswith(start) and (start != b"RIFF" or data[8:12] == b"WEBP"):
            return kind, media_type
    raise DocumentUnsupported("It is a picture of a kind that is not read.")
