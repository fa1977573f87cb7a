"""Where a text in Markdown can be cut so that its parts, each read alone, say what the whole says."""

from __future__ import annotations

from edgerag.ui.inert_markdown import inert_parser

SECTION_CHARACTERS = 1_000  # at least; some 15 rows of a terminal


def sections_of(text: str, *, at_least: int = SECTION_CHARACTERS) -> list[str]:
    """``text`` in parts of whole blocks, each but the last of ``at_least`` characters; one part where it cannot be cut.

    The text may still grow: a cut is made only before a block that follows an empty line and whose first line is
    complete, for nothing that comes later makes such a block part of the one before it.
    """
    if len(text) <= at_least:
        return [text]
    lines = text.split("\n")
    places = [0]  # where each line begins
    for line in lines:
        places.append(places[-1] + len(line) + 1)
    parts, begun = [], 0
    for token in inert_parser().parse(text):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first = token.map[0]
        follows_empty = first > 0 and not lines[first - 1].strip()
        is_complete = first < len(lines) - 1
        if follows_empty and is_complete and places[first] - begun >= at_least:
            parts.append(text[begun : places[first]])
            begun = places[first]
    return [*parts, text[begun:]]
