"""Whether a slide shows the words of a run: their size, their colour, and what they stand on (ECMA-376 part 1, 21.1).

A colour hides a text where the ground is certain: the fill of its own shape, or the background of a slide on which,
like on its layout and its master, no picture and no other filled shape may lie below the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.colour import Colour, alike, hex_colour
from edgerag.ingest.parse.drawing import A
from edgerag.ingest.parse.openxml import relations
from edgerag.ingest.parse.package import Package

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_SMALLEST_SIZE = 100  # hundredths of a point: a letter of one point or less is a dot
_FILLS = frozenset(A + name for name in ("solidFill", "gradFill", "blipFill", "pattFill", "grpFill"))
# What a master calls its colours unless it says otherwise (19.3.1.6).
_USUAL_MAP = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}


@dataclass(frozen=True, slots=True)
class Ground:
    """What the words of a shape stand on; ``colour`` is None where that is not known."""

    colour: Colour | None
    scheme: Mapping[str, Colour] = field(default_factory=dict)  # the colours of the theme, by their names on slides

    def under(self, properties: ElementTree.Element | None, style: ElementTree.Element | None) -> Ground:
        """What the words of one shape stand on."""
        fill = _fill(properties)
        if fill is not None:
            return Ground(_solid(fill, self.scheme), self.scheme)
        if properties is not None and properties.find(A + "noFill") is not None:
            return self
        reference = None if style is None else style.find(A + "fillRef")
        by_style = reference is not None and reference.get("idx", "0") != "0"
        return Ground(None, self.scheme) if by_style else self

    def hides(self, run: ElementTree.Element) -> bool:
        """Whether the words of a run are not seen here."""
        properties = run.find(A + "rPr")
        if properties is None:
            return False
        size = properties.get("sz", "")
        if size.isdecimal() and int(size) <= _SMALLEST_SIZE:
            return True
        outlined = properties.find(f"{A}ln/{A}solidFill") is not None
        if outlined or properties.find(A + "highlight") is not None:
            return False
        if (
            properties.find(A + "noFill") is not None
            or properties.find(f"{A}solidFill/*/{A}alpha[@val='0']") is not None
        ):
            return True
        fill = properties.find(A + "solidFill")
        colour = None if fill is None else _solid(fill, self.scheme)
        return colour is not None and self.colour is not None and alike(colour, self.colour)


UNKNOWN = Ground(None)


class Grounds:
    """The grounds of the slides of one presentation."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._schemes: dict[str, Mapping[str, Colour]] = {}
        self._sheets: dict[str, ElementTree.Element | None] = {}  # layouts and masters

    def of(self, name: str, slide: ElementTree.Element) -> Ground:
        """What a slide gives its shapes to stand on."""
        layout, layout_name = self._above(name, "slideLayout")
        master, master_name = self._above(layout_name, "slideMaster")
        scheme = self._scheme(master_name, master)
        sheets = [sheet for sheet in (slide, layout, master) if sheet is not None]
        if len(sheets) < 3 or any(_may_lie_below(sheet) for sheet in sheets):
            return Ground(None, scheme)
        background = next((found for sheet in sheets if (found := sheet.find(f"{_P}cSld/{_P}bg")) is not None), None)
        if background is None:
            return Ground(scheme.get("bg1"), scheme)
        fill = _fill(background.find(_P + "bgPr"))
        reference = background.find(_P + "bgRef") if fill is None else fill
        return Ground(None if reference is None else _solid(reference, scheme), scheme)

    def _above(self, name: str, kind: str) -> tuple[ElementTree.Element | None, str]:
        """The layout of a slide, or the master of a layout."""
        try:
            found = (
                next((r.part for r in relations(self._package, name).values() if r.kind == kind), "") if name else ""
            )
            if found not in self._sheets:
                self._sheets[found] = self._package.xml(found) if found else None
        except DocumentDamaged:  # the words of the slide are read all the same
            return None, ""
        return self._sheets[found], found

    def _scheme(self, name: str, master: ElementTree.Element | None) -> Mapping[str, Colour]:
        if name not in self._schemes:
            theme, _ = self._above(name, "theme")
            colours: dict[str, Colour] = {}
            for entry in () if theme is None else theme.iterfind(f"{A}themeElements/{A}clrScheme/*"):
                for value in entry:
                    colour = hex_colour(value.get("lastClr", value.get("val", "")))
                    if colour is not None:
                        colours[entry.tag.removeprefix(A)] = colour
            given = None if master is None else master.find(_P + "clrMap")
            named = {**_USUAL_MAP, **({} if given is None else given.attrib)}
            self._schemes[name] = colours | {at: colours[of] for at, of in named.items() if of in colours}
        return self._schemes[name]


def _may_lie_below(sheet: ElementTree.Element) -> bool:
    """Whether there is a picture, or a shape with a fill, on a slide, a layout or a master."""
    for shape in sheet.iter():
        if shape.tag in (_P + "pic", _P + "graphicFrame"):
            return True
        if shape.tag == _P + "spPr" and _fill(shape) is not None:
            return True
        if shape.tag == A + "fillRef" and shape.get("idx", "0") != "0":
            return True
    return False


def _fill(properties: ElementTree.Element | None) -> ElementTree.Element | None:
    return None if properties is None else next((child for child in properties if child.tag in _FILLS), None)


def _solid(fill: ElementTree.Element, scheme: Mapping[str, Colour]) -> Colour | None:
    """The colour of a fill; None for one that is changed by what stands in it, or is no plain colour."""
    if fill.tag in _FILLS and fill.tag != A + "solidFill":
        return None
    for value in fill:
        if len(value):
            return None
        if value.tag == A + "schemeClr":
            return scheme.get(value.get("val", ""))
        return hex_colour(value.get("lastClr", value.get("val", "")))
    return None
