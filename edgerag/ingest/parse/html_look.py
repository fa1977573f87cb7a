"""Whether a page shows the text of an element: what its attributes and styles say about how it looks.

Of CSS it knows what hides text: rules of simple selectors (``p``, ``.note``, ``#top``, ``p.note.small``) and inline
styles. What it does not know, such as a background that a style sheet of another file may give, never makes a text
hidden: a white text is hidden where its ground is known to be white.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from edgerag.ingest.parse.colour import WHITE, Colour, alike, css_colour

Declarations = Mapping[str, str]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_DECLARATION = re.compile(r"([a-z-]{2,40})\s*:\s*((?:[^;\"'()]|\"[^\"]*\"|'[^']*'|\([^()]*\))*)")
_SIMPLE = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_PART = re.compile(r"([.#])([\w-]+)")
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)(px|pt|pc|cm|mm|in|em|rem|ex|ch|vw|vh|%)?")
_PIXELS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "cm": 37.8, "mm": 3.78, "in": 96.0, "vw": 12.8, "vh": 8.0}
_SIZES = {
    "xx-small": 9.0,
    "x-small": 10.0,
    "small": 13.0,
    "medium": 16.0,
    "large": 18.0,
    "x-large": 24.0,
    "xx-large": 32.0,
    "smaller": 13.0,
    "larger": 18.0,
    "initial": 16.0,
}
_DEFAULT_PIXELS = 16.0
_SMALLEST_PIXELS = 1.34  # one point: a letter of less is a dot
_OFF_SCREEN_PIXELS = -900.0  # no layout moves what is to be seen so far
_LEAST_OPACITY = 0.05
_LINK = "#0000ee"
_BLACK: Colour = (0, 0, 0)
_ROOTS = frozenset({"html", "body"})  # a page that hides all of itself shows itself by a script
_CLIPPED = re.compile(r"inset\(\s*(?:50|100)%|circle\(\s*0|rect\(\s*(?:[01](?:px)?[\s,]*){3,4}\)|polygon\(0")
_MOVED = re.compile(r"translate(?:x|y|3d)?\(\s*(?:0(?:px)?\s*,\s*)?(-\d{3,}(?:\.\d+)?)(?:px)?\b|scale\(\s*0\s*[,)]")
_MOST_RULES = 20_000
_REMEMBERED = 4096
_UNKNOWN_GROUND = ("background", "background-color", "background-image")


@dataclass(frozen=True, slots=True)
class Look:
    """How the text of an element is shown. ``colour`` and ``ground`` are None where they are not known."""

    gone: bool = False  # with all that is in it
    invisible: bool = False  # what is in it may be visible again
    pixels: float = _DEFAULT_PIXELS  # of its type
    moved: bool = False  # by its indent
    colour: Colour | None = _BLACK
    transparent: bool = False
    ground: Colour | None = WHITE

    @property
    def hidden(self) -> bool:
        if self.gone or self.invisible or self.moved or self.transparent or self.pixels <= _SMALLEST_PIXELS:
            return True
        return self.colour is not None and self.ground is not None and alike(self.colour, self.ground)


@dataclass(frozen=True, slots=True)
class _Rule:
    tag: str  # "" for any
    names: frozenset[tuple[str, str]]  # (".", "note"), ("#", "top")
    declarations: Declarations
    rank: tuple[int, int, int]  # ids, classes, tag


class StyleSheet:
    """The rules of the style elements of a page. ``complete``: no other file has any."""

    def __init__(self, texts: Iterable[str], *, complete: bool) -> None:
        self._rules: dict[tuple[str, str], list[_Rule]] = {}
        self._count = 0
        self._known = complete  # all grounds are
        for text in texts:
            self._add(_COMMENT.sub(" ", text))
        self._declared = functools.lru_cache(_REMEMBERED)(self._find)

    def first(self) -> Look:
        """What holds before anything is said."""
        return Look(ground=WHITE if self._known else None)

    def inside(self, around: Look, tag: str, attributes: Mapping[str, str]) -> Look:
        """How an element in one that looks like ``around`` shows its text."""
        if not attributes and ("", tag) not in self._rules and ("", "") not in self._rules and tag != "dialog":
            return around
        declared = dict(_of_attributes(tag, attributes))
        declared |= self._declared(tag, attributes.get("class", ""), attributes.get("id", ""))
        if style := attributes.get("style"):
            declared |= declarations(style)
        look = _styled(around, declared, tag) if declared else around
        is_closed = tag == "dialog" and "open" not in attributes
        return replace(look, gone=True) if ("hidden" in attributes and tag not in _ROOTS) or is_closed else look

    def _find(self, tag: str, classes: str, id_: str) -> Declarations:
        names = {(".", name) for name in classes.split()} | ({("#", id_)} if id_ else set())
        keys = [("", ""), ("", tag), *names]
        found = [
            rule for key in keys for rule in self._rules.get(key, ()) if rule.tag in ("", tag) and rule.names <= names
        ]
        declared: dict[str, str] = {}
        for rule in sorted(found, key=lambda rule: rule.rank):
            declared |= rule.declarations
        return declared

    def _add(self, text: str) -> None:
        for selectors, body in _blocks(text):
            if selectors.startswith("@"):
                words = selectors.lower().split()
                if words[0] == "@media" and words[1:] in (["all"], ["screen"], ["only", "screen"]):
                    self._add(body)
                continue
            declared = declarations(body)
            for selector in selectors.split(",") if declared else ():
                self._add_rule(selector.strip(), declared)

    def _add_rule(self, selector: str, declared: Declarations) -> None:
        match = _SIMPLE.fullmatch(selector)
        self._count += 1
        if match is None or not selector or self._count > _MOST_RULES:
            # Whom it concerns is not known; what happens under a pointer does not matter.
            concerns_ground = any(name in declared for name in _UNKNOWN_GROUND)
            self._known = self._known and not (concerns_ground and ":" not in selector)
            return
        tag = "" if match[1] in (None, "*") else match[1].lower()
        names = frozenset((kind, name) for kind, name in _PART.findall(match[2]))
        ids = sum(kind == "#" for kind, _ in names)
        key = min(names) if names else ("", tag)  # "#" sorts before "."
        rule = _Rule(tag, names, declared, (ids, len(names) - ids, bool(tag)))
        self._rules.setdefault(key, []).append(rule)


@functools.lru_cache(_REMEMBERED)
def declarations(text: str) -> Declarations:
    """What an inline style says, in lower case."""
    found = {}
    for name, value in _DECLARATION.findall(text.lower()):
        found[name] = value.partition("!")[0].strip()
    return found


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Selectors, or an at-rule, and what stands in their braces."""
    position = 0
    while (opening := text.find("{", position)) >= 0:
        selectors = text[position:opening].rpartition(";")[2].strip()
        depth, end = 1, opening + 1
        for brace in re.finditer(r"[{}]", text[end:]) if selectors.startswith("@") else ():
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                end = opening + 1 + brace.start()
                break
        if not selectors.startswith("@"):
            end = text.find("}", end)
        elif depth:
            end = -1
        end = len(text) if end < 0 else end
        yield selectors, text[opening + 1 : end]
        position = end + 1


def _of_attributes(tag: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What old pages and mails say without CSS."""
    if value := attributes.get("bgcolor"):
        yield "background-color", value.lower()
    if attributes.get("background"):
        yield "background-image", "url()"
    if tag == "a" and "href" in attributes:
        yield "color", _LINK  # whatever the colour around it
    if value := attributes.get("color") if tag == "font" else attributes.get("text") if tag == "body" else None:
        yield "color", value.lower()


def _styled(around: Look, declared: Declarations, tag: str) -> Look:
    gone, invisible = around.gone, around.invisible
    if tag not in _ROOTS:
        gone = gone or _is_gone(declared)
        visibility = declared.get("visibility", "")
        invisible = visibility in ("hidden", "collapse") or (invisible and visibility != "visible")
    pixels = _font_pixels(declared, around.pixels)
    indent = _pixels(declared.get("text-indent", ""), pixels)
    colour, transparent = around.colour, around.transparent
    shown = declared.get("-webkit-text-fill-color") or declared.get("color", "")
    if shown and shown != "inherit":
        colour = css_colour(shown)
        transparent = colour is None and (
            shown == "transparent" or re.fullmatch(r"rgba?\(.*,\s*0?\.?0+%?\s*\)", shown) is not None
        )
    if any("text" in declared.get(name, "") for name in ("background-clip", "-webkit-background-clip")):
        return Look(gone, invisible, pixels, colour=None, ground=None)  # letters cut out of a picture
    return Look(
        gone=gone,
        invisible=invisible,
        pixels=pixels,
        moved=around.moved if indent is None else indent <= _OFF_SCREEN_PIXELS,
        colour=colour,
        transparent=transparent,
        ground=_ground(declared, around.ground),
    )


def _is_gone(declared: Declarations) -> bool:
    if declared.get("display") == "none" or declared.get("content-visibility") == "hidden":
        return True
    opacity = _LENGTH.fullmatch(declared.get("opacity", ""))
    if opacity and float(opacity[1]) / (100 if opacity[2] == "%" else 1) < _LEAST_OPACITY:
        return True
    placed = declared.get("position") in ("absolute", "fixed", "relative")
    edges = ("left", "right", "top", "bottom") if placed else ()
    for name in (*edges, "margin-left", "margin-top"):
        distance = _pixels(declared.get(name, ""), _DEFAULT_PIXELS)
        if distance is not None and distance <= _OFF_SCREEN_PIXELS:
            return True
    if _CLIPPED.search(declared.get("clip", "")) or _CLIPPED.search(declared.get("clip-path", "")):
        return True
    moved = _MOVED.search(declared.get("transform", ""))
    if moved and (moved[1] is None or float(moved[1]) <= _OFF_SCREEN_PIXELS):
        return True
    if declared.get("overflow") in ("hidden", "clip"):
        sizes = (_pixels(declared.get(name, ""), _DEFAULT_PIXELS) for name in ("width", "height", "max-height"))
        return any(size is not None and size <= 1 for size in sizes)
    return False


def _ground(declared: Declarations, around: Colour | None) -> Colour | None:
    if declared.get("background-image", "none") != "none":
        return None
    value = declared.get("background-color") or declared.get("background", "")
    if not value or value in ("none", "inherit", "initial", "transparent", "0", "unset"):
        return around
    return next((colour for word in (value, *value.split()) if (colour := css_colour(word))), None)


def _font_pixels(declared: Declarations, around: float) -> float:
    value = declared.get("font-size", "")
    if not value and (font := declared.get("font", "")):
        value = next((word.partition("/")[0] for word in font.split() if _pixels(word.partition("/")[0], 1.0)), "")
    pixels = _SIZES.get(value)
    if pixels is None:
        pixels = _pixels(value, around)
    return around if pixels is None else pixels


def _pixels(value: str, em: float) -> float | None:
    """None for what is no length."""
    match = _LENGTH.fullmatch(value.strip())
    if match is None:
        return None
    number, unit = float(match[1]), match[2]
    if unit is None:
        return number
    if unit in ("em", "ex", "ch"):
        return number * em
    if unit == "rem":
        return number * _DEFAULT_PIXELS
    return number / 100 * em if unit == "%" else number * _PIXELS[unit]
