"""PDF through PDFium: the text of each page in its reading order, then its form and its notes.

Headings come from the outline, or from the size of the type. A file that holds others is a container. Text that
cannot be known (a scan, a font that does not say what its characters stand for) is named, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse import pdf_picture
from edgerag.ingest.parse.dates import pdf_date_ns
from edgerag.ingest.parse.passwords import refused
from edgerag.ingest.parse.pdf_attachments import attachment_names, read_attachment
from edgerag.ingest.parse.pdf_findings import PageRead, read_by_ocr, warnings, why_empty
from edgerag.ingest.parse.pdf_forms import Annotations, read_annotations
from edgerag.ingest.parse.pdf_hidden import mark_unseen
from edgerag.ingest.parse.pdf_layout import reading_order
from edgerag.ingest.parse.pdf_lines import Line, PageLines, read_lines
from edgerag.ingest.parse.pdf_running import without_running
from edgerag.ingest.parse.pdf_scan import draw_page, is_scanned, recognised_lines
from edgerag.ingest.parse.pdf_text import MOST_HEADINGS, PdfText, join_pages
from edgerag.ingest.parse.pdf_text_page import text_page_of
from edgerag.ingest.parse.source import Container, Recognised, Source, Unrecognised, clean_title
from edgerag.types import Heading, Page, PagePicture, PageWanted, ParsedDocument

_NO_TITLE = re.compile(r"[@{}<>|\\]|^[\W\d]+$")  # an address, a formula, a page number
_TITLE_WITHIN = 500  # characters
_UNTITLED = re.compile(r"(?:untitled|microsoft \w+ - .*|.*\.(?:docx?|indd|tex|dvi|rtf|odt|qxd|pmd|ppt|xlsx?))", re.I)


def parse(source: Source) -> ParsedDocument | Container | Unrecognised:
    """Raises DocumentEncrypted, DocumentDamaged, or DocumentEmpty for a file without text that can be read."""
    document = _open(source)
    try:
        names = attachment_names(document)
        try:
            found = _parse(document, source)
        except DocumentEmpty as error:
            if not names:
                raise
            # A cover without text, as portfolios have, is no reason to lose what it holds.
            found = ParsedDocument("", source.fallback_title, "application/pdf", warnings=(str(error),))
        if not names or isinstance(found, Unrecognised):
            return found
        return Container(names, partial(_member, source, names), found)
    finally:
        document.close()


def _open(source: Source) -> Any:
    """The document; the passwords are tried where it does not open without."""
    refused_by: pypdfium2.PdfiumError | None = None
    for password in (None, *source.passwords):
        try:
            return pypdfium2.PdfDocument(source.data, password=password)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) != pdfium.FPDF_ERR_PASSWORD:
                raise DocumentDamaged(
                    "The PDF is damaged: it cannot be opened.", remedy="Copy it again from where it came from."
                ) from error
            refused_by = error
    raise refused("The PDF", tried=bool(source.passwords)) from refused_by


def draw(source: Source, number: int) -> bytes:
    """A page as an image for OCR. Raises DocumentEncrypted, DocumentDamaged."""
    document = _open(source)
    try:
        document.init_forms()
        page = document[number - 1]
        try:
            return draw_page(page)
        finally:
            page.close()
    except (pypdfium2.PdfiumError, IndexError) as error:
        raise DocumentDamaged(f"Page {number} of the PDF cannot be drawn.") from error
    finally:
        document.close()


def view(source: Source, wanted: PageWanted) -> PagePicture:
    """A page as it is seen. Raises DocumentEncrypted, DocumentDamaged."""
    document = _open(source)
    try:
        document.init_forms()
        page = document[wanted.number - 1]
        try:
            return pdf_picture.draw(page, wanted, len(document))
        finally:
            page.close()
    except (pypdfium2.PdfiumError, IndexError, ValueError) as error:
        raise DocumentDamaged(f"Page {wanted.number} of the PDF cannot be drawn.") from error
    finally:
        document.close()


def _member(source: Source, names: Sequence[str], name: str, max_bytes: int) -> bytes:
    document = _open(source)
    try:
        return read_attachment(document, names.index(name), max_bytes)
    finally:
        document.close()


def _parse(document: Any, source: Source) -> ParsedDocument | Unrecognised:
    document.init_forms()
    pages: list[PageRead] = []
    unreadable: list[int] = []
    for number in range(1, len(document) + 1):
        try:
            pages.append(_read_page(document, number))
        except pypdfium2.PdfiumError:
            pages.append(PageRead(number, PageLines((), 0, 0, ()), Annotations((), False), False))
            unreadable.append(number)
    if wanted := _to_recognise(pages, source):
        return Unrecognised(wanted)
    printed = [_printed(page, read_by_ocr(source)) for page in pages]
    extras = ["\n".join(page.annotations.lines) for page in pages]
    if not any(printed) and not any(extras):
        raise why_empty(pages, unreadable, source)
    joined = join_pages(without_running(printed), extras)
    headings = _outline_headings(document, joined) or joined.headings
    return ParsedDocument(
        text=joined.text,
        title=_title(document) or _printed_title(joined) or source.fallback_title,
        media_type="application/pdf",
        pages=joined.pages,
        headings=headings,
        warnings=tuple(warnings(pages, unreadable, source)),
        hidden=joined.unseen,
        dated_ns=_date(document),
    )


def _read_page(document: Any, number: int) -> PageRead:
    page = document[number - 1]
    try:
        with text_page_of(page) as (text_page, text_objects):
            lines = read_lines(text_page, page.get_bbox())
            lines = replace(lines, lines=tuple(mark_unseen(lines.lines, page, text_page, text_objects)))
        return PageRead(
            number,
            lines,
            read_annotations(page, document.formenv),
            not lines.lines and not lines.unmapped and is_scanned(page),
        )
    finally:
        page.close()


def _printed(page: PageRead, recognised: Mapping[int, Recognised]) -> list[Line]:
    """What stands on a page, in reading order; nothing where that is noise."""
    if page.number in recognised:
        return recognised_lines(recognised[page.number])
    return [] if page.is_noise else reading_order(page.lines.lines)


def _to_recognise(pages: Sequence[PageRead], source: Source) -> tuple[int, ...]:
    """The pages that OCR has still to read."""
    if source.ocr == "off":
        return ()
    known = {page.page for page in source.recognised}
    wanted = (page.number for page in pages if page.scanned or page.is_noise or source.ocr == "force")
    return tuple(number for number in wanted if number not in known)


def _outline_headings(document: Any, joined: PdfText) -> tuple[Heading, ...]:
    """Entries of the outline whose words stand on the page that they point to."""
    found: dict[int, Heading] = {}
    try:
        for count, entry in enumerate(document.get_toc()):
            if count >= MOST_HEADINGS:
                break
            target = entry.get_dest()
            index = target.get_index() if target is not None else None
            title = clean_title(entry.get_title())
            if index is None or not title or not 0 <= index < len(joined.pages):
                continue
            start = _find_words(title, joined.text, joined.pages[index])
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


def _date(document: Any) -> int | None:
    """Of its last change, else of its making."""
    for key in ("ModDate", "CreationDate"):
        try:
            moment = pdf_date_ns(document.get_metadata_value(key))
        except (pypdfium2.PdfiumError, UnicodeDecodeError):
            continue
        if moment is not None:
            return moment
    return None


def _printed_title(joined: PdfText) -> str:
    """What stands alone in the largest type near the top of the first page, if it reads like words."""
    first = joined.pages[0]
    top = min(first.end, first.start + _TITLE_WITHIN)
    candidates = [heading.title for heading in joined.headings if heading.level == 1 and heading.start < top]
    if len(candidates) != 1:
        return ""
    return "" if _NO_TITLE.search(candidates[0]) else candidates[0]
