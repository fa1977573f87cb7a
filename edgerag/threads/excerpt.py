"""What of a long text is shown where there is room for a line."""

from __future__ import annotations

from collections.abc import Sequence

from edgerag.index.analyze import fold
from edgerag.safe_text import SafeText, can_be_seen

TITLE_CHARACTERS = 80
NO_WORDS = "(no words)"  # the title of a question of which nothing can be seen
_EXCERPT_CHARACTERS = 160
_BEFORE = 40  # characters in front of the word that was found


def one_line(text: str) -> str:
    """Without line ends, and without what a terminal would obey."""
    return " ".join(SafeText().feed(text).split())


def title_of(question: str) -> str:
    """The name of a thread until it is given another; "" where nothing of the question can be seen."""
    line = one_line(question) if can_be_seen(question) else ""
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


def excerpt(question: str, answer: str, words: Sequence[str]) -> str:
    """A piece of the answer around the first of the folded ``words`` in it; of the question if it has none."""
    for text in (one_line(answer), one_line(question)):
        folded = fold(text)
        places = [place for place in (folded.find(word) for word in words) if place >= 0]
        if places:
            # Folding may change lengths: the place is near enough for a line that is only looked at.
            start = max(0, min(min(places), len(text)) - _BEFORE)
            start = text.rfind(" ", 0, start) + 1 if start else 0
            piece = text[start : start + _EXCERPT_CHARACTERS]
            return f"{'…' if start else ''}{piece}{'…' if start + len(piece) < len(text) else ''}"
    return one_line(question)[:_EXCERPT_CHARACTERS]
