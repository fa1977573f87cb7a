"""What is said of a PDF that was read: warnings about its pages, and why a file gives no text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentError, DocumentScanned
from edgerag.ingest.parse.pdf_forms import Annotations
from edgerag.ingest.parse.pdf_lines import PageLines
from edgerag.ingest.parse.source import Recognised, Source

# More characters of a page than this without a meaning, and what is left of it is noise.
_MOST_UNMAPPED = 0.5
_EXCERPT = 60  # characters
_MOST_NAMED = 8  # pages in a warning
_MOST_EXCERPTS = 5


@dataclass(frozen=True, slots=True)
class PageRead:
    number: int
    lines: PageLines
    annotations: Annotations
    scanned: bool

    @property
    def is_noise(self) -> bool:
        """Whether its fonts do not say which letters they show: most characters have no meaning, or, where the numbers
        of glyphs are given out as codes, all are signs."""
        if self.lines.unmapped > _MOST_UNMAPPED * self.lines.characters:
            return True
        text = [character for line in self.lines.lines for character in line.text if not character.isspace()]
        signs = sum(character.isascii() and not character.isalnum() for character in text)
        return signs > len(text) / 2 and not any(character.isalpha() for character in text)


def read_by_ocr(source: Source) -> dict[int, Recognised]:
    """The pages whose text is what OCR read."""
    return {page.page: page for page in source.recognised if page.text.strip()}


def why_empty(pages: Sequence[PageRead], unreadable: Sequence[int], source: Source) -> DocumentError:
    """Why a file has no text."""
    if len(unreadable) == len(pages):
        return DocumentDamaged("No page of the PDF can be read.", remedy="Copy it again from where it came from.")
    if any(page.is_noise for page in pages):
        return DocumentScanned(
            "The text of the PDF cannot be read: no Unicode mapping (its fonts do not say which letters they show).",
            remedy="Install Tesseract and ingest with --ocr auto, or save it again from the program that made it.",
        )
    if source.recognised:
        trouble = next((page.trouble for page in source.recognised if page.trouble), "")
        return DocumentEmpty(f"OCR found no text on the {_count(len(pages))} of the PDF. {trouble}".rstrip())
    if any(page.scanned for page in pages):
        return DocumentScanned(
            f"The PDF is a scan: there is no text on its {_count(len(pages))}, only pictures.",
            remedy="Install Tesseract and ingest with --ocr auto, or run text recognition over it first.",
        )
    if any(page.annotations.has_empty_fields for page in pages):
        return DocumentEmpty("The PDF is a form that is not filled in, without any other text.")
    return DocumentEmpty(f"The PDF is blank: there is nothing on its {_count(len(pages))} that could be read.")


def warnings(pages: Sequence[PageRead], unreadable: Sequence[int], source: Source) -> Iterator[str]:
    if unreadable:
        yield f"{_count(len(unreadable))} could not be read: {_named(unreadable)}."
    asked = {page.page for page in source.recognised}
    if scans := [page.number for page in pages if page.scanned and page.number not in asked]:
        yield f"{_count(len(scans))} without text, scanned and not read: {_named(scans)}. See --ocr."
    yield from _ocr_warnings(source.recognised)
    read = read_by_ocr(source)
    pages = [page for page in pages if page.number not in read]
    if noise := [page.number for page in pages if page.is_noise]:
        yield f"The text of {_named(noise)} cannot be read and was left out: no Unicode mapping. See --ocr."
    pages = [page for page in pages if not page.is_noise]
    if unmapped := [page.number for page in pages if page.lines.unmapped]:
        count = sum(page.lines.unmapped for page in pages)
        yield f"{count} characters were left out: no Unicode mapping ({_named(unmapped)})."
    beside = {page.number: " ".join(page.lines.beside) for page in pages if page.lines.beside}
    yield from _excerpts(beside, "text beside the page, left out")
    hidden = {page.number: " ".join(filter(None, (line.unseen for line in page.lines.lines))) for page in pages}
    yield from _excerpts({number: text for number, text in hidden.items() if text}, "hidden text")


def _excerpts(texts: Mapping[int, str], what: str) -> Iterator[str]:
    """One warning for each page that has such a text; what is more than a few in one."""
    for number, text in itertools.islice(texts.items(), _MOST_EXCERPTS):
        count = sum(not character.isspace() for character in text)
        yield f'Page {number} has {what} ({count} characters): "{text[:_EXCERPT]}".'
    if rest := list(texts)[_MOST_EXCERPTS:]:
        yield f"There is {what} on {_named(rest)} too."


def _ocr_warnings(recognised: Sequence[Recognised]) -> Iterator[str]:
    if readable := [page for page in recognised if page.text.strip()]:
        characters = sum(len(page.text) for page in readable)
        confidence = sum(page.confidence * len(page.text) for page in readable) / characters
        named = _named([page.page for page in readable])
        yield f"{named[0].upper()}{named[1:]} {'were' if len(readable) > 1 else 'was'} read by OCR" + (
            f" (confidence {confidence:.0f} %)."
        )
    troubles: dict[str, list[int]] = {}
    for page in recognised:
        if not page.text.strip():
            troubles.setdefault(page.trouble, []).append(page.page)
    for trouble, numbers in troubles.items():
        yield f"OCR found no text on {_named(numbers)}" + (f": {trouble}" if trouble else ".")


def _named(numbers: Sequence[int]) -> str:
    """ "page 3", "pages 2-5, 9": what is more than a few is cut."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    names = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:_MOST_NAMED]]
    more = ", ..." if len(runs) > _MOST_NAMED else ""
    return f"page{'s' if len(numbers) > 1 else ''} {', '.join(names)}{more}"


def _count(pages: int) -> str:
    return "1 page" if pages == 1 else f"{pages} pages"
