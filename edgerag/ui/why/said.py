"""The words for it: stages, fates of hits, parts of the prompt, and how the question was read."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from edgerag.telemetry.frames import OTHER
from edgerag.types import Answer, HitOutcome, Prefill, PromptPart, PromptPartKind, Trace, TracedHit, VectorLeg
from edgerag.ui.why.layout import quantile, token_gaps_ms

STAGES: Mapping[str, str] = {
    "plan": "plan",
    "scan": "count",
    "keyword": "keyword search",
    "embedder_load": "embedder load *",
    "question_vector": "embed question *",
    "embed_start": "begin embedding",
    "words": "read words",
    "embed": "wait for vector",
    "vector": "vector search",
    "fuse": "fuse",
    "rerank": "rerank",
    "second_look": "second look",
    "select": "select sources",
    "instant": "best sentences",
    "model_load": "model load",
    "prompt": "make prompt",
    "first_token": "to first token",
    "prefill": "prefill",
    "generate": "decode",
    "check": "check answer",
    "account": "count its tokens",
    "present": "show",
    "search": "search",
    "read": "read",
    OTHER: "other",
}
BESIDE = "* in a thread of its own, beside the others"
OUTCOMES: Mapping[HitOutcome, str] = {
    "source": "source",
    "irrelevant": "off topic",
    "copy": "a copy",
    "alike": "says the same",
    "no_room": "no room",
    "enough": "enough others",
    "prompt_full": "prompt full",
    "no_time": "no time",
    "too_low": "too far down",
    "refused": "not about it",
}
OUTCOME_SENTENCES: Mapping[HitOutcome, str] = {
    "source": "It is a source of the answer.",
    "irrelevant": "It has too little to do with the question, beside the best one.",
    "copy": "It has the words of a source.",
    "alike": "It says what a source says, in other words.",
    "no_room": "There was no room for it among the sources.",
    "enough": "There were as many sources as were wanted.",
    "prompt_full": "There was no room for it in the prompt.",
    "no_time": "The model had no time to read it (generation.reading_s).",
    "too_low": "It is too far down to be looked at.",
    "refused": "Nothing that was found is about the question (retrieval.found_probability).",
}
PARTS: Mapping[PromptPartKind, str] = {
    "instruction": "instruction",
    "earlier": "earlier turns",
    "source": "source",
    "best_words": "best words, repeated",
    "question": "question",
    "written": "written before",
    "format": "chat format",
}
_LEGS: Mapping[VectorLeg, str] = {
    "searched": "searched",
    "no_weight": "not searched: the embedder does not know the language, or there is none",
    "words_sure": "not searched: the words were sure of their best hit (early exit)",
    "late": "given up: not ready by the deadline (retrieval.vector_deadline_ms)",
    "failed": "not searched: the embedder could not be used (see the notes)",
}


def stage(name: str) -> str:
    return STAGES.get(name, name.replace("_", " "))


def plan_lines(answer: Answer) -> list[tuple[str, str]]:
    """Name and words: how the question was read, and what was done otherwise than planned."""
    lines: list[tuple[str, str]] = [("question", answer.question)]
    plan, trace = answer.plan, answer.trace
    if plan is not None:
        kind = plan.kind.replace("_", " ") + (", broad: it asks for more than one place" if plan.broad else "")
        lines += [
            ("kind", kind),
            ("searched for", plan.question),
            ("content words", " ".join(plan.terms) or "none"),
            ("spread", f"{plan.entropy_bits:.1f} bits over its words; script {plan.script}"),
            ("sources wanted", f"{plan.source_count}, short ones up to {max(plan.source_count, plan.most_sources)}"),
            ("hits of each leg", f"{plan.candidate_count} (ef_search {plan.ef_search})"),
            ("weights", f"keyword {plan.keyword_weight:g}, vector {plan.vector_weight:g}"),
        ]
        if plan.added_words:
            lines.insert(3, ("lent words", " ".join(plan.added_words)))
        if plan.words_first:
            lines.append(("order", "keywords first; vectors only where those are not sure"))
    if trace is not None:
        if trace.vector_leg is not None:
            lines.append(("vector leg", _LEGS[trace.vector_leg]))
        if (look := trace.second_look) is not None:
            limit = f", limit {look.limit_ms} ms" if look.limit_ms else ""
            read = f"{look.read_count} of {look.candidate_count} passages by {look.model}"
            lines.append(("second look", f"{read} in {look.seconds * 1000:.0f} ms{limit}"))
    if answer.probability is not None:
        lines.append(("found", f"{answer.probability:.0%} likely that there is anything about it"))
    if (selection := answer.selection) is not None:
        used = f"{selection.used_tokens} of {selection.budget_tokens} tokens (the embedder's)"
        lines.append(("sources take", f"{used}, overlap {selection.redundancy:.0%}"))
    lines.append(("ended", answer.stop_reason.replace("_", " ")))
    lines += [("note", note) for note in answer.notes]
    return lines


def not_kept(answer: Answer) -> str:
    """What to say where an answer of before has no hits or prompt any more; "" where it has."""
    if answer.trace is None:
        return "This answer was kept by a version that did not note how it came about. Ask again to see it."
    if not answer.trace.hits and not answer.trace.messages and answer.plan is None:
        return (
            "Of an answer that was kept there are times and counts, not the passages and the prompt: those belong to "
            "the library. Ask again to see them."
        )
    return ""


def outcome(traced: TracedHit, *, cited: bool = False) -> str:
    if traced.source is not None:
        return f"{'cited' if cited else 'source'} [{traced.source}]"
    return OUTCOMES[traced.outcome]


def part_name(part: PromptPart) -> str:
    return f"source [{part.source}]" if part.source is not None else PARTS[part.kind]


def cache_lines(answer: Answer) -> Iterator[tuple[str, int, str]]:
    """Name, tokens and what that means, of each way in which the prompt came into the model. Together they are it."""
    prefill = answer.prefill
    if prefill is not None:
        kept, restored, approximate = prefill.kept_tokens, prefill.restored_tokens, prefill.approximate_tokens
        yield "kept", kept, "of the prompt before, as they were"
        yield "restored", restored, "saved states, exactly as they would have been computed"
        yield "approximate", approximate, "computed elsewhere than they stand, now or at another time"
        yield "in place", max(0, answer.tokens.prompt - kept - restored - approximate), "computed now, where they stand"


def approximate_lines(trace: Trace | None) -> list[str]:
    """Exactly what was approximate."""
    parts = trace.budget.parts if trace is not None and trace.budget is not None else ()
    return [
        f"{part_name(part)}: {part.approximate_tokens} of {part.tokens} tokens approximate"
        for part in parts
        if part.approximate_tokens
    ]


def prefill_words(prefill: Prefill) -> str:
    speed = f" at {prefill.computed_tokens / prefill.seconds:,.0f} tokens/s" if prefill.seconds > 0 else ""
    return f"{prefill.computed_tokens:,} tokens computed in {seconds_words(prefill.seconds)}{speed}"


def time_lines(answer: Answer) -> list[tuple[str, str]]:
    """The figures of the time: first token, prefill, decode, gaps between tokens."""
    token_ns = answer.trace.token_ns if answer.trace is not None else ()
    lines = [("in all", seconds_words(total_s(answer)))]
    if token_ns:
        lines.append(("first token", f"{seconds_words(token_ns[0] / 1e9)} after the question"))
    if (prefill := answer.prefill) is not None:
        lines.append(("prefill", prefill_words(prefill)))
    gaps = token_gaps_ms(token_ns)
    if gaps:
        decoding_s = sum(gaps) / 1000
        speed = f" at {len(gaps) / decoding_s:.1f} tokens/s" if decoding_s > 0 else ""
        lines.append(("decode", f"{len(token_ns)} tokens{speed}"))
        lines.append(("between tokens", gap_words(gaps)))
    return lines


def gap_words(gaps_ms: Sequence[float]) -> str:
    figures = (statistics.median(gaps_ms), quantile(gaps_ms, 0.95), max(gaps_ms))
    return "median {:.1f} ms, p95 {:.1f} ms, longest {:.1f} ms".format(*figures)


def total_s(answer: Answer) -> float:
    return next((time.seconds for time in answer.timings if time.stage == "total"), 0.0)


def seconds_words(seconds: float) -> str:
    """``1.24 s``, ``38 ms``, ``0.2 ms``"""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def score_lines(traced: TracedHit) -> list[str]:
    """The places and scores of a hit in words, one leg to a line."""
    scores = traced.hit.scores
    legs = [
        _leg("keywords", scores.keyword_rank, scores.keyword, "BM25 {:.2f}"),
        _leg("vectors", scores.vector_rank, scores.vector, "cosine {:.3f}"),
        f"fused: rank {traced.fused_rank} ({scores.fused:.4f})",
        _leg("reranked", traced.reranked_rank, scores.reranked, "{:.1%} likely the best of them"),
    ]
    if scores.second_look is not None:
        legs.append(f"second look: {scores.second_look:.1%} likely the best of those read")
    if traced.probability is not None:
        legs.append(f"about the question: {traced.probability:.0%} likely")
    return legs


def _leg(name: str, rank: int | None, score: float | None, form: str) -> str:
    return (
        f"{name}: not among its hits"
        if rank is None or score is None
        else f"{name}: rank {rank} ({form.format(score)})"
    )
