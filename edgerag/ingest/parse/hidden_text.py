"""Text that nobody sees but a model reads: how it is named, and the characters of any format that hide some. Pure.

Many invisible characters are honest: joiners shape Persian, Indian scripts and emoji, marks of direction stand in
Hebrew and Arabic, spaces of no width part the words of Thai and let long addresses break. Named are only those that
can make a text say something else than it shows: overrides of direction, which turn letters round; tag characters,
which spell a second text; and long runs of what has no width, in which one can be coded.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from edgerag.types import ParsedDocument, page_unit

_NO_WIDTH = "\u200b-\u200f\u2060-\u2064\ufeff\u180e"
_LONG_RUN = 8  # without width, one after the other; no script has as many
_OVERRIDE = re.compile("[\u202d\u202e][^\n\u202c]*\u202c?")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_RUN = re.compile(f"[{_NO_WIDTH}\ufe00-\ufe0f]{{{_LONG_RUN},}}")
_FLAG = "\U0001f3f4"  # the flags of England, Scotland and Wales are a black flag and tags
_MOST_WARNINGS = 5
_EXCERPT = 60  # characters
_GAP = 8  # characters: blanks, quotation marks and brackets between hidden words


def with_hidden_characters(document: ParsedDocument) -> ParsedDocument:
    """The document with such characters noted as hidden and named in its warnings; the same one without any."""
    found = sorted(_found(document.text))
    if not found:
        return document
    spans = merged([*document.hidden, *((start, end) for start, end, _ in found)])
    warnings = [f"{place(document, start)}: {said}." for start, _, said in found[:_MOST_WARNINGS]]
    if len(found) > _MOST_WARNINGS:
        warnings.append(f"Hidden characters stand in {len(found) - _MOST_WARNINGS} more places.")
    return replace(document, hidden=spans, warnings=(*document.warnings, *warnings))


def name_hidden(document: ParsedDocument, *, named: Collection[int] = (), least_words: int = 1) -> ParsedDocument:
    """The document with a warning for each place where its text is hidden, if it has so many words there; the pages
    ``named`` have one already."""
    texts: dict[str, list[str]] = {}  # by place
    for start, end in document.hidden:
        if not document.pages or _page(document, start) not in named:
            texts.setdefault(place(document, start), []).append(document.text[start:end])
    said = {where: words for where, found in texts.items() if _count(words := " ".join(found)) >= least_words}
    warnings = []
    for where, text in list(said.items())[:_MOST_WARNINGS]:
        words = " ".join(text.split())
        count = sum(not character.isspace() for character in words)
        warnings.append(f'{where} has hidden text ({count} characters): "{words[:_EXCERPT]}".')
    if len(said) > _MOST_WARNINGS:
        warnings.append(f"There is hidden text in {len(said) - _MOST_WARNINGS} more places.")
    return replace(document, warnings=(*document.warnings, *warnings)) if warnings else document


def _count(text: str) -> int:
    """The words of a text, roughly: in scripts without blanks two characters are one."""
    return max(len(text.split()), sum(unicodedata.east_asian_width(character) in "WF" for character in text) // 2)


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _OVERRIDE.finditer(text):
        turned = printable(match[0])
        if turned and not _is_right_to_left(turned):
            yield *match.span(), f'the direction of text is overridden: "{turned[:_EXCERPT]}"'
    for match in _TAGS.finditer(text):
        if match.start() == 0 or text[match.start() - 1] != _FLAG:
            said = printable("".join(chr(ord(tag) - 0xE0000) for tag in match[0]))
            yield *match.span(), f'{len(match[0])} invisible tag characters say "{said[:_EXCERPT]}"'
    for match in _RUN.finditer(text):
        yield *match.span(), f"{len(match[0])} characters without width stand one after the other"


def printable(text: str) -> str:
    """What can be seen of a text, on one line."""
    return " ".join("".join(each if each.isprintable() else " " if each.isspace() else "" for each in text).split())


def _is_right_to_left(text: str) -> bool:
    """Whether an override only says what holds for the script anyway."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def place(document: ParsedDocument, start: int) -> str:
    """Where an offset stands, for people: "Page 3", "Line 12"."""
    if document.pages:
        return f"{page_unit(document.media_type).capitalize()} {_page(document, start)}"
    return f"Line {document.text.count(chr(10), 0, start) + 1}"


def _page(document: ParsedDocument, start: int) -> int:
    """The number of the page on which an offset lies."""
    return document.pages[max(0, bisect.bisect_right(document.pages, start, key=lambda page: page.start) - 1)].number


def merged(spans: Iterable[tuple[int, int]], text: str = "") -> tuple[tuple[int, int], ...]:
    """The spans in order, those as one that touch or have no more than some signs of ``text`` between them."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        gap = text[found[-1][1] : start] if found else ""
        if found and (start <= found[-1][1] or (0 < len(gap) <= _GAP and not any(map(str.isalnum, gap)))):
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)
