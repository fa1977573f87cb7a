"""How wide text is on a terminal: letters of Chinese, Japanese and Korean and most pictographs take two cells, marks on
a letter none (Unicode Standard Annex 11). Without a library: every command loads this."""

from __future__ import annotations

import textwrap
import unicodedata

_WIDE = ("W", "F")
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")
_JOINED_JAMO = range(0x1160, 0x1200)  # vowels and ends of a Korean syllable, drawn into its first letter


def cell_count(text: str) -> int:
    """The cells that one line of text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, cells: int) -> str:
    """As much of the beginning of ``text`` as fits."""
    if text.isascii():
        return text[: max(0, cells)]
    taken = 0
    for place, character in enumerate(text):
        taken += _cells(character)
        if taken > cells:
            return text[:place]
    return text


def padded(text: str, cells: int, *, to_the_right: bool = False) -> str:
    """``text`` with spaces behind it, or before it, up to so many cells."""
    spaces = " " * (cells - cell_count(text))
    return spaces + text if to_the_right else text + spaces


def wrapped(text: str, cells: int, *, first: str = "", others: str = "") -> list[str]:
    """``text`` in lines of at most so many cells, at least two more than the ``first`` one and the ``others`` have
    before them."""
    if text.isascii():
        return textwrap.wrap(text, cells, initial_indent=first, subsequent_indent=others)
    lines: list[str] = []
    line = before = first
    for word in text.split():
        gap = "" if line == before else " "
        if gap and cell_count(line + gap + word) > cells >= cell_count(others + word):
            lines.append(line)  # it fits below
            line, before, gap = others, others, ""
        rest = word
        while cell_count(line + gap + rest) > cells:
            fits = cut(rest, cells - cell_count(line + gap))
            lines.append(line + gap + fits if fits else line)
            rest, line, before, gap = rest[len(fits) :], others, others, ""
        line += gap + rest
    return lines if line == before else [*lines, line]


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _WITHOUT_WIDTH or ord(character) in _JOINED_JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
