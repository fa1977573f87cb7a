"""The best sentences of the sources, word for word: an answer before the model has read anything.

It takes well under a millisecond and no model, so it is there as soon as the sources are. Its
sentences are cut out of the documents and never written: each one stands at its offsets, under the
number of its source. Pure.

A sentence counts by the question's words in it, each weighing the more the fewer sentences hold it; a
little by the same of its neighbour, which often names what the sentence only calls "it"; and by how
relevant its source is. What did not help was left out (docs/decisions/044): cosines of sentences,
rarity in the whole library, and preferring numbers for "how many".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgerag.ask.quotes import is_furniture
from edgerag.ask.words import content_words, sentence_spans
from edgerag.safe_text import SafeText
from edgerag.types import InstantSentence, Source

_MOST_SENTENCES = 3
_MOST_CHARACTERS = 600  # of all sentences together: about six lines in a terminal
# Longer sentences (Thai has no full stop, a table no sentences) are cut into pieces that are weighed apart.
_LONGEST_PIECE = 320
_SHORTEST_PIECE = 80
# Between 0.2 and 0.5, and 0.3 and 1, the choice is as good.
_NEIGHBOUR_WEIGHT = 0.4
_SOURCE_WEIGHT = 0.6
_LEAST_SHARE_OF_BEST = 0.5  # a sentence that scores less is padding
_CLAUSE_END = re.compile(r"\n|[,;:|]\s|[，、；：،۔]|[.]{2,}")
_TABLE_HEAD = re.compile(r"\|[^\n]*\n[|\s:-]+")
_WORD_END = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: Source
    start: int  # in the text of the chunk
    end: int
    words: frozenset[str]


def instant_sentences(
    sources: Sequence[Source], *, question: str, relevance: Mapping[int, float]
) -> tuple[InstantSentence, ...]:
    """At most three sentences of ``sources``, best first, 600 characters in all.

    ``relevance`` is the probability of each chunk by its id, as the sources were selected by it.
    """
    candidates = [candidate for source in sources for candidate in _candidates(source)]
    scores = _scores(candidates, wanted=tuple(dict.fromkeys(content_words(question))), relevance=relevance)
    # Equal scores: the better source, and in it the earlier sentence.
    order = sorted(range(len(candidates)), key=lambda index: (-scores[index], index))
    chosen: list[InstantSentence] = []
    room = _MOST_CHARACTERS
    seen: set[str] = set()
    for index in order:
        candidate = candidates[index]
        if scores[index] < _LEAST_SHARE_OF_BEST * scores[order[0]]:
            break
        chunk = candidate.source.hit.chunk.chunk
        text = chunk.text[candidate.start : candidate.end]
        if len(text) > room or text in seen:
            continue
        seen.add(text)
        room -= len(text)
        chosen.append(
            InstantSentence(
                text=text,
                source=candidate.source.number,
                start=chunk.start + candidate.start,
                end=chunk.start + candidate.end,
            )
        )
        if len(chosen) == _MOST_SENTENCES:
            break
    return tuple(chosen)


def instant_text(sentences: Sequence[InstantSentence]) -> str:
    """The sentences as an answer: quoted, each a paragraph, under the number of its source."""
    return "\n\n".join(f"“{' '.join(SafeText().feed(s.text).split())}” [{s.source}]" for s in sentences)


def _candidates(source: Source) -> list[_Candidate]:
    text = source.hit.chunk.chunk.text
    spans = [piece for span in sentence_spans(text) for piece in _pieces(text, *span)]
    spans = [span for span in spans if not _says_nothing(text[slice(*span)])] or spans
    return [_Candidate(source, start, end, frozenset(content_words(text[start:end]))) for start, end in spans]


def _says_nothing(text: str) -> bool:
    return is_furniture(text) or _TABLE_HEAD.fullmatch(text) is not None


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, in pieces that are short enough, cut where a clause or at least a word ends."""
    while end - start > _LONGEST_PIECE:
        window = (start + _SHORTEST_PIECE, start + _LONGEST_PIECE)
        cut = _last_end(_CLAUSE_END, text, *window) or _last_end(_WORD_END, text, *window) or window[1]
        yield (start, start + len(text[start:cut].rstrip()))
        start = cut + len(text[cut:end]) - len(text[cut:end].lstrip())
    if start < end:
        yield (start, end)


def _last_end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """Where the last match between two offsets ends."""
    return max((match.end() for match in pattern.finditer(text, start, end)), default=None)


def _scores(candidates: Sequence[_Candidate], *, wanted: Sequence[str], relevance: Mapping[int, float]) -> list[float]:
    count = len(candidates)
    holders = {word: sum(word in candidate.words for candidate in candidates) for word in wanted}
    # Okapi's idf, over the sentences at hand. A word that none holds tells nothing apart.
    weights = {word: math.log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in holders.items() if n}
    total = sum(weights.values()) or 1.0
    best_source = max(relevance.values(), default=0.0) or 1.0
    covered = [sum(weight for word, weight in weights.items() if word in c.words) / total for c in candidates]
    scores = []
    for index, candidate in enumerate(candidates):
        neighbours = [
            covered[other]
            for other in (index - 1, index + 1)
            if 0 <= other < count and candidates[other].source is candidate.source
        ]
        scores.append(
            covered[index]
            + _NEIGHBOUR_WEIGHT * max(neighbours, default=0.0)
            + _SOURCE_WEIGHT * relevance.get(candidate.source.hit.chunk.id, 0.0) / best_source
        )
    return scores
