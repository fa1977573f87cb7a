"""Whether an OpenDocument file shows the words of a style (ISO/IEC 26300 part 3, 16 and 20).

A colour hides a text where the ground is known: that of its characters, its paragraph or its cell, or the white page.
What stands in a frame, or in a table that is coloured as a whole, is on a ground that is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from edgerag.ingest.parse.colour import WHITE, Colour, alike, hex_colour


def namespace(name: str) -> str:
    """The namespace of that name, as ElementTree writes it before a tag."""
    return f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"


_STYLE, _TEXT, _FO = namespace("style"), namespace("text"), namespace("xsl-fo-compatible")
_DRAW = namespace("drawing")
_POINTS = re.compile(r"(\d{0,5}\.?\d{1,5})(pt|cm|mm|in|px|pc)")
_UNITS = {"pt": 1.0, "cm": 72 / 2.54, "mm": 7.2 / 2.54, "in": 72.0, "px": 0.75, "pc": 12.0}
_SMALLEST_POINTS = 1.0  # a letter of less is a dot
_AUTOMATIC: Colour = (-999, -999, -999)  # black or white, whichever is seen on its ground: like none


@dataclass(frozen=True, slots=True)
class Look:
    """How words are shown. ``ground`` is None where it is not known."""

    gone: bool = False
    colour: Colour = _AUTOMATIC
    points: float = 12.0
    ground: Colour | None = WHITE

    @property
    def hidden(self) -> bool:
        if self.gone or self.points <= _SMALLEST_POINTS:
            return True
        return self.ground is not None and alike(self.colour, self.ground)

    def on(self, ground: Colour | None) -> Look:
        return replace(self, ground=ground)


class Looks:
    """What the styles of a document say of the words under them."""

    def __init__(self, *roots: ElementTree.Element) -> None:
        self._styles: dict[tuple[str, str], ElementTree.Element] = {}  # by family and name
        for root in roots:
            for style in root.iter(_STYLE + "style"):
                self._styles[style.get(_STYLE + "family", ""), style.get(_STYLE + "name", "")] = style
        self.page = Look(ground=None if any(map(_has_coloured_page, roots)) else WHITE)

    def inside(self, around: Look, family: str, name: str) -> Look:
        """How words look under a style of a family ("paragraph", "text"), in what looks like ``around``."""
        look = around
        for style in reversed(self._chain(family, name)):
            look = _styled(look, style)
        return look

    def cell_ground(self, around: Colour | None, *named: tuple[str, str]) -> Colour | None:
        """What the words of a cell stand on, from the families and names of the styles around it, inwards."""
        ground = around
        for family, name in named:
            for style in reversed(self._chain(family, name)):
                for properties in style:
                    value = properties.get(_FO + "background-color", "transparent")
                    if value != "transparent":
                        ground = hex_colour(value)
        return ground

    def _chain(self, family: str, name: str) -> list[ElementTree.Element]:
        """A style and those that it is based on."""
        chain: list[ElementTree.Element] = []
        while (style := self._styles.get((family, name))) is not None and style not in chain:
            chain.append(style)
            name = style.get(_STYLE + "parent-style-name", "")
        return chain


def _styled(look: Look, style: ElementTree.Element) -> Look:
    for properties in style:
        if properties.tag not in (_STYLE + "text-properties", _STYLE + "paragraph-properties"):
            continue
        display, colour = properties.get(_TEXT + "display"), properties.get(_FO + "color")
        if display is not None:
            look = replace(look, gone=display == "none")
        if colour is not None:
            look = replace(look, colour=hex_colour(colour) or _AUTOMATIC)
        if properties.get(_STYLE + "use-window-font-color") == "true":
            look = replace(look, colour=_AUTOMATIC)
        if size := _POINTS.fullmatch(properties.get(_FO + "font-size", "")):
            look = replace(look, points=float(size[1]) * _UNITS[size[2]])
        ground = properties.get(_FO + "background-color", "transparent")
        if ground != "transparent":
            look = look.on(hex_colour(ground))
    return look


def _has_coloured_page(root: ElementTree.Element) -> bool:
    return any(
        properties.get(_FO + "background-color", "transparent") not in ("transparent", "#ffffff")
        or properties.get(_DRAW + "fill", "none") != "none"
        for properties in root.iter(_STYLE + "page-layout-properties")
    )
