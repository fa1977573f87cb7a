"""What went wrong with saved states, to be told once. A state that is lost costs time, never an answer."""

from __future__ import annotations

from typing import Literal

Kind = Literal["damaged", "full", "unremovable"]


class Troubles:
    """Keeps the first sentence of each kind: a thousand damaged files are one thing to say."""

    def __init__(self) -> None:
        self._told: dict[Kind, str] = {}
        self._news: list[str] = []
        self.last = ""  # sentence noted, also where it is not told again

    def note(self, kind: Kind, sentence: str) -> None:
        self.last = sentence
        if kind not in self._told:
            self._told[kind] = sentence
            self._news.append(sentence)

    def take(self) -> tuple[str, ...]:
        """The sentences since the last call."""
        news, self._news = tuple(self._news), []
        return news
