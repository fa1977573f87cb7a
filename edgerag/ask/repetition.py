"""Is the model only saying the same thing over and over?"""

from __future__ import annotations

_LONGEST_UNIT = 80  # longer ones are sentences, and the citation filter counts those
_LEAST_REPEATS = 4
_LEAST_CHARACTERS = 24  # "no no no no" may be meant; more is a loop
_LEAST_CHARACTERS_BLANK = 400  # rules, table borders and blank space may be long


def is_looping(text: str) -> bool:
    """Whether ``text`` ends in one unit repeated again and again."""
    for unit_length in range(1, min(_LONGEST_UNIT, len(text) // _LEAST_REPEATS) + 1):
        unit = text[-unit_length:]
        spoken = any(character.isalpha() for character in unit)
        # Digits alone make long numbers (1000000...), which end by themselves or are a loop like blanks.
        repeats = max(_LEAST_REPEATS, -(-(_LEAST_CHARACTERS if spoken else _LEAST_CHARACTERS_BLANK) // unit_length))
        if text.endswith(unit * repeats):
            return True
    return False
