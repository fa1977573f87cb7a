"""Which hits become sources, and which of their words are shown.

Pure. Few and good beats many: a small model is led astray by passages that have little to do with
the question, so hits far below the best are left out rather than used as padding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgerag.ask.words import content_words, sentence_spans
from edgerag.types import Hit, Source

# Two chunks whose words overlap by this much (Jaccard over word pairs) say the same thing: copies,
# re-exports and boilerplate are above 0.8, neighbouring chunks of one text below 0.2.
_DUPLICATE_OVERLAP = 0.7
# A hit whose probability of being relevant is below this share of the best one's is noise beside it.
# At 0.2 XQuAD questions get 2.5 sources instead of 4, and the right one no less often (99.5 %).
_LEAST_SHARE_OF_BEST = 0.2
_QUOTE_CHARACTERS = 320  # about three lines in a terminal
# Lines that say nothing by themselves: Markdown headings, rules of tables, link definitions.
_FURNITURE = re.compile(r"#{1,6}\s[^\n]*|[|\s:=+-]+|(?:\[[^\]\n]+\]:[^\n]*\s*)+")


@dataclass(frozen=True, slots=True)
class Selection:
    """The hits that become sources, best first, and how many were left out as copies of those."""

    hits: tuple[Hit, ...]
    duplicates: int


def select(hits: Sequence[Hit], *, probabilities: Mapping[int, float], source_count: int) -> Selection:
    """The sources among ``hits`` (best first). ``probabilities`` are by chunk id; a hit without one
    is too far down to be a source."""
    best = max(probabilities.values(), default=0.0)
    chosen: list[Hit] = []
    shingles: list[frozenset[tuple[str, ...]]] = []
    duplicates = 0
    for hit in hits:
        if len(chosen) == source_count:
            break
        probability = probabilities.get(hit.chunk.id)
        if probability is None or probability < best * _LEAST_SHARE_OF_BEST:
            continue
        own = _shingles(hit.chunk.chunk.text)
        if any(_jaccard(own, other) >= _DUPLICATE_OVERLAP for other in shingles):
            duplicates += 1
            continue
        chosen.append(hit)
        shingles.append(own)
    return Selection(tuple(chosen), duplicates)


def to_sources(hits: Sequence[Hit], *, question: str) -> tuple[Source, ...]:
    """The hits as numbered sources, with the words to show for each."""
    sources = []
    for number, hit in enumerate(hits, start=1):
        start, end = quote_span(hit.chunk.chunk.text, question=question)
        sources.append(
            Source(
                number=number,
                hit=hit,
                quote=hit.chunk.chunk.text[start:end],
                quote_start=hit.chunk.chunk.start + start,
                cited=False,
            )
        )
    return tuple(sources)


def quote_span(text: str, *, question: str) -> tuple[int, int]:
    """The sentence of ``text`` that covers the question's words best, with its neighbour when that
    adds words and both are short; the first sentence when none covers any. Headings, rules of tables
    and link definitions are quoted only when there is nothing else."""
    spans = list(sentence_spans(text))
    if not spans:
        return (0, len(text))
    spans = [span for span in spans if not is_furniture(text[slice(*span)])] or spans
    wanted = set(content_words(question))
    covered = [wanted & set(content_words(text[start:end])) for start, end in spans]
    best = max(range(len(spans)), key=lambda i: (len(covered[i]), -i))
    start, end = spans[best]
    following = best + 1
    if (
        following < len(spans)
        and covered[following] - covered[best]
        and spans[following][1] - start <= _QUOTE_CHARACTERS
    ):
        end = spans[following][1]
    if end - start > _QUOTE_CHARACTERS:
        at_space = text.rfind(" ", start, start + _QUOTE_CHARACTERS)
        end = at_space if at_space > start + _QUOTE_CHARACTERS // 2 else start + _QUOTE_CHARACTERS
    return (start, end)


def is_furniture(text: str) -> bool:
    """Whether ``text`` is a heading, a rule of a table or a link definition, which say nothing by themselves."""
    return _FURNITURE.fullmatch(text.strip()) is not None


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = content_words(text)
    return frozenset(pairwise(words)) or frozenset({tuple(words)})


def _jaccard(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)
