"""Text from documents and models, made safe to show: it can move no cursor and colour nothing."""

from __future__ import annotations

import re

from edgerag.safe_text import SafeText

# How Python holds the bytes of a name that are no UTF-8 (PEP 383).
_BYTE_OF_A_NAME = re.compile("[\udc80-\udcff]")


def plain(text: str) -> str:
    """``text`` without escape sequences and control characters; tabs and line ends stay. Bytes of a name that stand for
    no letter are shown as ``\\xe9``: two files must not look like one."""
    return SafeText().feed(_BYTE_OF_A_NAME.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text))


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"
