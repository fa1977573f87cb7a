"""Text from documents and models, made safe to show: it can move no cursor and colour nothing."""

from __future__ import annotations

from edgerag.safe_text import SafeText


def plain(text: str) -> str:
    """``text`` without escape sequences and control characters; tabs and line ends stay."""
    return SafeText().feed(text)


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"
