"""Colours as files name them, and whether one can be told from another."""

from __future__ import annotations

import re

Colour = tuple[int, int, int]

WHITE: Colour = (255, 255, 255)
# Of 255 in each channel: a text that differs less from its ground is not read by anyone.
_CONTRAST = 24
# The sixteen of HTML, and those near white: only what is near its ground matters here.
_NAMED: dict[str, Colour] = {
    "black": (0, 0, 0),
    "silver": (192, 192, 192),
    "gray": (128, 128, 128),
    "grey": (128, 128, 128),
    "white": WHITE,
    "maroon": (128, 0, 0),
    "red": (255, 0, 0),
    "purple": (128, 0, 128),
    "fuchsia": (255, 0, 255),
    "green": (0, 128, 0),
    "lime": (0, 255, 0),
    "olive": (128, 128, 0),
    "yellow": (255, 255, 0),
    "navy": (0, 0, 128),
    "blue": (0, 0, 255),
    "teal": (0, 128, 128),
    "aqua": (0, 255, 255),
    "orange": (255, 165, 0),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "floralwhite": (255, 250, 240),
    "azure": (240, 255, 255),
    "ghostwhite": (248, 248, 255),
    "whitesmoke": (245, 245, 245),
    "mintcream": (245, 255, 250),
    "aliceblue": (240, 248, 255),
    "seashell": (255, 245, 238),
    "honeydew": (240, 255, 240),
}
_HEX = re.compile(r"#?([0-9a-f]{6})(?:[0-9a-f]{2})?")
_SHORT_HEX = re.compile(r"#([0-9a-f])([0-9a-f])([0-9a-f])[0-9a-f]?")
_RGB = re.compile(
    r"rgba?\(\s*(\d{1,3})(?:\s*,\s*|\s+)(\d{1,3})(?:\s*,\s*|\s+)(\d{1,3})\s*(?:[,/]\s*(\d*\.?\d+)(%?)\s*)?\)"
)


def alike(one: Colour, other: Colour) -> bool:
    """True when a text in one of them on the other cannot be read."""
    return all(abs(a - b) < _CONTRAST for a, b in zip(one, other, strict=True))


def css_colour(text: str) -> Colour | None:
    """An opaque colour as HTML and CSS write it; None for another or one that is not known."""
    text = text.strip().lower()
    if named := _NAMED.get(text):
        return named
    if match := _SHORT_HEX.fullmatch(text):
        return int(match[1] * 2, 16), int(match[2] * 2, 16), int(match[3] * 2, 16)
    if match := _RGB.fullmatch(text):
        alpha = 1.0 if match[4] is None else float(match[4]) / (100 if match[5] else 1)
        return (int(match[1]), int(match[2]), int(match[3])) if alpha >= 1 else None
    return hex_colour(text)


def hex_colour(text: str) -> Colour | None:
    """Six digits, as office files write a colour, with or without the number sign; None for anything else."""
    match = _HEX.fullmatch(text.strip().lower())
    if match is None:
        return None
    value = int(match[1], 16)
    return value >> 16, value >> 8 & 255, value & 255
