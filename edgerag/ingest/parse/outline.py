"""Which named parts of a data file become its headings: the top ones, and those below them where these are long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgerag.ingest.parse.source import clean_title
from edgerag.types import Heading

DEEPEST = 3
# A part of fewer characters is one or two chunks: the names inside it are found in its text.
_LONG_PART = 2000
# More headings than this structure nothing: it is a list, whose lines are its units.
_MOST_HEADINGS = 2000
_LONGEST_TITLE = 80
# A plain value of so many characters is worth a heading as if it had parts.
_LONG_VALUE = 200


@dataclass(slots=True)
class Named:
    """A part of a file with the span it takes. Parts come in the order of their start, parents first."""

    level: int  # 1 at the top
    title: str  # "" when it has no name; those below it are then left out too
    start: int
    end: int
    parts: bool  # it holds others; a plain value does not


def headings(found: Iterable[Named]) -> tuple[Heading, ...]:
    """The headings for the parts worth one, bounded in number: the deepest are given up first."""
    kept: list[Named] = []
    path: list[Named | None] = [None] * (DEEPEST + 1)  # the last part of each level, None where it was left out
    large_before = [False] * (DEEPEST + 2)  # per level: the part before has a heading of its own
    for part in found:
        level = part.level
        if level > DEEPEST:
            continue
        above = path[level - 1] if level > 1 else None
        if level > 1 and (above is None or above.end < part.start):
            continue
        wanted = level == 1 or (above is not None and above.end - above.start > _LONG_PART)
        large = part.parts or part.end - part.start > _LONG_VALUE
        # A plain value behind a part with a heading needs its own, so as not to be filed under that one.
        keeps = wanted and bool(part.title) and (large or large_before[level])
        large_before[level], large_before[level + 1] = large and keeps, False
        path[level] = part if keeps else None
        path[level + 1 :] = [None] * (DEEPEST - level)
        if keeps:
            kept.append(part)
    for deepest in range(DEEPEST, 0, -1):
        if len(kept) > _MOST_HEADINGS:
            kept = [part for part in kept if part.level < deepest]
    return tuple(Heading(part.level, clean_title(part.title)[:_LONGEST_TITLE].rstrip(), part.start) for part in kept)


def joined(pieces: Iterable[str], *, most: int) -> str:
    """The pieces as one text; "" when it would have more than so many characters."""
    taken: list[str] = []
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            return ""
        taken.append(piece)
    return "".join(taken)
