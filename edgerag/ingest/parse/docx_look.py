"""Whether Word shows the words of a run: what the run, its styles and what it stands on say (ECMA-376 part 1, 17.3.2).

A colour hides a text where the ground is known: a shading of the run, its paragraph or its cell, or the white page.
In a table whose style may colour its cells, or in a text box, the ground is not known, and no colour hides anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from edgerag.ingest.parse.colour import WHITE, Colour, alike, hex_colour

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_BLACK: Colour = (0, 0, 0)
_AUTOMATIC: Colour = (-999, -999, -999)  # black or white, whichever is seen on its ground: like none
_SMALLEST_HALF_POINTS = 2  # a letter of one point or less is a dot
_OFF = frozenset({"0", "false", "off"})
_MARKERS: dict[str, Colour] = {  # w:highlight (17.18.40)
    "black": _BLACK,
    "white": WHITE,
    "yellow": (255, 255, 0),
    "green": (0, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
    "blue": (0, 0, 255),
    "red": (255, 0, 0),
    "darkBlue": (0, 0, 139),
    "darkCyan": (0, 139, 139),
    "darkGreen": (0, 100, 0),
    "darkMagenta": (139, 0, 139),
    "darkRed": (139, 0, 0),
    "darkYellow": (128, 128, 0),
    "darkGray": (169, 169, 169),
    "lightGray": (211, 211, 211),
}


@dataclass(frozen=True, slots=True)
class Ground:
    """What a text stands on; ``colour`` is None where that is not known."""

    colour: Colour | None


PAGE = Ground(WHITE)
UNKNOWN = Ground(None)


@dataclass(frozen=True, slots=True)
class RunLook:
    """What is said of a run; None for what is not said."""

    vanished: bool | None = None
    colour: Colour | None = None
    half_points: int | None = None
    ground: Ground | None = None

    def over(self, other: RunLook) -> RunLook:
        """What this says, and where it says nothing the other."""
        if self == _NOTHING:
            return other
        return RunLook(
            other.vanished if self.vanished is None else self.vanished,
            other.colour if self.colour is None else self.colour,
            other.half_points if self.half_points is None else self.half_points,
            other.ground if self.ground is None else self.ground,
        )

    def is_hidden_on(self, around: Ground) -> bool:
        """Whether a text that looks so is not seen on a ground."""
        if self.vanished or (self.half_points is not None and self.half_points <= _SMALLEST_HALF_POINTS):
            return True
        ground = (self.ground or around).colour
        return ground is not None and self.colour is not None and alike(self.colour, ground)


_NOTHING = RunLook()


class Styles:
    """The styles of a document: what each says of the runs in it."""

    def __init__(self, root: ElementTree.Element | None) -> None:
        self._styles: dict[str, tuple[str, RunLook]] = {}
        self._known: dict[str, RunLook] = {}
        self.default = RunLook()
        self._paragraph = ""  # the style of paragraphs that name none
        if root is None:
            return
        self.default = run_look(root.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr"))
        for style in root.iter(W + "style"):
            name, base = style.get(W + "styleId", ""), style.find(W + "basedOn")
            own = run_look(style.find(W + "rPr")).over(RunLook(ground=_shading(style.find(f"{W}pPr/{W}shd"))))
            self._styles[name] = ("" if base is None else base.get(W + "val", ""), own)
            if style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true", "on"):
                self._paragraph = name

    def paragraph(self, properties: ElementTree.Element | None) -> RunLook:
        """What holds for the runs of a paragraph that say nothing themselves."""
        style = None if properties is None else properties.find(W + "pStyle")
        named = self._paragraph if style is None else style.get(W + "val", "")
        look = self._look(named).over(self.default)
        shading = None if properties is None else _shading(properties.find(W + "shd"))
        return look if shading is None else RunLook(ground=shading).over(look)

    def run(self, properties: ElementTree.Element | None, paragraph: RunLook) -> RunLook:
        """How a run looks in a paragraph."""
        if properties is None:
            return paragraph
        style = properties.find(W + "rStyle")
        named = RunLook() if style is None else self._look(style.get(W + "val", ""))
        return run_look(properties).over(named).over(paragraph)

    def _look(self, name: str) -> RunLook:
        if name not in self._known:
            look, seen = RunLook(), set()
            current = name
            while current in self._styles and current not in seen:
                seen.add(current)
                current, own = self._styles[current]
                look = look.over(own)
            self._known[name] = look
        return self._known[name]


def run_look(properties: ElementTree.Element | None) -> RunLook:
    """What the properties of a run say themselves."""
    if properties is None:
        return _NOTHING
    vanish, colour, size = (properties.find(W + name) for name in ("vanish", "color", "sz"))
    half_points = "" if size is None else size.get(W + "val", "")
    marker = properties.find(W + "highlight")
    ground = None if marker is None else _marked(marker.get(W + "val", ""))
    return RunLook(
        vanished=None if vanish is None else vanish.get(W + "val", "1") not in _OFF,
        colour=None if colour is None else hex_colour(colour.get(W + "val", "")) or _AUTOMATIC,
        half_points=int(half_points) if half_points.isdecimal() else None,
        ground=ground or _shading(properties.find(W + "shd")),
    )


def cell_ground(cell: ElementTree.Element, around: Ground) -> Ground:
    """What the words in a cell of a table stand on."""
    return _shading(cell.find(f"{W}tcPr/{W}shd")) or around


def table_ground(table: ElementTree.Element, around: Ground) -> Ground:
    """The same where a cell says nothing: a style of tables may colour some of them."""
    properties = table.find(W + "tblPr")
    if properties is None:
        return around
    styled = properties.find(W + "tblStyle")
    if styled is not None and styled.get(W + "val") not in ("TableGrid", "TableNormal"):
        return UNKNOWN
    return _shading(properties.find(W + "shd")) or around


def page_ground(root: ElementTree.Element) -> Ground:
    """What the words of a document stand on."""
    background = root.find(W + "background")
    if background is None:
        return PAGE
    return (
        PAGE if background.get(W + "color", "auto") == "auto" else Ground(hex_colour(background.get(W + "color", "")))
    )


def _marked(name: str) -> Ground | None:
    return None if name in ("", "none") else Ground(_MARKERS.get(name))


def _shading(element: ElementTree.Element | None) -> Ground | None:
    """None for a shading that shows what is below it."""
    if element is None:
        return None
    pattern, fill = element.get(W + "val", "clear"), element.get(W + "fill", "auto")
    if pattern == "solid":
        return Ground(hex_colour(element.get(W + "color", "")))
    if pattern in ("clear", "nil"):
        return None if fill == "auto" or pattern == "nil" else Ground(hex_colour(fill))
    return UNKNOWN
