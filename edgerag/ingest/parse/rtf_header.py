"""What the header of an RTF defines: fonts, whose character sets decode the text, and styles, which name headings."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNICODE = 65001
# \fcharset: the Windows character sets (RTF 1.9.1, "Font Table"), as code pages.
_CHARSETS = {
    0: "cp1252",
    77: "mac_roman",
    78: "cp932",
    79: "cp949",
    80: "gb18030",
    81: "cp950",
    83: "mac_greek",
    84: "mac_turkish",
    87: "cp874",
    88: "mac_latin2",
    89: "mac_cyrillic",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
_ANSI, _SYMBOL = 0, 2
_PAGES = {10000: "mac_roman", 10007: "mac_cyrillic", 936: "gb18030", 1361: "johab", _UNICODE: "utf-8", 874: "cp874"}
_KNOWN_PAGES = frozenset(
    {*(437, 720, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869, 932, 949, 950)}
    | set(range(1250, 1259))
)
_DEFAULT = "cp1252"
# Adobe's Symbol encoding, where a text would use it.
_GREEK = dict(
    zip(
        range(0x41, 0x7B),
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        strict=True,
    )
)
_SIGNS = _GREEK | dict(
    zip(
        (0x22, 0x24, 0x27, 0x2A, 0x2D, 0x40, 0xA2, 0xA3, 0xA5, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF, 0xB0, 0xB1, 0xB2, 0xB3),
        "∀∃∋∗−≅′≤∞↔←↑→↓°±″≥",
        strict=True,
    )
)
_SIGNS |= dict(
    zip(
        (0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xBB, 0xBC, 0xC5, 0xC6, 0xC7, 0xC8, 0xCC, 0xCE, 0xCF, 0xD1, 0xD2),
        "×∝∂•÷≠≡≈…⊕∅∩∪⊂∈∉∇®",
        strict=True,
    )
)
_SIGNS |= dict(
    zip(
        (0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDE, 0xE5, 0xF2),
        "©™∏√⋅¬∧∨⇔⇒∑∫",
        strict=True,
    )
)
_DINGBATS = ("wingdings", "webdings", "zapfdingbats", "zapf dingbats", "marlett", "monotype sorts")
_HEADING_NAME = re.compile(r"head(?:ing)?[ _-]?([1-9a-e])")
_PRIVATE = 0xF000  # where Unicode text keeps the bytes of a symbol font


@dataclass(slots=True)
class Font:
    """One entry of the font table. ``page`` is its own code page where it names one."""

    charset: int = 1
    page: int | None = None
    name: str = ""


class Fonts:
    """The font table and the code page of the document."""

    def __init__(self) -> None:
        self.document = _DEFAULT
        self._fonts: dict[int, Font] = {}
        self._codecs: dict[int, str] = {}

    def define(self, number: int) -> Font:
        """The entry of a number, made when it is new."""
        self._codecs.clear()
        return self._fonts.setdefault(number, Font())

    def codec(self, number: int) -> str:
        """What decodes the bytes in this font; the document's code page for a font that is not defined."""
        if number not in self._codecs:
            self._codecs[number] = self._codec(self._fonts.get(number))
        return self._codecs[number]

    def _codec(self, font: Font | None) -> str:
        if font is None:
            return self.document
        if font.page is not None:
            return page_codec(font.page) or self.document
        own = {_CHARSETS.get(other.charset) for other in self._fonts.values()}
        if font.charset == _ANSI and self.document not in own:
            # A program that knows of no character sets wrote 0 everywhere, and its text in the document's page.
            return self.document
        return _CHARSETS.get(font.charset, self.document)

    def decode(self, data: bytes, number: int) -> str:
        """Text in this font; signs of a symbol font as what they look like."""
        kind = self._kind(number)
        if kind == "symbol":
            return "".join(_SIGNS.get(byte, chr(byte) if byte < 0x80 else "") for byte in data)
        if kind == "dingbats":
            return "".join(" " if byte == 0x20 else "•" for byte in data)
        return data.decode(self.codec(number), "replace")

    def character(self, code: int, number: int) -> str:
        """A character given by its number; those of symbol fonts lie in the private area."""
        if _PRIVATE <= code <= _PRIVATE + 0xFF:
            return self.decode(bytes([code - _PRIVATE]), number) if self._kind(number) else "•"
        return chr(code)

    def _kind(self, number: int) -> str:
        font = self._fonts.get(number)
        if font is None or not font.name:
            return ""
        name = font.name.strip().lower()
        if name.startswith(_DINGBATS):
            return "dingbats"
        return "symbol" if name.startswith("symbol") and font.charset in (_SYMBOL, 1) else ""


def page_codec(page: int) -> str:
    """The codec of a Windows code page; "" for one that is not known."""
    return _PAGES.get(page) or (f"cp{page}" if page in _KNOWN_PAGES else "")


@dataclass(slots=True)
class Style:
    """One entry of the style sheet."""

    name: str = ""
    based_on: int | None = None
    outline: int | None = None


class Styles:
    """The style sheet."""

    def __init__(self) -> None:
        self._styles: dict[int, Style] = {}
        self._levels: dict[int, int | None] = {}

    def define(self, number: int) -> Style:
        """The entry of a number, made when it is new."""
        self._levels.clear()
        return self._styles.setdefault(number, Style())

    def level(self, number: int) -> int | None:
        """The heading level of a style, 0 for that of the title; by its name or outline, or those of its base."""
        if number not in self._levels:
            self._levels[number] = self._level(number)
        return self._levels[number]

    def _level(self, number: int) -> int | None:
        seen: set[int] = set()
        current: int | None = number
        while current is not None and current not in seen and (style := self._styles.get(current)) is not None:
            seen.add(current)
            name = style.name.strip().rstrip(";").strip().lower()
            if name == "title" and current == number:
                return 0
            if style.outline is not None:
                return style.outline
            if match := _HEADING_NAME.fullmatch(name):
                return int(match[1]) if match[1].isdigit() else ord(match[1]) - ord("a") + 1
            current = style.based_on
        return None
