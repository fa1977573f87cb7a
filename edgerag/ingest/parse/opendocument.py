"""OpenDocument text and presentations (ISO/IEC 26300), zipped or as flat XML.

Tracked insertions are in, deletions and comments are out, hidden text is marked; headers and footers are given once,
before the body; notes follow it. Slides are pages, as in a PPTX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from edgerag.errors import DocumentEmpty, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse.dates import properties_date_ns
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.layout import Part, bare, lay_out, sole_title, unseen
from edgerag.ingest.parse.odf import DRAW, OFFICE, PRESENTATION, STYLE, SVG, Styles, Walk
from edgerag.ingest.parse.odf_look import namespace
from edgerag.ingest.parse.package import Package, beside, xml_root
from edgerag.ingest.parse.slides import Box, Slide, around, first_words, lay_out_slides, named, reading_order
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

TEXT_TYPE = "application/vnd.oasis.opendocument.text"
PRESENTATION_TYPE = "application/vnd.oasis.opendocument.presentation"

_KIND = "OpenDocument file"
_FO = namespace("xsl-fo-compatible")
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_ENCRYPTED = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}encryption-data"
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_LENGTH = re.compile(r"(-?\d{0,9}\.?\d{1,9})(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}
_LONGEST_TRANSFORM = 200
_SHIFT = re.compile(r"translate\s*\(\s*(\S+?)[\s,]+(\S+?)\s*\)")
_FURNITURE = frozenset({"header", "footer", "date-time", "page-number"})
_NO_TEXT = "If it holds pictures of text, they need text recognition first."


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is no text, DocumentEncrypted, or DocumentDamaged when it is not whole."""
    document = _flat(source.data) if source.data.lstrip(_BEFORE_XML).startswith(b"<") else _zipped(source.data)
    text = document.content.find(f"{OFFICE}body/{OFFICE}text")
    slides = document.content.find(f"{OFFICE}body/{OFFICE}presentation")
    if text is not None:
        return _text(document, text, source)
    if slides is not None:
        return _presentation(document, slides, source)
    raise DocumentUnsupported("It is an OpenDocument file that holds neither a text nor a presentation.")


@dataclass(frozen=True, slots=True)
class _Document:
    """The roots of a document; ``embedded`` gives what an object beside them holds."""

    content: ElementTree.Element
    styles: ElementTree.Element
    meta: ElementTree.Element
    embedded: Callable[[str], ElementTree.Element | None]


def _flat(data: bytes) -> _Document:
    """One XML file that holds all parts, objects included."""
    root = xml_root(data, kind=_KIND, name="the file")
    return _Document(root, root, root, lambda _: None)


def _zipped(data: bytes) -> _Document:
    package = Package(data, kind=_KIND)
    manifest = package.xml("META-INF/manifest.xml")
    if manifest is not None and manifest.find(f".//{_ENCRYPTED}") is not None:
        raise DocumentEncrypted(f"The {_KIND} is protected by a password.", remedy="Save a copy without the password.")
    content, styles, meta = (package.xml(name) for name in ("content.xml", "styles.xml", "meta.xml"))
    if content is None:
        raise package.damaged("has no main part")
    nothing = ElementTree.Element("nothing")
    return _Document(
        content,
        nothing if styles is None else styles,
        nothing if meta is None else meta,
        lambda address: package.xml(beside("content.xml", address.rstrip("/") + "/content.xml")),
    )


def _text(document: _Document, body: ElementTree.Element, source: Source) -> ParsedDocument:
    walk = Walk(Styles(document.styles, document.content), document.embedded)
    parts: list[Part] = []
    seen: set[str] = set()
    for container in _margins(document):
        parts.extend(unseen(walk.blocks(container), seen))
    parts.extend(walk.blocks(body))
    parts.extend(walk.notes)
    laid_out = lay_out(parts)
    if not laid_out.text.strip():
        raise DocumentEmpty("There is no text in the document.", remedy=_NO_TEXT)
    return name_hidden(
        ParsedDocument(
            text=laid_out.text,
            title=_given_title(document) or walk.title or sole_title(laid_out.headings) or source.fallback_title,
            media_type=TEXT_TYPE,
            dated_ns=_date_ns(document),
            headings=laid_out.headings,
            warnings=("Comments were left out.",) if walk.comments else (),
            hidden=laid_out.hidden,
        )
    )


def _margins(document: _Document) -> Iterator[ElementTree.Element]:
    """The headers and then the footers of the page styles that are in use."""
    masters = list(document.styles.iter(STYLE + "master-page"))
    attribute = STYLE + "master-page-name"
    used = {element.get(attribute) for root in (document.content, document.styles) for element in root.iter()}
    used |= {master.get(STYLE + "next-style-name") for master in masters if master.get(STYLE + "name") in used}
    shown = [master for master in masters if master.get(STYLE + "name") in used | {"Standard"}] or masters[:1]
    for kind in ("header", "footer"):
        for master in shown:
            for container in master:
                if container.tag.startswith(STYLE + kind) and container.get(STYLE + "display") != "false":
                    yield container


def _given_title(document: _Document) -> str:
    found = document.meta.find(f".//{OFFICE}meta/{_TITLE}")
    return "" if found is None else clean_title(found.text or "")


def _date_ns(document: _Document) -> int | None:
    meta = document.meta.find(f".//{OFFICE}meta")  # comments have dates, too
    return None if meta is None else properties_date_ns(meta)


# ---------------------------------------------------------------- presentations


def _presentation(document: _Document, body: ElementTree.Element, source: Source) -> ParsedDocument:
    styles = Styles(document.styles, document.content)
    walk = Walk(styles, document.embedded)
    slides: list[Slide] = []
    hidden: list[int] = []
    furniture: set[str] = set()
    sizes = _page_sizes(document)
    declared = {
        element.get(PRESENTATION + "name"): element
        for kind in ("header-decl", "footer-decl")
        for element in body.iter(PRESENTATION + kind)
    }
    for number, page in enumerate(body.iter(DRAW + "page"), 1):
        if styles.is_hidden_page(page.get(DRAW + "style-name", "")):
            hidden.append(number)
        slide = _slide(walk, page, sizes.get(page.get(DRAW + "master-page-name", "")))
        slide.hidden = number in hidden
        names = [page.get(f"{PRESENTATION}use-{kind}-name") for kind in ("header", "footer")]
        used = [Part("paragraph", "".join(declared[name].itertext())) for name in names if name in declared]
        slide.parts.extend(unseen(used, furniture))
        slide.parts.extend(walk.notes)
        walk.notes.clear()
        slides.append(slide)
    if not slides:
        raise DocumentEmpty("There are no slides in the presentation.")
    laid_out = lay_out_slides(slides)
    if not laid_out.text.strip():
        raise DocumentEmpty("There is no text on the slides.", remedy=_NO_TEXT)
    warnings = []
    if hidden:
        warnings.append(f"Hidden and read all the same: {named(hidden)}.")
    if walk.comments:
        warnings.append("Comments were left out.")
    titles = (bare(slide.title) for slide in slides if slide.title)
    title = _given_title(document) or next(titles, "") or first_words(laid_out.text, laid_out.headings)
    parsed = ParsedDocument(
        text=laid_out.text,
        title=title or source.fallback_title,
        media_type=PRESENTATION_TYPE,
        dated_ns=_date_ns(document),
        pages=laid_out.pages,
        headings=laid_out.headings,
        warnings=tuple(warnings),
        hidden=laid_out.hidden,
    )
    return name_hidden(parsed, named=hidden)


def _page_sizes(document: _Document) -> dict[str, Box]:
    """How large the slides of each master are."""
    layouts = {
        layout.get(STYLE + "name", ""): properties
        for layout in document.styles.iter(STYLE + "page-layout")
        for properties in layout.iterfind(STYLE + "page-layout-properties")
    }
    sizes: dict[str, Box] = {}
    for master in document.styles.iter(STYLE + "master-page"):
        properties = layouts.get(master.get(STYLE + "page-layout-name", ""))
        if properties is not None:
            width, height = (_length(properties.get(f"{_FO}page-{side}")) for side in ("width", "height"))
            if width and height:
                sizes[master.get(STYLE + "name", "")] = Box(0.0, 0.0, width, height)
    return sizes


def _slide(walk: Walk, page: ElementTree.Element, size: Box | None) -> Slide:
    slide = Slide()
    for shape in _in_order(page):
        kind = shape.get(PRESENTATION + "class", "")
        box = _box(shape)
        parts = list(_shape_parts(walk, shape, shown=size is None or box is None or not box.is_outside(size)))
        if kind == "title" and not slide.title:
            slide.title = " ".join(" ".join(part.text for part in parts).split())
        elif kind not in _FURNITURE:
            slide.parts.extend(parts)
    for notes in page.iterfind(PRESENTATION + "notes"):
        for shape in _in_order(notes):
            if shape.get(PRESENTATION + "class", "") not in _FURNITURE:
                slide.notes.extend(_shape_parts(walk, shape))
    return slide


def _shape_parts(walk: Walk, shape: ElementTree.Element, *, shown: bool = True) -> Iterator[Part]:
    if shape.get(PRESENTATION + "placeholder") == "true":
        return  # an empty box says "Click to add text" on the screen of its author only
    if shape.tag == DRAW + "g":
        for inner in _in_order(shape):
            yield from _shape_parts(walk, inner, shown=shown)
    else:
        yield from walk.shape(shape, shown=shown)


def _in_order(container: ElementTree.Element) -> list[ElementTree.Element]:
    """Titles, then the other shapes as they stand. Notes and animations are no shapes."""
    shapes = [child for child in container if child.tag.startswith((DRAW, OFFICE + "annotation"))]
    titles = [shape for shape in shapes if shape.get(PRESENTATION + "class") == "title"]
    return titles + reading_order([shape for shape in shapes if shape not in titles], _box)


def _box(shape: ElementTree.Element) -> Box | None:
    if shape.tag == DRAW + "g":
        boxes = [box for child in shape if (box := _box(child))]
        if not boxes:
            return None
        return around(boxes)
    left_name, top_name = ("x", "y") if shape.get(SVG + "x") or not shape.get(SVG + "x1") else ("x1", "y1")
    left, top = _length(shape.get(SVG + left_name)), _length(shape.get(SVG + top_name))
    if (left is None or top is None) and (
        shift := _SHIFT.search(shape.get(DRAW + "transform", "")[:_LONGEST_TRANSFORM])
    ):
        left, top = _length(shift[1]), _length(shift[2])
    if left is None or top is None:
        return None
    return Box(left, top, _length(shape.get(SVG + "width")) or 0.0, _length(shape.get(SVG + "height")) or 0.0)


def _length(value: str | None) -> float | None:
    """In centimetres; None for what is no length."""
    match = _LENGTH.fullmatch((value or "").strip())
    return float(match[1]) * _CENTIMETRES[match[2] or "cm"] if match else None
