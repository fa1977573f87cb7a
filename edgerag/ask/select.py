"""Which hits become sources: those that tell the most that is new, within a budget of tokens.

Pure. Few and good beats many: a small model is led astray by passages that have little to do with the question, so hits
far below the best are left out rather than used as padding, and so are copies of what is chosen already. Of the others
the best hit comes first; then always the one that is worth most, which is maximal marginal relevance (Carbonell and
Goldstein, SIGIR 1998): its relevance, less for what a chosen one says too, by words or by vectors, and for the tokens
that it takes. Of one that has no room any more the sentences that say most may still have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgerag.ask.background import above_background
from edgerag.ask.shorten import joined, shortened
from edgerag.ask.words import content_words
from edgerag.types import Hit, HitLeftOut, LeftOutWhy, SelectionReport

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Two chunks whose words overlap by this much (Jaccard over word pairs) say the same thing: copies,
# re-exports and boilerplate are above 0.8, neighbouring chunks of one text below 0.2.
_COPY = 0.7
# And so do two whose vectors are this near, above what any two passages are, when their words are about half the same:
# alone neither tells reworded copies from two parts of one text under a long title (bench/selection.py).
_ALIKE = 0.95
_ALIKE_WORDS = 0.3
# How much of a passage's worth goes for what a chosen one says too, when both say the same.
_VECTOR_SHARE = 0.5
# A hit whose probability of being relevant is below this share of the best one's is noise beside it.
# At 0.2 XQuAD questions get 2.5 sources instead of 4, and the right one no less often (99.5 %).
_LEAST_SHARE_OF_BEST = 0.2
# What a passage takes of the prompt beside its text: its number and title.
_HEADER_TOKENS = 25
# Of a passage that does not fit so many tokens at least must, or it says nothing by itself.
_LEAST_PART = 24
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Likeness:
    """The vectors of passages by chunk id, (dim,) of unit length, and the cosine that any two have."""

    vectors: Mapping[int, Vectors] = field(default_factory=dict)
    background: float = 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """What becomes sources, best first, and how that came about. ``spans`` are the sentences that fit of those of which
    not all does, by chunk id, as offsets in its text."""

    hits: tuple[Hit, ...]
    spans: Mapping[int, tuple[tuple[int, int], ...]]
    report: SelectionReport


@dataclass(slots=True)
class _Candidate:
    place: int
    hit: Hit
    relevance: float
    tokens: int
    shingles: frozenset[tuple[str, ...]]
    numbers: frozenset[str]
    vector: Vectors | None
    overlap: float = 0.0  # with what is chosen, at most
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def text(self) -> str:
        text = self.hit.chunk.chunk.text
        return joined(text, self.spans) if self.spans else text

    @property
    def worth(self) -> float:
        """Of its place among the sources. Per token it would be the shortest passages that are taken; by the root of
        them the most of the right ones are (bench/selection.py)."""
        return self.relevance * (1.0 - self.overlap) / math.sqrt(self.tokens + _HEADER_TOKENS)


def select(
    hits: Sequence[Hit],
    *,
    probabilities: Mapping[int, float],
    question: str,
    count: int,
    most: int,
    room_tokens: int | None = None,
    likeness: Likeness | None = None,
) -> Selection:
    """The sources among ``hits`` (best first). ``probabilities`` are by chunk id; a hit without one is too far down to
    be a source. Together they have as many tokens, by the embedder's count, as ``count`` of these hits have on average,
    and never more than ``room_tokens``; short ones may be more, ``most`` at most. The best hit is always one, however
    long."""
    likeness = likeness or Likeness()
    best = max(probabilities.values(), default=0.0)
    left_out: list[HitLeftOut] = []
    waiting: list[_Candidate] = []
    for place, hit in enumerate(hits):
        probability = probabilities.get(hit.chunk.id)
        if probability is None or probability < best * _LEAST_SHARE_OF_BEST or probability <= 0:
            left_out.append(HitLeftOut(hit, "irrelevant"))
            continue
        waiting.append(
            _Candidate(
                place,
                hit,
                probability / best,
                hit.chunk.chunk.token_count,
                _shingles(hit.chunk.chunk.text),
                frozenset(_NUMBER.findall(hit.chunk.chunk.text)),
                likeness.vectors.get(hit.chunk.id),
            )
        )
    chosen: list[_Candidate] = []
    budget_tokens = round(count * sum(each.tokens for each in waiting) / max(1, len(waiting)))
    if room_tokens is not None:
        budget_tokens = min(budget_tokens, room_tokens)
    room = budget_tokens
    relevant = 0
    while waiting:
        if len(chosen) == most:
            left_out += (HitLeftOut(each.hit, "enough") for each in waiting)
            relevant += sum(each.tokens for each in waiting)
            break
        fitting = [each for each in waiting if each.tokens <= room] if chosen else waiting[:1]
        if not fitting:
            relevant += sum(each.tokens for each in waiting)
            last = _shortened(waiting, question=question, room=room)
            if last is not None:
                waiting.remove(last)
                chosen.append(last)
                room -= last.tokens
            left_out += (HitLeftOut(each.hit, "no_room") for each in waiting)
            break
        taken = max(fitting, key=lambda each: (each.worth, -each.place))
        waiting.remove(taken)
        chosen.append(taken)
        room -= taken.tokens
        relevant += taken.tokens
        for other in tuple(waiting):
            why = _compare(taken, other, likeness.background)
            if why is not None:
                waiting.remove(other)
                left_out.append(HitLeftOut(other.hit, why))
    chosen.sort(key=lambda each: each.place)
    report = SelectionReport(
        budget_tokens=budget_tokens,
        relevant_tokens=relevant,
        used_tokens=sum(each.tokens for each in chosen),
        redundancy=_mean_overlap([_shingles(each.text) if each.spans else each.shingles for each in chosen]),
        left_out=tuple(left_out),
    )
    spans = {each.hit.chunk.id: each.spans for each in chosen if each.spans}
    return Selection(tuple(each.hit for each in chosen), spans, report)


def _compare(taken: _Candidate, other: _Candidate, background: float) -> LeftOutWhy | None:
    """Why ``other`` is left out beside ``taken``; else it is worth less by what both say."""
    overlap = _jaccard(taken.shingles, other.shingles)
    # Where only a number differs, that may be what is asked for: the torque in another edition of the manual.
    says_no_other_number = other.numbers <= taken.numbers
    if overlap >= _COPY and says_no_other_number:
        return "copy"
    if taken.vector is not None and other.vector is not None:
        alike = above_background(float(np.dot(taken.vector, other.vector)), background=background)
        if alike >= _ALIKE and overlap >= _ALIKE_WORDS and says_no_other_number:
            return "alike"
        overlap = max(overlap, _VECTOR_SHARE * alike)
    other.overlap = max(other.overlap, overlap)
    return None


def _shortened(waiting: Sequence[_Candidate], *, question: str, room: int) -> _Candidate | None:
    """The one that is worth most, in those of its sentences for which there is room; None where none would say
    anything."""
    if room < _LEAST_PART:
        return None
    best = max(waiting, key=lambda each: (each.worth, -each.place))
    text = best.hit.chunk.chunk.text
    per_character = best.tokens / max(1, len(text))
    spans = shortened(text, question=question, fits=lambda length: length * per_character <= room)
    if not spans:
        return None
    kept = sum(end - start for start, end in spans)
    best.spans, best.tokens = spans, max(1, round(kept * per_character))
    return best


def redundancy(texts: Sequence[str]) -> float:
    """Mean overlap of all pairs, Jaccard over pairs of words; 0.0 of less than two texts."""
    return _mean_overlap([_shingles(text) for text in texts])


def _mean_overlap(texts: Sequence[frozenset[tuple[str, ...]]]) -> float:
    overlaps = [_jaccard(one, other) for one, other in combinations(texts, 2)]
    return sum(overlaps) / len(overlaps) if overlaps else 0.0


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = content_words(text)
    # Without any words it is like nothing but itself.
    return frozenset(pairwise(words)) or frozenset({tuple(words) or (text,)})


def _jaccard(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)
