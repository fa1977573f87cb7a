"""Markdown: the text is the file itself; headings and title are found in it (CommonMark, 4.2 and 4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgerag.ingest.parse.source import Source, clean_title
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
# Begins a block of another kind, so that a line of dashes below it is no heading.
_NOT_A_PARAGRAPH = re.compile(
    r"(?: {4,}|\t| {0,3}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]|\|)| {0,3}([*_-])[ \t]*(?:\1[ \t]*){2,}$)"
)
_FRONT_MATTER_TITLE = re.compile(r"^title\s*[:=]\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_INLINE_MARKS = re.compile(r"(\*\*|__|[*`])(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_FRONT_MATTER_LIMIT = 65_536


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    front_end, front_title = _front_matter(text)
    headings = tuple(find_headings(text, front_end))
    title = front_title or _first_title(headings) or source.fallback_title
    return ParsedDocument(text=text, title=title, media_type="text/markdown", headings=headings, warnings=warnings)


def _front_matter(text: str) -> tuple[int, str]:
    """Where the YAML or TOML front matter ends (0 without one), and its title."""
    for fence in ("---\n", "+++\n"):
        if text.startswith(fence):
            end = text.find("\n" + fence.rstrip(), len(fence) - 1, _FRONT_MATTER_LIMIT)
            if end < 0:
                return 0, ""
            match = _FRONT_MATTER_TITLE.search(text, 0, end)
            return end + len(fence), clean_title(match[1].strip("\"'")) if match else ""
    return 0, ""


def _first_title(headings: tuple[Heading, ...]) -> str:
    top = min((heading.level for heading in headings[:1]), default=0)
    return headings[0].title if top in (1, 2) else ""


def find_headings(text: str, start: int = 0) -> Iterator[Heading]:
    """The headings of a Markdown text from an offset on, in order."""
    fence = ""  # the opening fence while inside fenced code
    paragraph_start = -1  # offset of the paragraph that a setext underline would turn into a heading
    paragraph: list[str] = []
    position = start
    for line in text[start:].split("\n"):
        if fence:
            match = _FENCE.match(line)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif (match := _FENCE.match(line)) and not ("`" in match[1] and "`" in match[2]):
            fence, paragraph = match[1], []
        elif match := _ATX.match(line):
            paragraph = []
            if title := _heading_text(match[2] or ""):
                yield Heading(level=len(match[1]), title=title, start=position)
        elif paragraph and (match := _SETEXT.match(line)):
            if title := _heading_text(" ".join(paragraph)):
                yield Heading(level=1 if match[1][0] == "=" else 2, title=title, start=paragraph_start)
            paragraph = []
        elif not line.strip() or (not paragraph and _NOT_A_PARAGRAPH.match(line)):
            paragraph = []
        else:
            if not paragraph:
                paragraph_start = position
            paragraph.append(line.strip())
        position += len(line) + 1


def _heading_text(raw: str) -> str:
    text = _LINK.sub(r"\1", _TAG.sub("", _ATTRIBUTES.sub("", raw)))
    return clean_title(_INLINE_MARKS.sub(r"\2", text))
