"""Fields of a message from the parser process: what is not of the kind that belongs there is refused."""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    """Raises TypeError for what is none."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is not text")
    return value


def whole_number(value: Any) -> int:
    """Raises TypeError for what is none; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is not a whole number")
    return value


def number_within(value: Any, low: int, high: int) -> int:
    """Raises TypeError for what is no whole number, ValueError for one that is less than ``low`` or more than
    ``high``."""
    if not low <= whole_number(value) <= high:
        raise ValueError(f"{value} is not a whole number from {low} to {high}")
    return whole_number(value)
