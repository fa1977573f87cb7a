"""The sign behind a sentence of an answer that stands in no source, where that sentence is.

Sentences are compared by their letters and digits: what Markdown adds around them is not on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content

from edgerag.word_edges import is_edge

# Behind a sentence that stands in no source, where others have the number of theirs.
DOUBT_SIGN = Content.styled("[?]", "bold $text-warning")
DOUBT_STYLE = "italic $text-warning"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence with a sign. ``at``: where it begins in the text, as Markdown; None where that is not known."""

    words: str
    at: int | None = None

    def within(self, start: int, end: int) -> Doubt | None:
        """As of that part of the text; None where it begins elsewhere."""
        if self.at is None:
            return self
        return Doubt(self.words, self.at - start) if start <= self.at < end else None


def within(doubts: Sequence[Doubt], start: int, end: int) -> tuple[Doubt, ...]:
    return tuple(own for doubt in doubts if (own := doubt.within(start, end)) is not None)


def with_doubts(content: Content, source: str, doubts: Sequence[Doubt]) -> Content:
    """``content``, which shows ``source``, with a sign behind each of the sentences."""
    for doubt in doubts:
        found = list(_found(content.plain, doubt.words))
        if not found:
            continue
        earlier = 0 if doubt.at is None else sum(start < doubt.at for start, _ in _found(source, doubt.words))
        start, end = found[min(earlier, len(found) - 1)]
        while end < len(content.plain) and _closes(content.plain[end]):
            end += 1
        doubted = content[start:end].stylize(DOUBT_STYLE)
        content = Content.assemble(content[:start], doubted, " ", DOUBT_SIGN, content[end:])
    return content


def letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _closes(character: str) -> bool:
    """A full stop, a closing quotation mark, the bracket of a mark."""
    return not (character.isalnum() or character.isspace() or character == "_")


def _found(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Where these words stand as whole words."""
    places = [place for place, character in enumerate(text) if character.isalnum()]
    own, wanted = letters(text), letters(words)
    at = own.find(wanted) if wanted else -1
    while at >= 0:
        start, end = places[at], places[at + len(wanted) - 1] + 1
        if is_edge(text, start) and is_edge(text, end):
            yield start, end
        at = own.find(wanted, at + 1)
