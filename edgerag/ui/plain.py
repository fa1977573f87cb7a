"""Text from documents and models, made safe to show: it can move no cursor and colour nothing."""

from __future__ import annotations

import re

from edgerag.safe_text import SafeText
from edgerag.ui.cells import cell_count, cut

# How Python holds the bytes of a name that are no UTF-8 (PEP 383).
_BYTE_OF_A_NAME = re.compile("[\udc80-\udcff]")


def plain(text: str) -> str:
    """``text`` without escape sequences and control characters; tabs and line ends stay. Bytes of a name that stand for
    no letter are shown as ``\\xe9``: two files must not look like one."""
    return SafeText().feed(_BYTE_OF_A_NAME.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text))


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` cells."""
    line = " ".join(plain(text).split())
    return line if cell_count(line) <= width else cut(line, width - 1).rstrip() + "…"
