"""Foreign text on its way to the screen: documents, paths, errors and answers are data.

Textual reads a plain ``str`` as markup; everything foreign therefore goes through here and becomes
a ``Content``, which is never parsed. Controls and bidirectional overrides are gone from it.
"""

from __future__ import annotations

import re

from textual.content import Content

from edgerag.ui.plain import one_line, plain

# What plain() drops, character by character; here each gets a visible stand-in of the same length,
# so that offsets into the document stay true.
_UNSAFE_RANGES = ((0x00, 0x09), (0x0B, 0x20), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A), (0xD800, 0xE000))
_STAND_IN = "\N{REPLACEMENT CHARACTER}"
_SAME_LENGTH = {code: _STAND_IN for first, end in _UNSAFE_RANGES for code in range(first, end)}
_SAME_LENGTH |= {code: chr(0x2400 + code) for code in range(0x20) if code in _SAME_LENGTH}
_SAME_LENGTH[0x0D] = " "  # the end of a line made elsewhere: nothing to see

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def text(value: str, style: str = "") -> Content:
    """Foreign text, lines kept."""
    return Content.styled(plain(value), style) if style else Content(plain(value))


def line(value: str, width: int, style: str = "") -> Content:
    """Foreign text on one line of at most ``width`` characters."""
    return Content.styled(one_line(value, width), style)


def same_length(value: str) -> str:
    """``value`` with a stand-in for every unsafe character, so that every offset still fits."""
    return value.translate(_SAME_LENGTH)


def typed(value: str, *, lines: bool) -> str:
    """Pasted text as it may go into an input: printable, on one line unless ``lines``."""
    value = plain(value.replace("\r\n", "\n").replace("\r", "\n")).replace("\t", "    ")
    return value if lines else " ".join(value.split("\n")).strip()


def is_typable(value: str) -> bool:
    """True if an input field can hold ``value`` as it is."""
    return plain(value) == value and not _CONTROL.search(value)
