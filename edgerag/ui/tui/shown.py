"""Foreign text on its way to the screen: documents, paths, errors and answers are data.

Textual reads a plain ``str`` as markup; everything foreign therefore goes through here and becomes
a ``Content``, which is never parsed. Controls and bidirectional overrides are gone from it.
"""

from __future__ import annotations

import re
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.content import Content

from edgerag.ui.plain import plain

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


def fitted(value: str, cells: int) -> str:
    """Foreign text on one line of at most ``cells`` cells, some letters taking two; what is cut ends in an ellipsis."""
    whole = " ".join(plain(value).split())
    if cells <= 0 or cell_len(whole) <= cells:
        return whole if cells > 0 else ""
    return f"{set_cell_size(whole, cells - 1).rstrip()}…"


def line(value: str, cells: int, style: str = "") -> Content:
    """Foreign text on one line of at most ``cells`` cells."""
    return Content.styled(fitted(value, cells), style)


def rows(value: str, cells: int, count: int, style: str = "") -> list[Content]:
    """Foreign text on at most ``count`` rows; what is cut ends in an ellipsis."""
    # No row holds more characters than two for each cell: the rest of a long text need not be wrapped.
    whole = " ".join(plain(value[: 4 * count * max(1, cells) + 1]).split())
    return in_rows(Content.styled(whole, style), cells, count) if whole else []


def in_rows(content: Content, cells: int, count: int) -> list[Content]:
    """At most ``count`` rows of it; what is cut ends in an ellipsis."""
    rows = list(content.wrap(max(1, cells)))
    if len(rows) <= count:
        return rows
    kept, room = rows[: max(1, count)], max(0, cells - 1)
    last = kept[-1] if kept[-1].cell_length <= room else kept[-1].truncate(room)
    return [*kept[:-1], last.rstrip() + Content("…")]


def cell(value: str, *, justify: Literal["left", "right"] = "left", style: str = "") -> Text:
    """Foreign text in a table: on one row, with an ellipsis where its column is too narrow."""
    return Text(" ".join(plain(value).split()), style=style, justify=justify, no_wrap=True, overflow="ellipsis")


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
