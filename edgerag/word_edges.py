"""Where words and numbers begin and end: what is looked for must not be found inside another word or number.

Scripts that write no blanks between words have an edge before every letter.
"""

from __future__ import annotations

import unicodedata

_IN_NUMBERS = ".,"


def is_edge(text: str, at: int) -> bool:
    """Whether a word or a number may begin or end before ``text[at]``."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if _joins(before) and _joins(after):
        return False
    if before in _IN_NUMBERS and after.isdigit():
        return at < 2 or not text[at - 2].isdigit()
    if after in _IN_NUMBERS and before.isdigit():
        return at + 1 >= len(text) or not text[at + 1].isdigit()
    return True


def _joins(character: str) -> bool:
    """Whether it makes one word with its like: a letter of a script with capitals, a digit, an accent."""
    return (
        character.isdigit()
        or character == "_"
        or character.lower() != character.upper()
        or unicodedata.combining(character) != 0
    )
