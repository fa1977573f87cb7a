"""Text from documents and models, made safe to show: it can move no cursor and colour nothing."""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, the separators that some terminals obey, bidirectional
# overrides and isolates (they reorder what stands around them), and lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPE_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
)


def plain(text: str) -> str:
    """``text`` without escape sequences and control characters; tabs and line ends stay."""
    return _UNSAFE.sub("", _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"
