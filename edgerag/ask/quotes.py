"""The words of a passage that are shown for it: sources with their numbers and quotes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edgerag.ask.words import content_words, sentence_spans
from edgerag.types import Hit, Source

_QUOTE_CHARACTERS = 320  # about three lines in a terminal
# Lines that say nothing by themselves: Markdown headings, rules of tables, link definitions.
_FURNITURE = re.compile(r"#{1,6}\s[^\n]*|[|\s:=+-]+|(?:\[[^\]\n]+\]:[^\n]*\s*)+")


def to_sources(
    hits: Sequence[Hit], *, question: str, spans: Mapping[int, tuple[tuple[int, int], ...]] | None = None
) -> tuple[Source, ...]:
    """The hits as numbered sources, with the words to show for each. ``spans``: the sentences to give to a model, of
    those of which it is not given all, by chunk id."""
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
                spans=(spans or {}).get(hit.chunk.id, ()),
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
