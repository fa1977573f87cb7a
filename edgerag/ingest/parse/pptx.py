"""PPTX, read from its XML (ECMA-376 part 1, PresentationML): slides as they are shown, each a page, with their notes.

The boxes of a slide are read as a person would: its title, then the others from top to bottom and left to right,
wherever they or the layout of the slide put them. Hidden slides and what stands beside a slide are read and marked; a
slide that is damaged is named and the others are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse.drawing import A, chart, diagram, paragraphs, table
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.layout import Part, bare, hide, unseen
from edgerag.ingest.parse.openxml import Relation, core_date, core_title, relations, resolved
from edgerag.ingest.parse.package import Package
from edgerag.ingest.parse.pptx_look import UNKNOWN, Ground, Grounds
from edgerag.ingest.parse.slides import Box, Slide, first_words, lay_out_slides, named, reading_order
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MAIN = "ppt/presentation.xml"
_SLIDE_NAME = re.compile(r"ppt/slides/slide(\d+)\.xml", re.IGNORECASE)
_TITLES = frozenset({"title", "ctrTitle"})
# Furniture: the number is the page's, pictures of slides have no words, the rest is the same on all slides.
_NEVER_READ = frozenset({"sldNum", "sldImg"})
_READ_ONCE = frozenset({"dt", "ftr", "hdr"})
_LISTS = frozenset({"body", "obj"})  # their paragraphs have bullets in nearly every layout
# What the program calls a presentation that nobody named.
_UNNAMED = re.compile(r"(?:microsoft )?powerpoint[ -]*\w*|(?:presentation|präsentation|slide|folie) ?\d*", re.I)


@dataclass(frozen=True, slots=True)
class _Shape:
    element: ElementTree.Element
    placeholder: tuple[str, str] | None  # its type and index
    box: Box | None

    @property
    def kind(self) -> str:
        return self.placeholder[0] if self.placeholder else ""


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when no slide has text, DocumentDamaged when the file is not whole."""
    package = Package(source.data, kind="presentation")
    reader = _Reader(package)
    slides: list[Slide] = []
    hidden: list[int] = []
    damaged: list[int] = []
    for number, name in enumerate(_slide_names(package), 1):
        try:
            slide = reader.slide(name, hidden=hidden, number=number)
        except DocumentDamaged:
            damaged.append(number)
            slide = Slide()
        slides.append(slide)
    if not slides:
        raise DocumentEmpty("There are no slides in the presentation.")
    if len(damaged) == len(slides):
        raise package.damaged("is damaged: none of its slides can be read")
    laid_out = lay_out_slides(slides)
    if not laid_out.text.strip():
        raise DocumentEmpty(
            "There is no text on the slides.", remedy="If they hold pictures of text, they need text recognition first."
        )
    title = core_title(package)
    if not title or _UNNAMED.fullmatch(title):
        title = next((bare(slide.title) for slide in slides if slide.title), "")
        title = title or first_words(laid_out.text, laid_out.headings)
    parsed = ParsedDocument(
        text=laid_out.text,
        title=" ".join(title.split()) or source.fallback_title,
        media_type=MEDIA_TYPE,
        dated_ns=core_date(package),
        pages=laid_out.pages,
        headings=laid_out.headings,
        warnings=tuple(_warnings(package, hidden, damaged)),
        hidden=laid_out.hidden,
    )
    return name_hidden(parsed, named=hidden)


def _main(package: Package) -> str:
    main = next((r.part for r in relations(package, "").values() if r.kind == "officeDocument"), _MAIN)
    return _MAIN if package.find(main) is None else main


def _slide_names(package: Package) -> list[str]:
    """The parts of the slides as they are shown, each once; by their file names when the list of them is lost."""
    main = _main(package)
    presentation = package.xml(main)
    if presentation is not None:
        related = relations(package, main)
        ids = [entry.get(_R + "id", "") for entry in presentation.iterfind(f"{_P}sldIdLst/{_P}sldId")]
        return list(dict.fromkeys(related[id_].part if id_ in related else id_ for id_ in ids))
    numbered = [(int(match[1]), name) for name in package.names if (match := _SLIDE_NAME.fullmatch(name))]
    if not numbered:
        raise package.damaged("has no main part")
    return [name for _, name in sorted(numbered)]


def _warnings(package: Package, hidden: list[int], damaged: list[int]) -> Iterator[str]:
    if hidden:
        yield f"Hidden and read all the same: {named(hidden)}."
    if damaged:
        yield f"Damaged or missing, and left out: {named(damaged)}."
    if any(name.startswith("ppt/comments/") for name in package.names):
        yield "Comments were left out."


class _Reader:
    """Reads slides one by one; keeps what they share."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._layouts: dict[str, dict[tuple[str, str], Box]] = {}
        self._furniture: set[str] = set()
        self._tables = 0
        self._grounds = Grounds(package)
        self._size = _slide_size(package)

    def slide(self, name: str, *, hidden: list[int], number: int) -> Slide:
        """Raises DocumentDamaged when it is missing or not well formed. A hidden one adds its number to ``hidden``."""
        root = self._package.xml(name)
        if root is None:
            raise self._package.damaged(f"lacks the part {name}")
        if root.get("show") in ("0", "false"):
            hidden.append(number)
        related = relations(self._package, name)
        slide = Slide(hidden=number in hidden)
        ground = self._grounds.of(name, root)
        furniture: list[Part] = []
        for shape in self._ordered(root, self._inherited(related)):
            outside = self._size is not None and shape.box is not None and shape.box.is_outside(self._size)
            parts = list(self._parts(shape, related, ground))
            if outside or _is_off(shape.element):
                parts = [replace(part, text=hide(part.text)) for part in parts]
            if shape.kind in _TITLES and not slide.title:
                slide.title = " ".join(" ".join(part.text for part in parts).split())
            elif shape.kind in _READ_ONCE:
                furniture.extend(parts)
            elif shape.kind not in _NEVER_READ:
                slide.parts.extend(parts)
        slide.parts.extend(unseen(furniture, self._furniture))
        for relation in related.values():
            if relation.kind == "notesSlide":
                slide.notes.extend(self._notes(relation.part))
        return slide

    def _notes(self, name: str) -> Iterator[Part]:
        root = self._package.xml(name)
        related = relations(self._package, name)
        for shape in () if root is None else self._ordered(root, {}):
            if shape.kind not in _NEVER_READ | _READ_ONCE:
                yield from self._parts(shape, related)

    # ------------------------------------------------------------ where shapes stand

    def _ordered(self, root: ElementTree.Element, inherited: dict[tuple[str, str], Box]) -> list[_Shape]:
        tree = root.find(f"{_P}cSld/{_P}spTree")
        return [] if tree is None else _in_order(tree, inherited)

    def _inherited(self, related: dict[str, Relation]) -> dict[tuple[str, str], Box]:
        """The places of placeholders that the layout of a slide gives, and the master of the layout."""
        name = next((r.part for r in related.values() if r.kind in ("slideLayout", "slideMaster")), "")
        if name not in self._layouts:
            self._layouts[name] = {}  # a layout that names itself as its master ends here
            root = self._package.xml(name) if name else None
            if root is not None:
                places = dict(self._inherited(relations(self._package, name)))
                for shape in self._ordered(root, places):
                    if shape.placeholder and shape.box:
                        places[shape.placeholder] = shape.box
                        places[shape.kind, ""] = shape.box
                self._layouts[name] = places
        return self._layouts[name]

    # ------------------------------------------------------------ what they say

    def _parts(self, shape: _Shape, related: dict[str, Relation], ground: Ground | None = None) -> Iterator[Part]:
        element = shape.element
        if element.tag == _P + "grpSp":
            for inner in _in_order(element, {}):
                yield from self._parts(inner, related, ground)
        elif element.tag == _P + "graphicFrame":
            yield from self._graphic(element, related)
        elif (body := element.find(_P + "txBody")) is not None:
            under = (ground or UNKNOWN).under(element.find(_P + "spPr"), element.find(_P + "style"))
            yield from paragraphs(body, listed=shape.kind in _LISTS, is_hidden=under.hides)

    def _graphic(self, frame: ElementTree.Element, related: dict[str, Relation]) -> Iterator[Part]:
        for data in frame.iterfind(f"{A}graphic/{A}graphicData"):
            for child in resolved(data):
                self._tables += 1
                if child.tag == A + "tbl":
                    yield from table(child, self._tables)
                elif child.tag == _C + "chart":
                    yield from chart(self._related(related, child.get(_R + "id")), self._tables)
                elif child.tag == _DIAGRAM + "relIds":
                    yield from diagram(self._related(related, child.get(_R + "dm")))

    def _related(self, related: dict[str, Relation], id_: str | None) -> ElementTree.Element | None:
        relation = related.get(id_ or "")
        return None if relation is None else self._package.xml(relation.part)


def _slide_size(package: Package) -> Box | None:
    presentation = package.xml(_main(package))
    size = None if presentation is None else presentation.find(_P + "sldSz")
    if size is None:
        return None
    width, height = _length(size.get("cx")), _length(size.get("cy"))
    return Box(0.0, 0.0, width, height) if width and height else None


def _is_off(shape: ElementTree.Element) -> bool:
    """Whether its author switched it off."""
    return any(named.get("hidden") in ("1", "true") for named in shape.iterfind(f"*/{_P}cNvPr"))


def _in_order(tree: ElementTree.Element, inherited: dict[tuple[str, str], Box]) -> list[_Shape]:
    shapes = list(_shapes(tree, inherited))
    titles = [shape for shape in shapes if shape.kind in _TITLES]
    # A placeholder whose layout is lost has no place: it holds the main text, so it comes before what has one.
    lost = [shape for shape in shapes if shape.kind not in _TITLES and shape.placeholder and shape.box is None]
    rest = [shape for shape in shapes if shape.kind not in _TITLES and not (shape.placeholder and shape.box is None)]
    return [*titles, *lost, *reading_order(rest, lambda shape: shape.box)]


def _shapes(tree: ElementTree.Element, inherited: dict[tuple[str, str], Box]) -> Iterator[_Shape]:
    for child in resolved(tree):
        if child.tag not in (_P + "sp", _P + "grpSp", _P + "graphicFrame", _P + "cxnSp"):
            continue
        found = child.find(f"*/{_P}nvPr/{_P}ph")
        placeholder = None if found is None else (found.get("type", "obj"), found.get("idx", ""))
        box = _box(child)
        if box is None and placeholder is not None:
            kind, index = placeholder
            box = inherited.get(placeholder) or inherited.get(("body", index)) or inherited.get((kind, ""))
        yield _Shape(child, placeholder, box)


def _box(shape: ElementTree.Element) -> Box | None:
    for path in (f"{_P}spPr/{A}xfrm", f"{_P}grpSpPr/{A}xfrm", f"{_P}xfrm"):
        frame = shape.find(path)
        if frame is not None:
            offset, size = frame.find(A + "off"), frame.find(A + "ext")
            if offset is not None and size is not None:
                return Box(
                    _length(offset.get("x")), _length(offset.get("y")), _length(size.get("cx")), _length(size.get("cy"))
                )
    return None


def _length(value: str | None) -> float:
    """In English metric units; 0 for what is no number."""
    return float(value) if value and re.fullmatch(r"-?\d{1,12}", value) else 0.0
