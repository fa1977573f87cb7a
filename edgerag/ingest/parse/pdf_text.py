"""Pages of lines to one text: paragraphs, words that a line end divides, headings by the size of their type. Pure.

PDFium gives lines without blank lines between paragraphs; those are put back where the gap to the next line, or
the size of its type, says that another paragraph begins.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgerag.ingest.parse.pdf_lines import Line
from edgerag.ingest.parse.source import clean_title
from edgerag.types import Heading, Page

_PAGE_SEPARATOR = "\n\n"
# A line this much farther down than its page's lines usually are begins a paragraph.
_PARAGRAPH_GAP = 1.35
_SIZE_CHANGE = 1.15
_SAME_LINE = 0.6  # of the usual gap: nearer lines stand on one line of the page
_LONGEST_HEADING = 120
MOST_HEADINGS = 5000
_HEADING_SHARE = 0.15  # more lines than this in large type: it is a slide or a poster, not a document with headings
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_FIRST_WORD = re.compile(r"^[^\W\d_]+")
_COMPOUND_PART = 4  # letters: shorter parts are words by chance


@dataclass(frozen=True, slots=True)
class PdfText:
    text: str
    pages: tuple[Page, ...]
    headings: tuple[Heading, ...]  # lines in large type, the largest as level 1
    unseen: tuple[tuple[int, int], ...] = ()  # spans of the lines that hold text which cannot be seen


@dataclass(frozen=True, slots=True)
class _Spacing:
    gap: float  # from line to line; 0 when it cannot be told
    size: float  # of the type


def join_pages(pages: Sequence[Sequence[Line]], extras: Sequence[str]) -> PdfText:
    """``extras`` stand below the lines of each page: its form and its notes."""
    pages = _whole_words(pages)
    body_size = _body_size(pages)
    pieces: list[str] = []
    spans: list[Page] = []
    large: list[tuple[float, str, int]] = []
    unseen: list[tuple[int, int]] = []
    length = line_count = 0
    for number, (lines, extra) in enumerate(zip(pages, extras, strict=True), 1):
        if number > 1:
            pieces.append(_PAGE_SEPARATOR)
            length += len(_PAGE_SEPARATOR)
        start = length
        usual = _spacing(lines)
        before: Line | None = None
        for line in lines:
            if before is not None:
                separator = "\n\n" if _begins_paragraph(before, line, usual) else "\n"
                pieces.append(separator)
                length += len(separator)
            if body_size and line.size >= body_size * _SIZE_CHANGE and _may_be_heading(line.text):
                large.append((round(line.size * 2) / 2, line.text, length))
            if line.unseen:
                unseen.append((length, length + len(line.text)))
            pieces.append(line.text)
            length += len(line.text)
            line_count += 1
            before = line
        if extra:
            extra = f"\n\n{extra}" if before is not None else extra
            pieces.append(extra)
            length += len(extra)
        spans.append(Page(number, start, length))
    headings = _by_size(large) if len(large) <= max(3, line_count * _HEADING_SHARE) else ()
    return PdfText("".join(pieces), tuple(spans), headings, tuple(unseen))


def _whole_words(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines with divided words put together: the rest of the line that follows stands on the same line."""
    words = Counter(
        word.casefold() for lines in pages for line in lines if not line.divided for word in _WORD.findall(line.text)
    )
    whole: list[list[Line]] = []
    for lines in pages:
        joined: list[Line] = []
        for line in lines:
            before = joined[-1] if joined else None
            if before is None or not before.divided or not _LAST_WORD.search(before.text):
                joined.append(line)
                continue
            hyphen = "-" if _keeps_hyphen(before.text, line.text, words) else ""
            joined[-1] = Line(
                f"{before.text}{hyphen}{line.text.lstrip()}",
                before.box.around(line.box),
                before.first,
                line.last,
                before.size,
                before.direction,
                line.divided,
                unseen=" ".join(filter(None, (before.unseen, line.unseen))),
            )
        whole.append(joined)
    return whole


def _keeps_hyphen(before: str, after: str, words: Counter[str]) -> bool:
    """Whether the hyphen belongs to the word: "black-\nForest" and "long-\nterm" against "dic-\ntionary"."""
    one, two = _LAST_WORD.search(before), _FIRST_WORD.search(after)
    if one is None or two is None:
        return False
    if two[0][0].isupper():
        return True
    first, second = one[0].casefold(), two[0].casefold()
    if words[first + second] or words[f"{first}-{second}"]:
        return words[f"{first}-{second}"] > words[first + second]
    return min(len(first), len(second)) >= _COMPOUND_PART and bool(words[first] and words[second])


def _body_size(pages: Sequence[Sequence[Line]]) -> float:
    """The type size, to half a point, in which most characters are set."""
    characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            characters[round(line.size * 2) / 2] += len(line.text)
    return characters.most_common(1)[0][0] if characters else 0.0


def _spacing(lines: Sequence[Line]) -> _Spacing:
    """What is usual on a page."""
    pairs = [(a, b) for a, b in pairwise(lines) if a.size and b.size and a.last - b.first > a.size / 3]
    if not pairs:
        return _Spacing(0.0, 1.0)
    return _Spacing(
        gap=statistics.median(a.last - b.first for a, b in pairs),
        size=statistics.median(line.size for line in lines if line.size),
    )


def _begins_paragraph(before: Line, line: Line, usual: _Spacing) -> bool:
    if before.direction != line.direction:
        return True
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
    for size, text, start in large[:MOST_HEADINGS]:
        level = min(sizes.index(size) + 1, 6)
        if headings and headings[-1].level == level and start == end + 1:
            title = clean_title(f"{headings[-1].title} {text}")
            headings[-1] = Heading(level, title, headings[-1].start)
        else:
            headings.append(Heading(level, clean_title(text), start))
        end = start + len(text)
    return tuple(headings)
