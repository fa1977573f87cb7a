"""DOCX, read from its XML (ECMA-376 part 1): paragraphs, headings, tables and text boxes in document order.

Tracked insertions are in, deletions are out, hidden text is marked; headers and footers are given once, before the
body; footnotes follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.docx_look import (
    UNKNOWN,
    Ground,
    RunLook,
    Styles,
    W,
    cell_ground,
    page_ground,
    table_ground,
)
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.layout import Part, bare, hide, lay_out, sole_title, table_row, unseen
from edgerag.ingest.parse.openxml import MATH, MC, alternative, core_date, core_title
from edgerag.ingest.parse.package import Package
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_FOLDER = "word/"
_LEFT_OUT = frozenset(
    W + name for name in ("del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "rt", "sectPr")
)
_HEADING_LEVELS = 9
# Word's own "heading 1", and what publishers call theirs: "HeadA", "Head 2".
_HEADING_NAME = re.compile(r"head(?:ing)?[ _-]?([1-9a-e])")


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is no text, DocumentDamaged when the file is not whole."""
    package = Package(source.data, kind="DOCX")
    body = package.xml(_main(package))
    if body is None:
        raise package.damaged("has no main part")
    walk = _Walk(_heading_levels(package), Styles(package.xml(_FOLDER + "styles.xml")), page_ground(body))
    parts: list[Part] = []
    seen: set[str] = set()
    for name in _named(package, "header"):
        parts.extend(unseen(walk.blocks(package.xml(name)), seen))
    for name in _named(package, "footer"):
        parts.extend(unseen(walk.blocks(package.xml(name)), seen))
    parts.extend(walk.blocks(body))
    for name in ("footnotes.xml", "endnotes.xml"):
        parts.extend(walk.blocks(package.xml(_FOLDER + name)))
    laid_out = lay_out(parts)
    if not laid_out.text.strip():
        raise DocumentEmpty(
            "There is no text in the document.",
            remedy="If it holds pictures of text, they need text recognition first.",
        )
    warnings = []
    if _named(package, "comments"):
        warnings.append("Comments were left out.")
    title = core_title(package) or walk.title or sole_title(laid_out.headings)
    return name_hidden(
        ParsedDocument(
            text=laid_out.text,
            title=title or source.fallback_title,
            media_type=MEDIA_TYPE,
            dated_ns=core_date(package),
            headings=laid_out.headings,
            warnings=tuple(warnings),
            hidden=laid_out.hidden,
        )
    )


def _main(package: Package) -> str:
    named = [name for name in package.names if name.startswith(_FOLDER + "document") and name.endswith(".xml")]
    return named[0] if named and package.find(_FOLDER + "document.xml") is None else _FOLDER + "document.xml"


def _named(package: Package, kind: str) -> list[str]:
    return sorted(name for name in package.names if name.startswith(_FOLDER + kind) and name.endswith(".xml"))


class _Walk:
    def __init__(self, levels: dict[str, int], styles: Styles, page: Ground) -> None:
        self._levels = levels  # style id -> heading level, 0 for the title
        self._styles = styles
        self._ground = page  # of what is being read
        self._tables = 0
        self.title = ""

    def blocks(self, container: ElementTree.Element | None) -> Iterator[Part]:
        """The parts of everything below an element, in order."""
        for child in () if container is None else container:
            tag = child.tag
            if tag == W + "p":
                yield from self._paragraph(child)
            elif tag == W + "tbl":
                yield from self._table(child)
            elif tag == MC + "AlternateContent":
                yield from self.blocks(alternative(child))
            elif tag in (W + "footnote", W + "endnote") and child.get(W + "type") in (
                "separator",
                "continuationSeparator",
                "continuationNotice",
            ):
                continue
            elif tag not in _LEFT_OUT:
                yield from self.blocks(child)

    def _paragraph(self, paragraph: ElementTree.Element) -> Iterator[Part]:
        pieces: list[str] = []
        boxes: list[ElementTree.Element] = []
        properties = paragraph.find(W + "pPr")
        self._collect(paragraph, pieces, boxes, self._styles.paragraph(properties))
        text = "".join(pieces).strip()
        level = self._level(properties)
        if not text:
            pass
        elif level is not None and level > 0:
            yield Part("heading", text, level=level)
        elif level == 0:
            self.title = self.title or clean_title(bare(text))
            yield Part("heading", text, level=1)
        elif properties is not None and properties.find(W + "numPr") is not None:
            yield Part("item", "- " + text)
        else:
            yield Part("paragraph", text)
        for box in boxes:
            yield from self._on(UNKNOWN, box)

    def _on(self, ground: Ground, container: ElementTree.Element) -> list[Part]:
        """The parts of what stands on another ground."""
        around, self._ground = self._ground, ground
        parts = list(self.blocks(container))
        self._ground = around
        return parts

    def _collect(
        self, element: ElementTree.Element, pieces: list[str], boxes: list[ElementTree.Element], look: RunLook
    ) -> None:
        """The text of a paragraph; text boxes anchored in it are set aside, they are read after it."""
        for child in element:
            tag = child.tag
            if tag == W + "r":
                run: list[str] = []
                _collect_run(child, run, boxes)
                text = "".join(run)
                hidden = self._styles.run(child.find(W + "rPr"), look).is_hidden_on(self._ground)
                pieces.append(hide(text) if hidden else text)
            elif tag == MC + "AlternateContent":
                chosen = alternative(child)
                if chosen is not None:
                    self._collect(chosen, pieces, boxes, look)
            elif tag == MATH + "t":
                pieces.append(child.text or "")
            elif tag not in _LEFT_OUT:
                self._collect(child, pieces, boxes, look)

    def _level(self, properties: ElementTree.Element | None) -> int | None:
        if properties is None:
            return None
        outline = properties.find(W + "outlineLvl")
        if outline is not None and (level := _outline_level(outline)):
            return level
        style = properties.find(W + "pStyle")
        return None if style is None else self._levels.get(style.get(W + "val", ""))

    def _table(self, table: ElementTree.Element) -> Iterator[Part]:
        self._tables += 1
        number = self._tables
        ground = table_ground(table, self._ground)
        for row in _rows(table):
            if row.find(f"{W}trPr/{W}del") is not None:
                continue  # a tracked deletion of the row
            yield from table_row([self._on(cell_ground(cell, ground), cell) for cell in _cells(row)], number)


def _rows(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in table:
        if child.tag == W + "tr":
            yield child
        elif child.tag in (W + "sdt", W + "sdtContent", W + "customXml", W + "ins"):
            yield from _rows(child)


def _cells(row: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in row:
        if child.tag == W + "tc":
            yield child
        elif child.tag in (W + "sdt", W + "sdtContent", W + "customXml"):
            yield from _cells(child)


def _collect_run(element: ElementTree.Element, pieces: list[str], boxes: list[ElementTree.Element]) -> None:
    for child in element:
        tag = child.tag
        if tag in (W + "t", MATH + "t"):
            pieces.append(child.text or "")
        elif tag in (W + "tab", W + "ptab"):
            pieces.append("\t")
        elif tag in (W + "br", W + "cr"):
            pieces.append("\n")
        elif tag == W + "noBreakHyphen":
            pieces.append("-")
        elif tag == W + "txbxContent":
            boxes.append(child)
        elif tag == MC + "AlternateContent":
            chosen = alternative(child)
            if chosen is not None:
                _collect_run(chosen, pieces, boxes)
        elif tag not in _LEFT_OUT:
            _collect_run(child, pieces, boxes)


def _heading_levels(package: Package) -> dict[str, int]:
    """Style id -> heading level, by outline level or by name, inherited from the style it is based on."""
    styles = package.xml(_FOLDER + "styles.xml")
    levels: dict[str, int] = {}
    based_on: dict[str, str] = {}
    for style in () if styles is None else styles.iter(W + "style"):
        style_id = style.get(W + "styleId", "")
        name_element, base = style.find(W + "name"), style.find(W + "basedOn")
        name = "" if name_element is None else name_element.get(W + "val", "").lower()
        outline = style.find(f"{W}pPr/{W}outlineLvl")
        if base is not None:
            based_on[style_id] = base.get(W + "val", "")
        if name == "title":
            levels[style_id] = 0
        elif outline is not None:
            if level := _outline_level(outline):
                levels[style_id] = level
            else:
                based_on.pop(style_id, None)  # says that it is body text
        elif match := _HEADING_NAME.fullmatch(name):
            levels[style_id] = int(match[1]) if match[1].isdigit() else ord(match[1]) - ord("a") + 1
    for style_id in list(based_on):
        seen, current = {style_id}, style_id
        while current not in levels and current in based_on and based_on[current] not in seen:
            current = based_on[current]
            seen.add(current)
        if levels.get(current):
            levels.setdefault(style_id, levels[current])
    return levels


def _outline_level(element: ElementTree.Element) -> int | None:
    value = element.get(W + "val", "")
    return int(value) + 1 if value.isdigit() and int(value) < _HEADING_LEVELS else None
