"""Text without what a terminal would obey.

Documents, paths and what a model writes are data: a document can hold escape codes, and can talk a
model into writing them. They are taken out of an answer before it exists, and of everything else
before it is shown. Works on pieces: a sequence that is cut in two between pieces is still recognised.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_ESCAPE = "\x1b"
_CSI = "\x9b"
_STRING_OPENERS = "]PX^_"  # after ESC: OSC, DCS, SOS, PM, APC
_STRING_OPENERS_C1 = "\x9d\x90\x98\x9e\x9f"
_STRING_ENDS = "\x07\x9c"
_KEPT = "\n\t"
# Overrides and isolates reorder the text around them; zero-width joiners are part of real words and stay.
_BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# Characters that JSON may hold raw but that a terminal could obey, that UTF-8 cannot encode, or of which Japanese
# encodings make a backslash (the yen sign).
_RAW_IN_JSON = re.compile("[\xa5\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def can_be_seen(text: str) -> bool:
    """Whether a reader would see anything of it: not of spaces, control characters and zero-width ones alone."""
    return any(character.isprintable() and not character.isspace() for character in SafeText().feed(text))


def json_text(value: Any, *, indent: int | None) -> str:
    """``value`` as one JSON document that can be shown: what a terminal would obey is written as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escaped(error: UnicodeError) -> tuple[str, int]:
    """As an error handler of a codec: what an encoding lacks as escapes of JSON, which stays JSON by it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2)), error.end


class SafeText:
    """Strips escape sequences and control characters from text that comes in pieces."""

    def __init__(self) -> None:
        self._state = "text"  # "text", "escape", "csi", "string", "string_escape"

    def feed(self, piece: str) -> str:
        """The part of ``piece`` that is text."""
        return "".join(character for character in piece if self._passes(character))

    def _passes(self, character: str) -> bool:
        match self._state:
            case "escape":
                self._state = "text"
                if character == "[":
                    self._state = "csi"
                elif character in _STRING_OPENERS:
                    self._state = "string"
                else:
                    return self._passes(character)
                return False
            case "csi":
                if "\x20" <= character <= "\x3f":
                    return False
                self._state = "text"
                return False if "\x40" <= character <= "\x7e" else self._passes(character)
            case "string":
                if character == _ESCAPE:
                    self._state = "string_escape"
                elif character in _STRING_ENDS:
                    self._state = "text"
                elif character == "\n":  # never closed: it must not swallow the rest of the answer
                    self._state = "text"
                    return True
                return False
            case "string_escape":
                self._state = "text"
                return False if character == "\\" else self._passes(character)
            case _:
                return self._passes_text(character)

    def _passes_text(self, character: str) -> bool:
        if character == _ESCAPE:
            self._state = "escape"
        elif character == _CSI:
            self._state = "csi"
        elif character in _STRING_OPENERS_C1:
            self._state = "string"
        if character in _KEPT:
            return True
        return unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") and character not in _BIDIRECTIONAL
