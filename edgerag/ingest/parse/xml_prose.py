"""XML that holds prose (DocBook, DITA, TEI and the like): what a reader sees, without the tags."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace
from xml.parsers import expat

from edgerag.ingest.parse.layout import CELL_SEPARATOR, Part, lay_out, sole_title
from edgerag.ingest.parse.xml_text import Survey, local
from edgerag.types import ParsedDocument

MEDIA_TYPE = "text/xml"  # running text, unlike application/xml
_TITLES = frozenset({"title", "head", "bridgehead"})
# A title in one of these is a caption.
_CAPTIONED = frozenset({"table", "informaltable", "figure", "fig", "example", "formalpara", "note", "tip", "warning"})
_ITEMS = frozenset({"listitem", "item", "li", "step"})
_ROWS = frozenset({"row", "tr", "strow"})
_CELLS = frozenset({"entry", "td", "th", "stentry", "cell"})
_PREFORMATTED = frozenset({"programlisting", "screen", "codeblock", "literallayout", "pre", "synopsis", "msgblock"})
_SILENT = frozenset({"indexterm", "remark", "draft-comment", "script", "style"})
_BESIDE_SECTIONS = re.compile(r".*(?:info|header|prolog|titlepage|front|meta)$", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_READ = "It is XML with running text, and was read without its tags; line numbers are those of the text."


@dataclass(slots=True)
class _Open:
    tag: str
    inline: bool


def read(document: ParsedDocument, survey: Survey) -> ParsedDocument:
    """The document with the text of its elements. ``document.text`` must be well-formed."""
    reader = _Reader(survey.inline())
    reader.parser.Parse(document.text.lstrip().encode("utf-8", "replace"), True)
    reader.flush()
    highest = min((part.level for part in reader.parts if part.kind == "heading"), default=1)
    parts = [replace(part, level=part.level - highest + 1) if part.level else part for part in reader.parts]
    laid_out = lay_out(parts)
    text, headings = laid_out.text, laid_out.headings
    first = headings[0].title if headings and headings[0].level == 1 and headings[0].start == 0 else ""
    return replace(
        document,
        text=text,
        title=first or sole_title(headings) or document.title,
        media_type=MEDIA_TYPE,
        headings=headings,
        warnings=(*document.warnings, _READ),
    )


class _Reader:
    def __init__(self, inline: frozenset[str]) -> None:
        self.parts: list[Part] = []
        self._inline = inline - _TITLES - _ITEMS - _ROWS - _CELLS - _PREFORMATTED
        self._open: list[_Open] = []
        self._text: list[str] = []
        self._silent = 0
        self._preformatted = 0
        self._item = False  # its mark is still to be written
        self._cells: list[list[str]] = []  # of each open row
        self._table = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text.append
        self.parser.DefaultHandler = self._other

    def _other(self, data: str) -> None:
        """References to entities, which are not expanded here; comments and instructions."""
        if data.startswith("&") and self._open:
            self._text.append(html.unescape(data))

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        tag = local(name)
        inline = tag in self._inline
        if not inline:
            self.flush()
        self._open.append(_Open(tag, inline))
        self._silent += tag in _SILENT
        self._preformatted += tag in _PREFORMATTED
        self._item = self._item or tag in _ITEMS
        if tag in _ROWS:
            if not self._cells and not (self.parts and self.parts[-1].kind == "row"):
                self._table += 1
            self._cells.append([])
        elif tag in _CELLS and self._cells:
            self._cells[-1].append("")

    def _end(self, _name: str) -> None:
        element = self._open[-1]
        if not element.inline:
            self.flush()
        self._open.pop()
        if element.tag in _SILENT:
            self._text.clear()
        self._silent -= element.tag in _SILENT
        self._preformatted -= element.tag in _PREFORMATTED
        if element.tag in _ITEMS:
            self._item = False
        if element.tag in _ROWS:
            cells = [cell for cell in self._cells.pop() if cell]
            if cells:
                self.parts.append(Part("row", CELL_SEPARATOR.join(cells), table=self._table))

    def flush(self) -> None:
        """Ends the passage that was open."""
        raw = "".join(self._text)
        self._text.clear()
        text = raw.strip("\n").rstrip() if self._preformatted else _BLANKS.sub(" ", raw).strip()
        if not text.strip() or self._silent:
            return
        tag = next((element.tag for element in reversed(self._open) if not element.inline), "")
        if self._cells and self._cells[-1]:
            self._cells[-1][-1] = f"{self._cells[-1][-1]} {_BLANKS.sub(' ', text)}".strip()
        elif tag in _TITLES and not (len(self._open) > 1 and self._open[-2].tag in _CAPTIONED):
            around = [element for element in self._open[:-1] if not _BESIDE_SECTIONS.match(element.tag)]
            self.parts.append(Part("heading", text, level=max(1, len(around))))
        elif self._item:
            self._item = False
            self.parts.append(Part("item", f"- {text}"))
        else:
            self.parts.append(Part("paragraph", text))
