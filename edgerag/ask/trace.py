"""How an answer came about, put together from what the stages have anyway.

Pure; nothing is searched or computed again for it. The order of a fusion and that of the reranker stand in the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from edgerag.ask.captions import BEST_WORDS
from edgerag.types import (
    Generator,
    Hit,
    HitOutcome,
    LeftOutWhy,
    Message,
    Passage,
    PassageSpan,
    Prefill,
    Prompt,
    PromptBudget,
    PromptPart,
    PromptPartKind,
    SelectionReport,
    Source,
    TracedHit,
)

# In this order they are named; sources keep the order that they have in the prompt.
_ORDER: tuple[PromptPartKind, ...] = (
    "instruction",
    "earlier",
    "source",
    "best_words",
    "question",
    "written",
    "format",
)


def traced_hits(
    hits: Sequence[Hit],
    *,
    probabilities: Mapping[int, float],
    selection: SelectionReport | None,
    sources: Sequence[Source],
    dropped: Sequence[Hit] = (),
    short_of_time: bool = False,
) -> tuple[TracedHit, ...]:
    """``hits`` in their last order, each with its places and with what became of it. ``probabilities`` are by chunk id,
    of those that were judged; without a ``selection`` none of them was about the question."""
    fused = {hit.chunk.id: rank for rank, hit in enumerate(sorted(hits, key=_fused_order), start=1)}
    judged = [hit for hit in hits if hit.scores.reranked is not None]
    judged.sort(key=lambda hit: (-(hit.scores.reranked or 0.0), fused[hit.chunk.id]))
    reranked = {hit.chunk.id: rank for rank, hit in enumerate(judged, start=1)}
    numbers = {source.hit.chunk.id: source.number for source in sources}
    left_out = {left.hit.chunk.id: left.why for left in selection.left_out} if selection is not None else {}
    gone: dict[int, HitOutcome] = {hit.chunk.id: "no_time" if short_of_time else "prompt_full" for hit in dropped}

    def outcome(chunk_id: int) -> HitOutcome:
        why: LeftOutWhy | None = left_out.get(chunk_id)
        if chunk_id in numbers:
            return "source"
        if chunk_id in gone:
            return gone[chunk_id]
        if why is not None:
            return why
        return "refused" if chunk_id in probabilities else "too_low"

    return tuple(
        TracedHit(
            hit=hit,
            fused_rank=fused[hit.chunk.id],
            reranked_rank=reranked.get(hit.chunk.id),
            probability=probabilities.get(hit.chunk.id),
            outcome=outcome(hit.chunk.id),
            source=numbers.get(hit.chunk.id),
        )
        for hit in hits
    )


def _fused_order(hit: Hit) -> tuple[float, float, float, int]:
    """As fuse.py has it."""
    scores = hit.scores
    last = float("inf")
    return (-scores.fused, scores.keyword_rank or last, scores.vector_rank or last, hit.chunk.id)


def prompt_budget(
    prompt: Prompt, *, generator: Generator, context_tokens: int, prefill: Prefill | None = None, written: str = ""
) -> PromptBudget:
    """What each part takes of the context. Parts are tokenised apart (encode.py), so that their tokens add up to those
    of the prompt; what is left is the chat format's. ``written``: the beginning of the answer, behind the messages."""

    def count(text: str) -> int:
        return len(generator.encode_text(text)) if text else 0

    numbers = dict(prompt.marks)
    approximate = prefill.approximate_spans if prefill is not None else ()
    parts: list[PromptPart] = []
    places = iter(prompt.passages)
    place = 0
    for at, message in enumerate(prompt.messages):
        is_last = at == len(prompt.messages) - 1
        for part in message.parts:
            if isinstance(part, Passage):
                place += 1
                tokens = count(part.header) + count(part.text)
                spliced = sum(_overlap(span, approximate) for span in islice(places, 1))
                number = numbers.get(place)
                kind: PromptPartKind = "earlier" if number is None else "source"
                parts.append(PromptPart(kind, tokens, number, spliced))
            else:
                parts.append(PromptPart(_kind(message, part, is_last=is_last), count(part)))
    if written:
        parts.append(PromptPart("written", count(written)))
    parts.append(PromptPart("format", max(0, len(prompt.tokens) - sum(part.tokens for part in parts))))
    return PromptBudget(tuple(_joined(parts)), context_tokens=context_tokens, answer_room=prompt.answer_room)


def _kind(message: Message, part: str, *, is_last: bool) -> PromptPartKind:
    if message.role == "system":
        return "instruction"
    if not is_last:
        return "earlier"
    return "best_words" if part.startswith(BEST_WORDS) else "question"


def _joined(parts: Sequence[PromptPart]) -> Iterator[PromptPart]:
    """One of each kind, but for the sources."""
    for kind in _ORDER:
        those = [part for part in parts if part.kind == kind and part.tokens]
        if kind == "source":
            yield from those
        elif those:
            tokens = sum(part.tokens for part in those)
            yield PromptPart(kind, tokens, approximate_tokens=sum(part.approximate_tokens for part in those))


def _overlap(span: PassageSpan, spans: Sequence[tuple[int, int]]) -> int:
    return sum(max(0, min(span.end, end) - max(span.start, start)) for start, end in spans)
