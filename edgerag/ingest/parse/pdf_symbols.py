"""Signs of TeX's mathematical fonts, whose files do not say what their codes mean.

The encodings are those of the Computer Modern fonts (Knuth, Computers and Typesetting, volume E) and of the AMS fonts.
Codes that are parts of one large brace or root are "": they are no signs of their own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_NOT = "\u0338"  # a stroke through the sign before it
_SYMBOLS = dict(
    zip(
        (
            0x1C,
            0x1D,
            0x30,
            0x33,
            0x34,
            0x36,
            0x37,
            0x3C,
            0x3D,
            0x5D,
            0x64,
            0x65,
            0x66,
            0x67,
            0x68,
            0x69,
            0x6B,
            0x6C,
            0x70,
        ),
        f"≪≫′∋△{_NOT}↦ℜℑ⊎⌊⌋{{}}⟨⟩‖↕√",
        strict=True,
    )
)
_LARGE = dict(zip((0x46, 0x4A, 0x4C, 0x4E, *range(0x50, 0x62)), "⊔⊙⊕⊗∑∏∫⋃⋂⊎⋀⋁∑∏∫⋃⋂⊎⋀⋁∐∐", strict=True))
_FONTS: tuple[tuple[str, Mapping[int, str], str | None], ...] = (
    ("CMSY", _SYMBOLS, None),
    ("CMEX", _LARGE, ""),
    ("CMMI", {0x25: "ϱ"}, None),
    ("MSAM", {0x04: "□"}, None),
    ("MSBM", {0x28: "⊊"}, None),
)
_STROKE = re.compile(rf"(?P<struck>[=∈∋⊂⊃⊆⊇≡∼≈<>∃|])?{_NOT}(?P<space>\s?)(?P<next>[=∈∋⊂⊃⊆⊇≡∼≈<>∃|])?")


def symbol(font: str, code: int) -> str | None:
    """The sign of a code in a font of this name (with or without the tag of a subset); None when it is not known."""
    name = font.rpartition("+")[2].upper()
    for prefix, signs, otherwise in _FONTS:
        if name.startswith(prefix):
            return signs.get(code, otherwise)
    return None


def composed(text: str) -> str:
    """A line in which strokes and the bar of an arrow are one with the sign that they are set over."""
    if _NOT not in text and "↦" not in text:
        return text
    return unicodedata.normalize("NFC", _STROKE.sub(_struck, re.sub("↦ ?→", "↦", text)))


def _struck(match: re.Match[str]) -> str:
    # TeX sets the stroke before the sign; PDFium may have put it behind.
    if match["next"] is not None:
        return f"{match['struck'] or ''}{match['space']}{match['next']}{_NOT}"
    return f"{match['struck'] or ''}{_NOT if match['struck'] else ''}{match['space']}"
