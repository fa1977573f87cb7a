"""PDF through PDFium: the text of each page in its reading order, headings from the outline or the type size.

PDFium gives lines without blank lines between paragraphs; those are put back where the gap to the next
line, or the size of its type, says that another paragraph begins.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import Heading, Page, ParsedDocument

_PAGE_SEPARATOR = "\n\n"
# A line this much farther down than its page's lines usually are begins a paragraph.
_PARAGRAPH_GAP = 1.35
_SIZE_CHANGE = 1.15
_SAME_LINE = 0.6  # of the usual gap: nearer lines stand on one line of the page
_LONGEST_HEADING = 120
_MOST_HEADINGS = 5000
_NO_TITLE = re.compile(r"[@{}<>|\\]|^[\W\d]+$")  # an address, a formula, a page number
_TITLE_WITHIN = 500  # characters
_HEADING_SHARE = 0.15  # more lines than this in large type: it is a slide or a poster, not a document with headings
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf0a7": "▪", "\uf0d8": "➢", "\uf0fc": "✓", "\u00ad": ""})
_HYPHEN_MARK = re.compile("(\\w)[\x02\ufffe](\\w)")  # PDFium marks a hyphen that only divides a word
# Control characters stand for spaces in badly mapped fonts; private and undefined ones mean nothing.
_TO_BLANK = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TO_NOTHING = re.compile("[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U000f0000-\U0010ffff]")
_PRESENTATION_FORM = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")  # ligatures and positional shapes of letters
_UNTITLED = re.compile(r"(?:untitled|microsoft \w+ - .*|.*\.(?:docx?|indd|tex|dvi|rtf|odt|qxd|pmd|ppt|xlsx?))", re.I)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    first: float  # height on the page at which its first character stands
    last: float  # and its last one: PDFium joins the lines that a hyphen divides
    size: float  # of its type, in points; 0 when it has no visible character


@dataclass(frozen=True, slots=True)
class _Spacing:
    gap: float  # from line to line; 0 when it cannot be told
    size: float  # of the type


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEncrypted, DocumentDamaged, or DocumentEmpty for a scan."""
    try:
        document = pypdfium2.PdfDocument(source.data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentEncrypted(
                "The PDF is protected by a password.", remedy="Save a copy without the password."
            ) from error
        raise DocumentDamaged(
            "The PDF is damaged: it cannot be opened.", remedy="Copy it again from where it came from."
        ) from error
    try:
        return _parse(document, source)
    finally:
        document.close()


def _parse(document: Any, source: Source) -> ParsedDocument:
    pages: list[list[_Line]] = []
    unreadable: list[int] = []
    for index in range(len(document)):
        try:
            pages.append(_lines(document, index))
        except pypdfium2.PdfiumError:
            pages.append([])
            unreadable.append(index + 1)
    blank = [n for n, lines in enumerate(pages, 1) if not any(line.text.strip() for line in lines)]
    if len(blank) == len(pages):
        if unreadable:
            raise DocumentDamaged("No page of the PDF can be read.", remedy="Copy it again from where it came from.")
        raise DocumentEmpty(
            f"The PDF has no text on its {_pages(len(pages))}: it looks like a scan.",
            remedy="Run text recognition (OCR) over it first.",
        )
    body_size = _body_size(pages)
    text, spans, large = _joined(pages, body_size)
    headings = _outline_headings(document, text, spans) or large
    return ParsedDocument(
        text=text,
        title=_title(document) or _printed_title(large, spans[0]) or source.fallback_title,
        media_type="application/pdf",
        pages=spans,
        headings=headings,
        warnings=tuple(_warnings(document, blank, unreadable)),
    )


def _lines(document: Any, index: int) -> list[_Line]:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            return list(_measured(text_page, page.get_bbox()))
        finally:
            text_page.close()
    finally:
        page.close()


def _measured(text_page: Any, bounds: tuple[float, float, float, float]) -> Iterator[_Line]:
    """The lines of a page with the place and size of their outer visible characters; none off the page."""
    text = text_page.get_text_range()
    position = 0
    for raw in text.split("\n"):
        if body := raw.strip():
            start = position + raw.index(body)
            first, last = _box(text_page, start), _box(text_page, start + len(body) - 1)
            if _outside(first, bounds) and _outside(last, bounds):
                body = ""
            size = abs(first.top - first.bottom)  # as drawn: the nominal size may be scaled
            if body:
                yield _Line(_clean(raw), first.bottom, last.bottom, size)
        position += len(raw) + 1


def _box(text_page: Any, text_index: int) -> Any:
    """The place of a character of the page's text; empty when PDFium knows none."""
    box = pdfium.FS_RECTF()
    character = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, text_index)
    if character >= 0:
        pdfium.FPDFText_GetLooseCharBox(text_page.raw, character, ctypes.byref(box))
    return box


def _outside(box: Any, bounds: tuple[float, float, float, float]) -> bool:
    left, bottom, right, top = bounds
    if box.right <= box.left and box.top <= box.bottom:
        return False  # no place is known
    return bool(box.right < left or box.left > right or box.top < bottom or box.bottom > top)


def _clean(line: str) -> str:
    # Before a capital the hyphen belongs to the word: "black-\nForest" against "dic-\ntionary".
    line = _HYPHEN_MARK.sub(lambda match: match[1] + ("-" if match[2].isupper() else "") + match[2], line)
    line = line.translate(_BULLETS)
    line = _TO_NOTHING.sub("", _TO_BLANK.sub(" ", line))
    line = _PRESENTATION_FORM.sub(lambda match: unicodedata.normalize("NFKC", match[0]), line)
    return line.rstrip()


def _body_size(pages: list[list[_Line]]) -> float:
    """The type size, to half a point, in which most characters are set."""
    characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            characters[round(line.size * 2) / 2] += len(line.text)
    return characters.most_common(1)[0][0]


def _joined(pages: list[list[_Line]], body_size: float) -> tuple[str, tuple[Page, ...], tuple[Heading, ...]]:
    pieces: list[str] = []
    spans: list[Page] = []
    large: list[tuple[float, str, int]] = []
    length = line_count = 0
    for number, lines in enumerate(pages, 1):
        if number > 1:
            pieces.append(_PAGE_SEPARATOR)
            length += len(_PAGE_SEPARATOR)
        start = length
        usual = _spacing(lines)
        before: _Line | None = None
        for line in lines:
            if not line.text.strip():
                continue
            if before is not None:
                separator = "\n\n" if _begins_paragraph(before, line, usual) else "\n"
                pieces.append(separator)
                length += len(separator)
            if body_size and line.size >= body_size * _SIZE_CHANGE and _may_be_heading(line.text):
                large.append((round(line.size * 2) / 2, line.text, length))
            pieces.append(line.text)
            length += len(line.text)
            line_count += 1
            before = line
        spans.append(Page(number, start, length))
    headings = _by_size(large) if len(large) <= max(3, line_count * _HEADING_SHARE) else ()
    return "".join(pieces), tuple(spans), headings


def _spacing(lines: list[_Line]) -> _Spacing:
    """What is usual on a page."""
    pairs = [(a, b) for a, b in pairwise(lines) if a.size and b.size and a.last - b.first > a.size / 3]
    if not pairs:
        return _Spacing(0.0, 1.0)
    return _Spacing(
        gap=statistics.median(a.last - b.first for a, b in pairs),
        size=statistics.median(line.size for line in lines if line.size),
    )


def _begins_paragraph(before: _Line, line: _Line, usual: _Spacing) -> bool:
    if not before.size or not line.size or not usual.gap:
        return False
    distance = before.last - line.first
    if abs(distance) < usual.gap * _SAME_LINE:
        return False  # a superscript, or the next column of a table
    larger, smaller = max(before.size, line.size), min(before.size, line.size)
    gap = usual.gap * max(1.0, smaller / usual.size)  # large type is set wider
    return larger > smaller * _SIZE_CHANGE or distance < -usual.gap or distance > gap * _PARAGRAPH_GAP


def _may_be_heading(text: str) -> bool:
    return len(text) <= _LONGEST_HEADING and sum(character.isalpha() for character in text) >= 3


def _by_size(large: list[tuple[float, str, int]]) -> tuple[Heading, ...]:
    """Lines in large type as headings, the largest type as level 1; a heading set on two lines is one."""
    sizes = sorted({size for size, _, _ in large}, reverse=True)
    headings: list[Heading] = []
    end = -1
    for size, text, start in large[:_MOST_HEADINGS]:
        level = min(sizes.index(size) + 1, 6)
        if headings and headings[-1].level == level and start == end + 1:
            title = clean_title(f"{headings[-1].title} {text}")
            headings[-1] = Heading(level, title, headings[-1].start)
        else:
            headings.append(Heading(level, clean_title(text), start))
        end = start + len(text)
    return tuple(headings)


def _outline_headings(document: Any, text: str, pages: tuple[Page, ...]) -> tuple[Heading, ...]:
    """Entries of the outline whose words stand on the page that they point to."""
    found: dict[int, Heading] = {}
    try:
        for count, entry in enumerate(document.get_toc()):
            if count >= _MOST_HEADINGS:
                break
            target = entry.get_dest()
            index = target.get_index() if target is not None else None
            title = clean_title(entry.get_title())
            if index is None or not title or not 0 <= index < len(pages):
                continue
            start = _find_words(title, text, pages[index])
            if start is not None:
                found.setdefault(start, Heading(min(entry.level + 1, 6), title, start))
    except pypdfium2.PdfiumError:
        pass  # a broken outline: the pages are read all the same
    return tuple(found[start] for start in sorted(found))


def _find_words(title: str, text: str, page: Page) -> int | None:
    """Where the words of a title begin a line of a page."""
    words = r"\s+".join(re.escape(word) for word in title.split())
    pattern = re.compile(rf"^(?:[\d.]+\s+|(?:chapter|appendix|part|section)\s+\w+[.:]?\s+)?{words}", re.I | re.M)
    match = pattern.search(text, page.start, page.end)
    return None if match is None else match.start()


def _title(document: Any) -> str:
    try:
        title = clean_title(document.get_metadata_value("Title"))
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return ""
    return "" if _UNTITLED.fullmatch(title) else title


def _printed_title(large: tuple[Heading, ...], first_page: Page) -> str:
    """What stands alone in the largest type near the top of the first page, if it reads like words."""
    top = min(first_page.end, first_page.start + _TITLE_WITHIN)
    candidates = [heading.title for heading in large if heading.level == 1 and heading.start < top]
    if len(candidates) != 1:
        return ""
    return "" if _NO_TITLE.search(candidates[0]) else candidates[0]


def _warnings(document: Any, blank: list[int], unreadable: list[int]) -> Iterator[str]:
    if unreadable:
        yield f"{_pages(len(unreadable))} could not be read, the first is page {unreadable[0]}."
    if scans := [number for number in blank if number not in unreadable]:
        yield f"{_pages(len(scans))} without text (blank or scanned), the first is page {scans[0]}."
    try:
        if count := document.count_attachments():
            yield f"{count} attached {'file was' if count == 1 else 'files were'} not read."
    except pypdfium2.PdfiumError:
        return


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count} pages"
