"""Which source a sentence of an answer comes from, by its words, numbers and names.

Pure. Strict on what can be checked (a number or a name that the source does not hold ends the
matter) and lenient on the rest (inflection, order). It cannot see a negation or a swapped role.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgerag.ask.words import content_words, fold, numbers
from edgerag.types import Source

_LEAST_SHARE = 0.6  # of the sentence's content words that must stand in the source
_LEAST_WORDS = 2  # one shared word is chance
_NAME = re.compile(r"[^\W\d_]\w*")


@dataclass(frozen=True, slots=True)
class _Words:
    number: int
    words: frozenset[str]
    numbers: frozenset[str]


class SupportFinder:
    """Answers for one set of sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(
            _Words(source.number, frozenset(content_words(text)), frozenset(numbers(text)))
            for source in sources
            for text in (f"{source.hit.chunk.title}\n{source.hit.chunk.chunk.embedding_text}",)
        )

    def find(self, sentence: str) -> int | None:
        """The number of the source that supports ``sentence`` best; None when none clearly does."""
        words = content_words(sentence)
        if len(set(words)) < _LEAST_WORDS:
            return None
        wanted = numbers(sentence)
        names = {word for name in _names(sentence) for word in content_words(name)}
        best: tuple[float, int] | None = None
        for source in self._sources:
            if not wanted <= source.numbers or not names <= source.words:
                continue
            share = sum(word in source.words for word in words) / len(words)
            if share >= _LEAST_SHARE and (best is None or share > best[0]):
                best = (share, source.number)
        return best[1] if best else None


def _names(sentence: str) -> list[str]:
    """Capitalised words that do not begin the sentence. A sentence in capitals, and German with
    its capital nouns, are only held to more than needed."""
    found = list(_NAME.finditer(sentence))
    return [match.group() for match in found[1:] if match.group()[0].isupper() and fold(match.group()) != "i"]
