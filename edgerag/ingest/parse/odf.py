"""The elements of OpenDocument (ISO/IEC 26300, parts 1 and 3) that hold words, walked in document order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from xml.etree import ElementTree

from edgerag.ingest.parse.layout import Part, bare, hide, table_row
from edgerag.ingest.parse.odf_look import Look, Looks, namespace
from edgerag.ingest.parse.source import clean_title

OFFICE, TEXT, TABLE, DRAW, STYLE = (namespace(name) for name in ("office", "text", "table", "drawing", "style"))
PRESENTATION, SVG = namespace("presentation"), namespace("svg-compatible")
_XLINK = "{http://www.w3.org/1999/xlink}href"
_MATH = "{http://www.w3.org/1998/Math/MathML}"
_HEADING_LEVELS = 9
_DEEPEST_ITEM = 8
_MOST_SPACES = 200  # that one element may stand for
_BLANKS = re.compile(r"[ \t\r\n]+")
# Deletions are kept in tracked-changes; the rest is not shown, or not where it stands.
_LEFT_OUT = frozenset(
    {
        *(TEXT + name for name in ("tracked-changes", "sequence-decls", "ruby-text", "note-citation", "script")),
        *(TEXT + name for name in ("variable-decls", "user-field-decls", "index-title-template")),
        *(OFFICE + name for name in ("annotation-end", "forms", "scripts", "event-listeners", "binary-data")),
        *(SVG + name for name in ("title", "desc")),
        *(TABLE + name for name in ("covered-table-cell", "table-column", "title", "desc")),
        *(TEXT + name + "-source" for name in ("table-of-content", "illustration-index", "table-index")),
        *(TEXT + name + "-source" for name in ("alphabetical-index", "bibliography", "user-index", "object-index")),
        *(PRESENTATION + name for name in ("notes", "header-decl", "footer-decl", "date-time-decl")),
        PRESENTATION + "settings",
    }
)
_GONE = Look(gone=True)
_ROW_GROUPS = frozenset(TABLE + name for name in ("table-header-rows", "table-rows", "table-row-group"))


class Styles:
    """What the styles say of the words under them: the title of the document, what is not seen."""

    def __init__(self, *roots: ElementTree.Element) -> None:
        self._parents: dict[str, str] = {}
        self.looks = Looks(*roots)
        self._hidden_pages: set[str] = set()
        for root in roots:
            for style in root.iter(STYLE + "style"):
                name = style.get(STYLE + "name", "")
                if style.get(STYLE + "family") in ("paragraph", "text"):
                    self._parents[name] = style.get(STYLE + "parent-style-name", "")
                for page in style.iterfind(STYLE + "drawing-page-properties"):
                    if page.get(PRESENTATION + "visibility") == "hidden":
                        self._hidden_pages.add(name)

    def is_title(self, name: str) -> bool:
        return "Title" in self._chain(name)

    def is_hidden_page(self, name: str) -> bool:
        return name in self._hidden_pages

    def _chain(self, name: str) -> list[str]:
        """A style and those that it is based on."""
        chain: list[str] = []
        while name and name not in chain:
            chain.append(name)
            name = self._parents.get(name, "")
        return chain


class Walk:
    """Turns elements into parts. ``embedded`` gives the content of an object by its address, or None.

    Footnotes and endnotes are set aside in ``notes``; ``title`` is the first paragraph in the style of that name.
    """

    def __init__(self, styles: Styles, embedded: Callable[[str], ElementTree.Element | None]) -> None:
        self._styles = styles
        self._embedded = embedded
        self._tables = 0
        self._opened: set[str] = set()
        self._look = styles.looks.page  # of what is being read
        self.notes: list[Part] = []
        self.title = ""
        self.comments = False

    def shape(self, shape: ElementTree.Element, *, shown: bool = True) -> Iterator[Part]:
        """The parts of one shape of a slide, on a ground that is not known."""
        yield from self._looking(Look(gone=not shown, ground=None), self._block(shape, 0))

    def blocks(self, container: ElementTree.Element, depth: int = 0) -> Iterator[Part]:
        """The parts of everything below an element, in order; ``depth`` is that of the list around it."""
        for child in container:
            yield from self._block(child, depth)

    def _block(self, element: ElementTree.Element, depth: int) -> Iterator[Part]:
        tag = element.tag
        if tag in (TEXT + "p", TEXT + "h"):
            yield from self._paragraph(element)
        elif tag == TEXT + "list":
            yield from self._list(element, depth)
        elif tag == TABLE + "table":
            yield from self._table(element)
        elif tag == DRAW + "frame":
            yield from self._frame(element)
        elif tag == OFFICE + "annotation":
            self.comments = True
        elif tag == TEXT + "section" and _is_closed(element):
            yield from self._looking(_GONE, self.blocks(element, depth))
        elif tag not in _LEFT_OUT:
            yield from self.blocks(element, depth)

    def _frame(self, frame: ElementTree.Element) -> Iterator[Part]:
        """A frame holds the same content in several forms, the best one first: the first with words is read."""
        for child in frame:
            parts = list(self._object(child) if child.tag == DRAW + "object" else self._block(child, 0))
            if parts:
                yield from parts
                return

    def _object(self, element: ElementTree.Element) -> Iterator[Part]:
        address = element.get(_XLINK, "")
        root: ElementTree.Element | None = element
        if address:
            if address in self._opened:  # an object that holds itself
                return
            self._opened.add(address)
            root = self._embedded(address)
        if root is None:
            return
        formula = root if root.tag == _MATH + "math" else root.find(_MATH + "math")
        if formula is not None:
            text = "".join(_formula(formula))
            yield Part("paragraph", text)
        else:
            yield from self.blocks(root)

    def _paragraph(self, paragraph: ElementTree.Element) -> Iterator[Part]:
        style = paragraph.get(TEXT + "style-name", "")
        pieces: list[str] = []
        boxes: list[ElementTree.Element] = []
        look = self._styles.looks.inside(self._look, "paragraph", style)
        if any(mark.get(TEXT + "is-hidden") == "true" for mark in paragraph.iter(TEXT + "hidden-paragraph")):
            look = replace(look, gone=True)
        self._collect(paragraph, pieces, boxes, look)
        text = "".join(pieces).strip()
        if text and paragraph.tag == TEXT + "h":
            level = paragraph.get(TEXT + "outline-level", "")
            yield Part("heading", text, level=min(int(level), _HEADING_LEVELS) if level.isdecimal() else 1)
        elif text and self._styles.is_title(style):
            self.title = self.title or clean_title(bare(text))
            yield Part("heading", text, level=1)
        elif text:
            yield Part("paragraph", text)
        for box in boxes:
            yield from self._looking(replace(look, ground=None), self._block(box, 0))

    def _looking(self, look: Look, parts: Iterable[Part]) -> Iterator[Part]:
        """Parts that are made while words look so."""
        around, self._look = self._look, look
        yield from list(parts)
        self._look = around

    def _collect(
        self, element: ElementTree.Element, pieces: list[str], boxes: list[ElementTree.Element], look: Look
    ) -> None:
        """The text of a paragraph; frames and shapes anchored in it are set aside, they are read after it."""
        _add(pieces, element.text, look)
        for child in element:
            tag = child.tag
            if tag == TEXT + "s":
                count = child.get(TEXT + "c", "1")
                pieces.append(" " * min(int(count) if count.isdecimal() else 1, _MOST_SPACES))
            elif tag == TEXT + "tab":
                pieces.append("\t")
            elif tag == TEXT + "line-break":
                pieces.append("\n")
            elif tag == TEXT + "note":
                for body in child.iterfind(TEXT + "note-body"):
                    self.notes.extend(self.blocks(body))
            elif tag == OFFICE + "annotation":
                self.comments = True
            elif tag.startswith(DRAW) and tag != DRAW + "a":
                boxes.append(child)
            elif tag == TEXT + "hidden-text":
                _add(pieces, child.get(TEXT + "string-value", ""), _GONE)
            elif tag not in _LEFT_OUT:
                style = child.get(TEXT + "style-name", "") if tag == TEXT + "span" else ""
                inner = self._styles.looks.inside(look, "text", style) if style else look
                self._collect(child, pieces, boxes, inner)
            _add(pieces, child.tail, look)

    def _list(self, element: ElementTree.Element, depth: int) -> Iterator[Part]:
        for item in element:
            marker = "- " if item.tag == TEXT + "list-item" else ""
            for child in item:
                for part in self._block(child, depth + 1):
                    if part.kind == "paragraph" and child.tag == TEXT + "p":
                        indent = "  " * min(depth, _DEEPEST_ITEM)
                        yield Part("item", indent + marker + part.text)
                        marker = "  " if marker else ""
                    else:
                        yield part

    def _table(self, table: ElementTree.Element) -> Iterator[Part]:
        self._tables += 1
        number = self._tables
        for row in _rows(table):
            cells = [cell for cell in row if cell.tag == TABLE + "table-cell"]
            yield from table_row([list(self._cell(cell, row, table)) for cell in cells], number)

    def _cell(self, cell: ElementTree.Element, row: ElementTree.Element, table: ElementTree.Element) -> Iterator[Part]:
        named = [
            (element.tag.partition("}")[2], element.get(TABLE + "style-name", "")) for element in (table, row, cell)
        ]
        ground = self._styles.looks.cell_ground(self._look.ground, *named)
        yield from self._looking(self._look.on(ground), self.blocks(cell))


def _is_closed(section: ElementTree.Element) -> bool:
    display = section.get(TEXT + "display")
    return display == "none" or (display == "condition" and section.get(TEXT + "is-hidden") == "true")


def _rows(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in table:
        if child.tag == TABLE + "table-row":
            yield child
        elif child.tag in _ROW_GROUPS:
            yield from _rows(child)


def _add(pieces: list[str], text: str | None, look: Look) -> None:
    """White space counts as one space, and as none at a start or after another (part 3, 6.1.2)."""
    if text:
        text = _BLANKS.sub(" ", text)
        if text.startswith(" ") and (not pieces or pieces[-1].endswith((" ", "\n"))):
            text = text[1:]
        if text:
            pieces.append(hide(text) if look.hidden else text)


def _formula(element: ElementTree.Element) -> Iterator[str]:
    """The signs of a formula without the notation that it was typed in."""
    if element.tag in (_MATH + "annotation", _MATH + "annotation-xml"):
        return
    yield (element.text or "").strip()
    for child in element:
        yield from _formula(child)
