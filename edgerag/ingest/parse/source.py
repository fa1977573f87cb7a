"""What a parser is given: the bytes of one file, its name, and how it is made safe to cite."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

# Control characters that mean nothing in a text (tab, line feed and form feed stay), and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_TITLE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Source:
    """One file, read whole. ``name`` is its file name, for its extension and as a title of last resort."""

    data: bytes
    name: str

    @property
    def extension(self) -> str:
        return PurePath(self.name).suffix.lower()

    @property
    def fallback_title(self) -> str:
        return clean_title(self.name)


def clean_title(title: str) -> str:
    """A title on one line, without control characters; "" if nothing is left of it."""
    return " ".join(_INVISIBLE.sub("", _CONTROLS.sub(" ", title)).split())[:_TITLE_LENGTH].rstrip()


def clean_text(text: str) -> str:
    """Text that a parser took out of a binary format: no control characters, line feeds as line ends."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
