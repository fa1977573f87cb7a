"""Why a bundle is not taken, or cannot be installed."""

from __future__ import annotations


class Refused(Exception):
    """``message`` is one sentence; ``remedy`` says what to do next; ``problems`` name each file that is amiss."""

    def __init__(self, message: str, *, remedy: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.problems = problems

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()
