"""Characters that nobody sees but a model reads, in a text of any format. Pure.

Many invisible characters are honest: joiners shape Persian, Indian scripts and emoji, marks of direction stand in
Hebrew and Arabic, spaces of no width part the words of Thai and let long addresses break. Named are only those that
can make a text say something else than it shows: overrides of direction, which turn letters round; tag characters,
which spell a second text; and long runs of what has no width, in which one can be coded.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from edgerag.types import ParsedDocument

_NO_WIDTH = "\u200b-\u200f\u2060-\u2064\ufeff\u180e"
_LONG_RUN = 8  # without width, one after the other; no script has as many
_OVERRIDE = re.compile("[\u202d\u202e][^\n\u202c]*\u202c?")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_RUN = re.compile(f"[{_NO_WIDTH}\ufe00-\ufe0f]{{{_LONG_RUN},}}")
_FLAG = "\U0001f3f4"  # the flags of England, Scotland and Wales are a black flag and tags
_MOST_WARNINGS = 5
_EXCERPT = 60  # characters


def with_hidden_characters(document: ParsedDocument) -> ParsedDocument:
    """The document with such characters noted as hidden and named in its warnings; the same one without any."""
    found = sorted(_found(document.text))
    if not found:
        return document
    spans = _merged([*document.hidden, *((start, end) for start, end, _ in found)])
    warnings = [f"{_place(document, start)}{said}." for start, _, said in found[:_MOST_WARNINGS]]
    if len(found) > _MOST_WARNINGS:
        warnings.append(f"Hidden characters stand in {len(found) - _MOST_WARNINGS} more places.")
    return replace(document, hidden=spans, warnings=(*document.warnings, *warnings))


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _OVERRIDE.finditer(text):
        turned = _plain(match[0])
        if turned and not _is_right_to_left(turned):
            yield *match.span(), f'the direction of text is overridden: "{turned[:_EXCERPT]}"'
    for match in _TAGS.finditer(text):
        if match.start() == 0 or text[match.start() - 1] != _FLAG:
            said = _plain("".join(chr(ord(tag) - 0xE0000) for tag in match[0]))
            yield *match.span(), f'{len(match[0])} invisible tag characters say "{said[:_EXCERPT]}"'
    for match in _RUN.finditer(text):
        yield *match.span(), f"{len(match[0])} characters without width stand one after the other"


def _plain(text: str) -> str:
    return " ".join("".join(character for character in text if character.isprintable()).split())


def _is_right_to_left(text: str) -> bool:
    """Whether an override only says what holds for the script anyway."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def _place(document: ParsedDocument, start: int) -> str:
    if document.pages:
        page = document.pages[max(0, bisect.bisect_right(document.pages, start, key=lambda page: page.start) - 1)]
        return f"Page {page.number}: "
    return f"Line {document.text.count(chr(10), 0, start) + 1}: "


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
