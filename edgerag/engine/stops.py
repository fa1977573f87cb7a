"""Where an answer ends though no token says so: at words that open another speaker's turn.

Formats without control tokens (early chat models, models without a template) mark turns with plain text; such a
model that has answered may go on in the user's name.
"""

from __future__ import annotations

from collections.abc import Sequence

_SHORTEST = 3  # characters; less could be anything


class StopStrings:
    """Passes text on until one of ``stops`` is complete; holds back only what may become one.

    How the text is cut into pieces makes no difference.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.reached = False
        self._stops = tuple(stop for stop in dict.fromkeys(stops) if stop)
        self._held = ""

    def feed(self, piece: str) -> str:
        """The next text that is surely before a stop; nothing once one was reached."""
        if self.reached or not self._stops:
            return "" if self.reached else piece
        text = self._held + piece
        # The one that is complete first; of those, the one that began first.
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        if found:
            self.reached = True
            self._held = ""
            return text[: min(found)[1]]
        kept = len(text) - max(_begun(text, stop) for stop in self._stops)
        self._held = text[kept:]
        return text[:kept]

    def finish(self) -> str:
        """What was held back and became no stop."""
        held, self._held = self._held, ""
        return held


def turn_stops(next_turn: str) -> tuple[str, ...]:
    """The stops of a format that puts ``next_turn`` between an answer and the next question (ChatFormat.next_turn):
    the beginning of a line that names the next speaker, or of a mark in the middle of one. Empty when these words
    name nobody. Not to be asked when they begin with a token that ends the generation.

    >>> turn_stops("\\n\\n### User:\\n")
    ('\\n### User:',)
    """
    line = next((line for line in next_turn.splitlines() if line.strip()), "")
    name = line.strip()
    if len(name) < _SHORTEST or not any(map(str.isalpha, name)) or name.isalnum():
        return ()
    return (f"\n{name}",) if next_turn.partition(line)[0] else (line.rstrip(),)


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of ``text`` are a beginning of ``stop``."""
    return next((length for length in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:length])), 0)
