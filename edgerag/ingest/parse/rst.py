"""reStructuredText: the text is the file itself; section titles are found in it (docutils, "Sections").

Levels follow from the order in which the kinds of adornment appear. Directives, literal blocks and comments are
indented, so that no line of theirs can be a title, which begins at the margin.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from edgerag.ingest.parse.layout import sole_title
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")
# Begins something else than a paragraph, so that a line of marks below it is no underline.
_NOT_A_TITLE = re.compile(
    r"[ \t]|[-+*•‣⁃][ \t]|\.\.(?:[ \t]|$)|__(?:[ \t]|$)|:[^:\s][^:]*:(?:[ \t]|$)|\|[ \t]|>>>[ \t]"
)
_EXPLICIT = re.compile(r"\.\.(?:[ \t]|$)|[ \t]+\S")  # a target or a directive may touch the title below it
_SAFE_LENGTH = 4  # docutils takes an underline that is too short from this length on
_LONGEST_TITLE = 1000  # a longer line is none
_ROLE = re.compile(r":[A-Za-z][\w:.+-]*:`[!~]?([^`<]*?)(?:[ \t]*<[^`>]*>)?`")
_LINK = re.compile(r"`([^`<]+?)(?:[ \t]*<[^`>]*>)?`__?(?!\w)")
_MARKS = re.compile(r"(``|\*\*|\*|`|\|)(?=\S)(.+?)(?<=\S)\1")
_ESCAPE = re.compile(r"\\(.)")


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    headings = tuple(_headings(text))
    return ParsedDocument(
        text=text,
        title=sole_title(headings) or source.fallback_title,
        media_type="text/x-rst",
        headings=headings,
        warnings=warnings,
    )


def _headings(text: str) -> Iterator[Heading]:
    levels: list[tuple[str, bool]] = []  # the kinds of titles, the highest first
    for style, title, start in _titles(text):
        if style not in levels:
            levels.append(style)
        if shown := _shown(title):
            yield Heading(level=levels.index(style) + 1, title=shown, start=start)


def _titles(text: str) -> Iterator[tuple[tuple[str, bool], str, int]]:
    """Each title with its adornment (its mark, and whether there is a line above it too) and its offset."""
    lines = text.split("\n")
    offset = 0
    free = True  # nothing above could make this line the second of a paragraph
    skip = 0  # lines of a title that was found
    for index, line in enumerate(lines):
        if skip:
            skip -= 1
            free = True
        elif found := _title_at(lines, index, free):
            over, title, skip = found
            yield (line[0] if over else lines[index + 1][0], over), title, offset
        else:
            free = not line.strip() or _EXPLICIT.match(line) is not None
        offset += len(line) + 1


def _title_at(lines: list[str], index: int, free: bool) -> tuple[bool, str, int] | None:
    """Whether there is a line above the title, the title, and how many lines follow the first."""
    line = lines[index]
    following = lines[index + 1 : index + 3]
    if not free or not line.strip() or not following:
        return None
    if adornment := _ADORNMENT.match(line):
        if len(following) < 2 or not following[0].strip() or following[1].rstrip() != line.rstrip():
            return None
        long_enough = _fits(adornment[0].rstrip(), following[0].strip())
        return (True, following[0].strip(), 2) if long_enough else None
    under = _ADORNMENT.match(following[0])
    if under is None or _NOT_A_TITLE.match(line) or not _fits(under[0].rstrip(), line.rstrip()):
        return None
    return False, line.strip(), 1


def _fits(adornment: str, title: str) -> bool:
    return len(title) <= _LONGEST_TITLE and (len(adornment) >= _SAFE_LENGTH or len(adornment) >= _columns(title))


def _columns(title: str) -> int:
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in title
    )


def _shown(title: str) -> str:
    text = title.rstrip("_") if "`" not in title else _LINK.sub(r"\1", _ROLE.sub(r"\1", title))
    return clean_title(_ESCAPE.sub(r"\1", _MARKS.sub(r"\2", text)))
