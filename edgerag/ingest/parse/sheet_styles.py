"""The cell styles of an XLSX (ECMA-376 part 1, 18.8): how numbers are shown, and whether the text is seen at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgerag.ingest.parse.colour import WHITE, Colour, alike, hex_colour
from edgerag.ingest.parse.number_format import BUILT_IN, GENERAL
from edgerag.ingest.parse.sheet import Package, local_name

# The first colours of the theme are white and black in nearly every one; the others are never near white.
_THEME: dict[str, Colour] = {"0": WHITE, "1": (0, 0, 0)}
_INDEXED: dict[str, Colour] = {"0": (0, 0, 0), "1": WHITE, "8": (0, 0, 0), "9": WHITE}
_ARGB_DIGITS = 8


@dataclass(frozen=True, slots=True)
class CellStyle:
    """``code`` is the number format; ``blended``: the text has the colour of what it stands on."""

    code: str = GENERAL
    blended: bool = False


def read_styles(package: Package, part: str) -> list[CellStyle]:
    """The cell styles by their numbers; none without the part."""
    if not part:
        return []
    codes = dict(BUILT_IN)
    colours: list[Colour | None] = []
    grounds: list[Colour | None] = []
    styles: list[CellStyle] = []
    for _, element in package.elements(part, "{*}numFmt", "{*}fonts", "{*}fills", "{*}cellXfs"):
        match local_name(element):
            case "numFmt":
                if local_name(element.getparent()) == "numFmts":  # others belong to conditional formats
                    codes[_number(element.get("numFmtId"))] = element.get("formatCode", GENERAL)
            case "fonts":
                colours = [_colour(_child(font, "color")) for font in element]
            case "fills":
                grounds = [_ground(fill) for fill in element]
            case "cellXfs":
                styles = [
                    CellStyle(codes.get(_number(style.get("numFmtId")), GENERAL), _blends(style, colours, grounds))
                    for style in element
                    if local_name(style) == "xf"
                ]
    return styles


def _blends(style: Any, colours: list[Colour | None], grounds: list[Colour | None]) -> bool:
    font, fill = _number(style.get("fontId")), _number(style.get("fillId"))
    colour = colours[font] if font < len(colours) else None
    ground = grounds[fill] if fill < len(grounds) else None
    return colour is not None and ground is not None and alike(colour, ground)


def _ground(fill: Any) -> Colour | None:
    pattern = _child(fill, "patternFill")
    kind = "gradient" if pattern is None else pattern.get("patternType", "none")
    if kind == "none":
        return WHITE
    return _colour(_child(pattern, "fgColor")) if kind == "solid" else None


def _colour(element: Any) -> Colour | None:
    """None for one that is not known, or that the program chooses."""
    if element is None or element.get("tint", "0") not in ("0", "0.0"):
        return None
    rgb = element.get("rgb", "")
    if rgb:
        return hex_colour(rgb[2:] if len(rgb) == _ARGB_DIGITS else rgb)
    return _THEME.get(element.get("theme", "")) or _INDEXED.get(element.get("indexed", ""))


def _child(element: Any, name: str) -> Any:
    return next((child for child in element if local_name(child) == name), None)


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isdecimal() else 0
