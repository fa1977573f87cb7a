"""A passage in those of its sentences that say most about the question, per character. Pure.

A sentence counts by the question's words in it, each weighing the more the fewer sentences of the passage hold it, and
a little by the same of its neighbours, as the instant answer does (docs/decisions/044). The one that counts most is
always kept, then those that count most for their length. Sentences stay in their order and are never cut, so that what
is left is the document's own words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from edgerag.ask.quotes import is_furniture
from edgerag.ask.words import content_words, sentence_spans

Span = tuple[int, int]

_NEIGHBOUR_WEIGHT = 0.4
GAP = " … "  # between sentences that do not follow each other


def shortened(text: str, *, question: str, fits: Callable[[int], bool]) -> tuple[Span, ...]:
    """The spans of the sentences to keep; () where the best one does not fit, or none has a word of the question.

    ``fits`` says whether so many characters do; what holds for a number holds below.
    """
    spans = [span for span in sentence_spans(text) if not is_furniture(text[slice(*span)])]
    scores = _scores([frozenset(content_words(text[start:end])) for start, end in spans], content_words(question))
    kept: list[Span] = []
    used = 0
    saying = [index for index in range(len(spans)) if scores[index] > 0]
    best = min(saying, key=lambda i: (-scores[i], i), default=None)
    for index in sorted(saying, key=lambda i: (i != best, -scores[i] / (spans[i][1] - spans[i][0]), i)):
        start, end = spans[index]
        if fits(used + end - start):
            kept.append((start, end))
            used += end - start + len(GAP)
        elif index == best:
            return ()
    return tuple(sorted(kept))


def joined(text: str, spans: Sequence[Span]) -> str:
    """The sentences with a mark wherever something between two of them is missing."""
    parts: list[str] = []
    before: int | None = None
    for start, end in spans:
        if before is not None:
            between = text[before:start]
            parts.append(between if not between.strip() else GAP)
        parts.append(text[start:end])
        before = end
    return "".join(parts)


def _scores(sentences: Sequence[frozenset[str]], wanted: Sequence[str]) -> list[float]:
    count = len(sentences)
    holders = {word: sum(word in sentence for sentence in sentences) for word in set(wanted)}
    # Okapi's idf, over the sentences at hand.
    weights = {word: math.log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in holders.items() if n}
    covered = [sum(weight for word, weight in weights.items() if word in sentence) for sentence in sentences]
    return [
        covered[i]
        and covered[i] + _NEIGHBOUR_WEIGHT * max((covered[j] for j in (i - 1, i + 1) if 0 <= j < count), default=0.0)
        for i in range(count)
    ]
