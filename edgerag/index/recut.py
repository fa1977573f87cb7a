"""Passages whose rows are gone, cut anew out of the text of their document, which is whole.

Not as the ingest cut them: at blank lines, without knowing what belongs together. So they can be found and cited until
their file is read again, also where it is not at hand any more. Pure.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
from collections.abc import Iterator, Sequence

from edgerag.types import Chunk, ParsedDocument

_MOST_CHARACTERS = 600  # of a passage: few embedders look at more
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_HIDDEN = "hidden"  # in warnings: it is not known in which passages


def recut(parsed: ParsedDocument, known: Sequence[Chunk]) -> list[Chunk]:
    """All passages of the document in order, numbered from 0: ``known``, and between them what is in none of them."""
    known = sorted(known, key=lambda chunk: (chunk.start, chunk.ordinal))
    is_hidden = any(chunk.hidden for chunk in known) or any(
        _HIDDEN in warning.casefold() for warning in parsed.warnings
    )
    found: list[Chunk] = []
    position, before = 0, -1
    for chunk in known:
        wanted = chunk.ordinal - before - 1
        found += _cut(parsed, position, chunk.start, wanted=wanted, hidden=is_hidden)
        found.append(chunk)
        position, before = max(position, chunk.end), chunk.ordinal
    found += _cut(parsed, position, len(parsed.text), wanted=0, hidden=is_hidden)
    return [dataclasses.replace(chunk, ordinal=ordinal) for ordinal, chunk in enumerate(found)]


def _cut(parsed: ParsedDocument, start: int, end: int, *, wanted: int, hidden: bool) -> Iterator[Chunk]:
    """What is between two passages: its paragraphs, where they are as many as are ``wanted``, else several together."""
    spans = list(_paragraphs(parsed.text, start, end))
    if len(spans) != wanted:
        spans = list(_packed(spans))
    for first, last in spans:
        yield _chunk(parsed, first, last, hidden=hidden)


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Between blank lines, without white space around them."""
    breaks = [(each.start(), each.end()) for each in _BLANK_LINES.finditer(text, start, end)]
    for first, last in zip(
        [start, *(after for _, after in breaks)], [*(before for before, _ in breaks), end], strict=True
    ):
        piece = text[first:last]
        if words := piece.strip():
            begin = first + len(piece) - len(piece.lstrip())
            yield begin, begin + len(words)


def _packed(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Neighbours together as far as they fit, what is too long in parts."""
    begun: tuple[int, int] | None = None
    for first, last in spans:
        if begun is not None and last - begun[0] <= _MOST_CHARACTERS:
            begun = (begun[0], last)
            continue
        if begun is not None:
            yield begun
        while last - first > _MOST_CHARACTERS:
            yield first, first + _MOST_CHARACTERS
            first += _MOST_CHARACTERS
        begun = (first, last)
    if begun is not None:
        yield begun


def _chunk(parsed: ParsedDocument, start: int, end: int, *, hidden: bool) -> Chunk:
    text = parsed.text[start:end]
    pages = [page.number for page in parsed.pages if page.start < end and start < page.end]
    line = parsed.first_line + parsed.text.count("\n", 0, start)
    return Chunk(
        ordinal=0,
        start=start,
        end=end,
        text=text,
        heading_path=_headings(parsed, start),
        page_first=pages[0] if pages else None,
        page_last=pages[-1] if pages else None,
        line_first=line,
        line_last=line + text.count("\n"),
        token_count=max(1, len(text) // 4),  # the embedder that counts them is not here
        context=parsed.title,
        hidden=hidden,
    )


def _headings(parsed: ParsedDocument, start: int) -> tuple[str, ...]:
    """Those that are open at a place, the outermost first."""
    path: list[tuple[int, str]] = []
    for heading in parsed.headings[: bisect.bisect_right([each.start for each in parsed.headings], start)]:
        while path and path[-1][0] >= heading.level:
            path.pop()
        path.append((heading.level, heading.title))
    return tuple(title for _, title in path)
