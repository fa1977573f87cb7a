"""A picture of text, such as a photographed letter: one page, or those of a TIFF. Without OCR it is skipped.

The image is not decoded here: Tesseract does that, in a process with a bound on its memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from edgerag.errors import DocumentUnsupported
from edgerag.ingest.parse.source import Recognised, Source, Unrecognised, clean_text
from edgerag.types import Page, ParsedDocument

_PAGE_SEPARATOR = "\n\n"
_MOST_NAMED = 8  # pages in a warning
_MOST_PAGES = 2_000  # as many as are read by OCR
_TIFF_ORDERS = {b"II*\x00": "<", b"MM\x00*": ">"}
_TIFF_HEADER_BYTES, _TIFF_ENTRY_BYTES = 8, 12
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
    count = _page_count(source.data)
    read = {page.page: page for page in source.recognised}
    if wanted := tuple(number for number in range(1, count + 1) if number not in read):
        return Unrecognised(wanted)
    texts = {number: text for number in range(1, count + 1) if (text := clean_text(read[number].text).strip())}
    if not texts:
        raise DocumentUnsupported(f"It is {kind} in which OCR found no text. {read[1].trouble}".rstrip())
    pieces: list[str] = []
    pages: list[Page] = []
    length = 0
    for number in range(1, count + 1):
        text = texts.get(number, "")
        piece = f"{_PAGE_SEPARATOR}{text}" if text and length else text
        pieces.append(piece)
        length += len(piece)
        pages.append(Page(number, length - len(text), length))
    return ParsedDocument(
        text="".join(pieces),
        title=source.fallback_title,
        media_type=media_type,
        pages=tuple(pages),
        warnings=tuple(_warnings(texts, read)),
    )


def _warnings(texts: Mapping[int, str], read: Mapping[int, Recognised]) -> Iterator[str]:
    characters = sum(map(len, texts.values()))
    confidence = sum(read[number].confidence * len(text) for number, text in texts.items()) / characters
    yield f"It was read by OCR (confidence {confidence:.0f} %)."
    troubles: dict[str, list[str]] = {}
    for number, page in read.items():
        if number not in texts:
            troubles.setdefault(page.trouble, []).append(str(number))
    for trouble, numbers in troubles.items():
        named = f"page{'s' if len(numbers) > 1 else ''} {', '.join(numbers[:_MOST_NAMED])}"
        named += ", ..." if len(numbers) > _MOST_NAMED else ""
        yield f"OCR found no text on {named}" + (f": {trouble}" if trouble else ".")


def draw(source: Source, number: int) -> bytes:
    """The image itself, with all its pages: which one is read is said to Tesseract. Raises DocumentUnsupported for what
    is none."""
    _kind(source.data)
    return source.data if number <= _page_count(source.data) else b""


def _page_count(data: bytes) -> int:
    """The pages of a TIFF (revision 6.0, section 2); 1 for any other image."""
    order = _TIFF_ORDERS.get(data[:4])
    if order is None or len(data) < _TIFF_HEADER_BYTES:
        return 1
    seen: set[int] = set()
    (offset,) = struct.unpack_from(order + "I", data, 4)
    while offset and offset not in seen and len(seen) < _MOST_PAGES and offset + 2 <= len(data):
        seen.add(offset)
        (entries,) = struct.unpack_from(order + "H", data, offset)
        following = offset + 2 + _TIFF_ENTRY_BYTES * entries
        if following + 4 > len(data):
            break
        (offset,) = struct.unpack_from(order + "I", data, following)
    return max(1, len(seen))


def _kind(data: bytes) -> tuple[str, str]:
    for start, kind, media_type in _KINDS:
        if data.startswith(start) and (start != b"RIFF" or data[8:12] == b"WEBP"):
            return kind, media_type
    raise DocumentUnsupported("It is a picture of a kind that is not read.")
