"""AsciiDoc: the text is the file itself; titles of the document and its sections are found in it.

Both styles are read, ``== Section`` and a title with a line of marks below it. Blocks that are shown as they are
written (listing, literal, passthrough, comment) hold no titles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgerag.ingest.parse.layout import sole_title
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*$")
_VERBATIM = re.compile(r"(-{4,}|\.{4,}|/{4,}|\+{4,}|`{3,})(?:\w[^`]*)?[ \t]*$")
_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_UNDERLINE = re.compile(r"([=\-~^+])\1+[ \t]*$")
_MOST_DIFFERENCE = 1  # between the lengths of a title and its underline
_LONGEST_TITLE = 1000  # a longer line is none
# Lines that are no part of a paragraph: attributes of blocks and of the document, comments, conditions, block titles,
# and the delimiters of blocks that may hold anything.
_NO_PARAGRAPH = re.compile(
    r"\[.*\][ \t]*$|//(?!/)|:!?\w[^:\n]*:(?:[ \t]|$)|(?:ifn?def|ifeval|endif|include|toc|image)::|\.[^\s.]"
    r"|(?:={4,}|\*{4,}|_{4,}|--|\|={3,}|'{3,}|<{3})[ \t]*$"
)
_ANCHOR = re.compile(r"\[\[[^\]]*\]\]|\[#[^\]]*\]|anchor:[\w-]+\[[^\]]*\]")
_CROSS_REFERENCE = re.compile(r"<<(?:[^<>,]*,[ \t]*)?([^<>]*)>>")
_MACRO = re.compile(r"(?:(?:link|xref|mailto|kbd|btn|menu):|\b[a-z]+://)[^\s\[\]]*\[([^\]]*)\]")
_MARKS = re.compile(r"(?<!\w)(\*\*?|__?|``?|##?|\+\+?)(?=\S)(.+?)(?<=\S)\1(?!\w)")


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    headings = tuple(_headings(text))
    first = headings[0] if headings else None
    return ParsedDocument(
        text=text,
        title=(first.title if first and first.level == 1 else sole_title(headings)) or source.fallback_title,
        media_type="text/asciidoc",
        headings=headings,
        warnings=warnings,
    )


def _headings(text: str) -> Iterator[Heading]:
    lines = text.split("\n")
    fence = ""  # the delimiter that closes the verbatim block we are in
    paragraph = False
    underlined = False  # the line is the underline of the title above it
    offset = 0
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if fence:
            fence = "" if line.rstrip() == fence else fence
        elif underlined:
            underlined = False
        elif len(line) > _LONGEST_TITLE:
            paragraph = True
        elif (level := _underlined_level(line, below)) and not paragraph:
            underlined = True
            yield from _heading(level, line, offset)
        elif verbatim := _VERBATIM.match(line):
            fence, paragraph = verbatim[1], False
        elif (section := _SECTION.match(line)) and not paragraph:
            yield from _heading(len(section[1]), section[2], offset)
        else:
            paragraph = bool(line.strip()) and not _NO_PARAGRAPH.match(line)
        offset += len(line) + 1


def _heading(level: int, raw: str, start: int) -> Iterator[Heading]:
    if title := _shown(raw):
        yield Heading(level=level, title=title, start=start)


def _underlined_level(line: str, below: str) -> int:
    """Level of a title of two lines, 0 if it is none."""
    match = _UNDERLINE.match(below)
    if match is None or not line[:1].strip() or not re.search(r"\w", line) or _NO_PARAGRAPH.match(line):
        return 0
    return _UNDERLINES[match[1]] if abs(len(below.rstrip()) - len(line.rstrip())) <= _MOST_DIFFERENCE else 0


def _shown(raw: str) -> str:
    text = _CROSS_REFERENCE.sub(r"\1", _ANCHOR.sub("", raw))
    return clean_title(_MARKS.sub(r"\2", _MACRO.sub(r"\1", text)))
