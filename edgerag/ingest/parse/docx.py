"""DOCX, read from its XML (ECMA-376 part 1): paragraphs, headings, tables and text boxes in document order.

Tracked insertions are in, deletions and hidden text are out; headers and footers are given once, before the
body; footnotes follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.layout import Part, lay_out, sole_title, table_row, unseen
from edgerag.ingest.parse.openxml import MATH, MC, alternative, core_title
from edgerag.ingest.parse.package import Package
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FOLDER = "word/"
_LEFT_OUT = frozenset(
    _W + name for name in ("del", "moveFrom", "delText", "instrText", "delInstrText", "rPr", "pPr", "rt", "sectPr")
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
    walk = _Walk(_heading_levels(package))
    parts: list[Part] = []
    seen: set[str] = set()
    for name in _named(package, "header"):
        parts.extend(unseen(walk.blocks(package.xml(name)), seen))
    for name in _named(package, "footer"):
        parts.extend(unseen(walk.blocks(package.xml(name)), seen))
    parts.extend(walk.blocks(body))
    for name in ("footnotes.xml", "endnotes.xml"):
        parts.extend(walk.blocks(package.xml(_FOLDER + name)))
    text, headings = lay_out(parts)
    if not text.strip():
        raise DocumentEmpty(
            "There is no text in the document.",
            remedy="If it holds pictures of text, they need text recognition first.",
        )
    warnings = []
    if _named(package, "comments"):
        warnings.append("Comments were left out.")
    title = core_title(package) or walk.title or sole_title(headings)
    return ParsedDocument(
        text=text,
        title=title or source.fallback_title,
        media_type=MEDIA_TYPE,
        headings=headings,
        warnings=tuple(warnings),
    )


def _main(package: Package) -> str:
    named = [name for name in package.names if name.startswith(_FOLDER + "document") and name.endswith(".xml")]
    return named[0] if named and package.find(_FOLDER + "document.xml") is None else _FOLDER + "document.xml"


def _named(package: Package, kind: str) -> list[str]:
    return sorted(name for name in package.names if name.startswith(_FOLDER + kind) and name.endswith(".xml"))


class _Walk:
    def __init__(self, levels: dict[str, int]) -> None:
        self._levels = levels  # style id -> heading level, 0 for the title
        self._tables = 0
        self.title = ""

    def blocks(self, container: ElementTree.Element | None) -> Iterator[Part]:
        """The parts of everything below an element, in order."""
        for child in () if container is None else container:
            tag = child.tag
            if tag == _W + "p":
                yield from self._paragraph(child)
            elif tag == _W + "tbl":
                yield from self._table(child)
            elif tag == MC + "AlternateContent":
                yield from self.blocks(alternative(child))
            elif tag in (_W + "footnote", _W + "endnote") and child.get(_W + "type") in (
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
        _collect(paragraph, pieces, boxes)
        text = "".join(pieces).strip()
        properties = paragraph.find(_W + "pPr")
        level = self._level(properties)
        if not text:
            pass
        elif level is not None and level > 0:
            yield Part("heading", text, level=level)
        elif level == 0:
            self.title = self.title or clean_title(text)
            yield Part("heading", text, level=1)
        elif properties is not None and properties.find(_W + "numPr") is not None:
            yield Part("item", "- " + text)
        else:
            yield Part("paragraph", text)
        for box in boxes:
            yield from self.blocks(box)

    def _level(self, properties: ElementTree.Element | None) -> int | None:
        if properties is None:
            return None
        outline = properties.find(_W + "outlineLvl")
        if outline is not None and (level := _outline_level(outline)):
            return level
        style = properties.find(_W + "pStyle")
        return None if style is None else self._levels.get(style.get(_W + "val", ""))

    def _table(self, table: ElementTree.Element) -> Iterator[Part]:
        self._tables += 1
        number = self._tables
        for row in _rows(table):
            if row.find(f"{_W}trPr/{_W}del") is not None:
                continue  # a tracked deletion of the row
            yield from table_row([list(self.blocks(cell)) for cell in _cells(row)], number)


def _rows(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in table:
        if child.tag == _W + "tr":
            yield child
        elif child.tag in (_W + "sdt", _W + "sdtContent", _W + "customXml", _W + "ins"):
            yield from _rows(child)


def _cells(row: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in row:
        if child.tag == _W + "tc":
            yield child
        elif child.tag in (_W + "sdt", _W + "sdtContent", _W + "customXml"):
            yield from _cells(child)


def _collect(element: ElementTree.Element, pieces: list[str], boxes: list[ElementTree.Element]) -> None:
    """The text of a paragraph; text boxes anchored in it are set aside, they are read after it."""
    for child in element:
        tag = child.tag
        if tag in (_W + "t", MATH + "t"):
            pieces.append(child.text or "")
        elif tag in (_W + "tab", _W + "ptab"):
            pieces.append("\t")
        elif tag in (_W + "br", _W + "cr"):
            pieces.append("\n")
        elif tag == _W + "noBreakHyphen":
            pieces.append("-")
        elif tag == _W + "txbxContent":
            boxes.append(child)
        elif tag == MC + "AlternateContent":
            chosen = alternative(child)
            if chosen is not None:
                _collect(chosen, pieces, boxes)
        elif tag in _LEFT_OUT or (tag == _W + "r" and _is_hidden(child)):
            continue
        else:
            _collect(child, pieces, boxes)


def _is_hidden(run: ElementTree.Element) -> bool:
    vanish = run.find(f"{_W}rPr/{_W}vanish")
    return vanish is not None and vanish.get(_W + "val", "1") not in ("0", "false", "off")


def _heading_levels(package: Package) -> dict[str, int]:
    """Style id -> heading level, by outline level or by name, inherited from the style it is based on."""
    styles = package.xml(_FOLDER + "styles.xml")
    levels: dict[str, int] = {}
    based_on: dict[str, str] = {}
    for style in () if styles is None else styles.iter(_W + "style"):
        style_id = style.get(_W + "styleId", "")
        name_element, base = style.find(_W + "name"), style.find(_W + "basedOn")
        name = "" if name_element is None else name_element.get(_W + "val", "").lower()
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        if base is not None:
            based_on[style_id] = base.get(_W + "val", "")
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
    value = element.get(_W + "val", "")
    return int(value) + 1 if value.isdigit() and int(value) < _HEADING_LEVELS else None
