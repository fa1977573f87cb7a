"""An answer becomes spans, from what its stages measured and counted: nothing is timed for it. Pure.

Made once the answer is complete. Without ``content`` no word of a question, a document or an answer is in them, nor the
name of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from edgerag.telemetry.spans import (
    ASK,
    GENERATION,
    LONGEST_TEXT,
    THREAD,
    Span,
    Value,
    around,
    nanoseconds,
    nested,
)
from edgerag.types import Answer, Prefill, StageSpan, Trace

# The name of a stage's span. Those of ``RETRIEVAL`` lie in one of their own.
NAMES: Mapping[str, str] = {
    "plan": "rag.query.parse",
    "scan": "rag.query.retrieval.scan",
    "embedder_load": "rag.model.load",
    "question_vector": "rag.query.embed",
    "keyword": "rag.query.retrieval.bm25",
    "embed_start": "rag.query.retrieval.begin",
    "words": "rag.query.retrieval.words",
    "embed": "rag.query.retrieval.wait",
    "vector": "rag.query.retrieval.vector",
    "fuse": "rag.query.retrieval.fuse",
    "rerank": "rag.rerank.score",
    "second_look": "rag.rerank.score",
    "read": "rag.context.read",
    "select": "rag.context.select",
    "instant": "rag.context.instant",
    "model_load": "rag.model.load",
    "prompt": "rag.prompt.assemble",
    "account": "rag.prompt.account",
    "check": "rag.postprocess.cite",
    "present": "rag.present",
}
RETRIEVAL = frozenset({"embed_start", "keyword", "words", "embed", "vector", "fuse", "scan"})
_GENERATING = frozenset({"prefill", "first_token", "generate", "account"})  # made into spans together
_BESIDE: Mapping[str, str] = {"embedder_load": "embed-question", "question_vector": "embed-question"}
# Tokens of which each time is kept: an answer of more is measured no worse by the first of them.
MOST_TOKENS = 4096
TOKEN_KINDS = ("sampling", "decode", "detokenise", "present")


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """One question that was asked, answered or not."""

    began_ns: int  # of the stopwatch
    seconds: float  # it took
    spans: Sequence[StageSpan]
    answer: Answer | None  # None where there is none: it failed, or nobody waited for it
    lead_s: float = 0.0  # before the stopwatch began: opening the library, mostly
    error: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)


def answer_span(asked: MeasuredAnswer, *, content: bool = False) -> Span:
    """The root, with all in it."""
    begin = asked.began_ns
    trace = asked.answer.trace if asked.answer is not None else None
    inner = [] if asked.lead_s <= 0 else [Span("rag.library.open", begin - nanoseconds(asked.lead_s), begin)]
    retrieval = [_stage_span(span, begin) for span in asked.spans if span.stage in RETRIEVAL]
    if (whole := around("rag.query.retrieval", retrieval, _retrieval_facts(asked.answer, asked.spans))) is not None:
        inner.append(whole)
    inner += [
        _stage_span(span, begin, _facts_of(span.stage, asked.answer))
        for span in asked.spans
        if span.stage not in RETRIEVAL | _GENERATING
    ]
    inner += _generation(asked.spans, begin, asked.answer)
    end = max([begin + nanoseconds(asked.seconds), *(span.end_ns for span in inner)])
    facts = {**asked.facts, **_root_facts(asked.answer, trace, content=content)}
    return nested(Span(ASK, begin - nanoseconds(max(0.0, asked.lead_s)), end, facts, tuple(inner), asked.error))


def _stage_span(span: StageSpan, begin: int, more: Mapping[str, Value] | None = None) -> Span:
    name = NAMES.get(span.stage, f"rag.{span.stage}")
    facts: dict[str, Value] = {f"{name}.{key}": value for key, value in span.facts}
    if span.stage in _BESIDE:
        facts[THREAD] = _BESIDE[span.stage]
    if span.stage == "rerank":
        facts[f"{name}.model"] = "features"
    start_ns = begin + nanoseconds(span.start_s)
    return Span(name, start_ns, start_ns + nanoseconds(span.seconds), {**facts, **(more or {})})


def _facts_of(stage: str, answer: Answer | None) -> Mapping[str, Value]:
    if answer is None:
        return {}
    name = NAMES.get(stage, "")
    plan, selection = answer.plan, answer.selection
    if stage == "plan" and plan is not None:
        return {
            f"{name}.length": len(answer.question),
            f"{name}.words": len(plan.terms),
            f"{name}.script": plan.script,
            f"{name}.entropy_bits": round(plan.entropy_bits, 3),
            f"{name}.kind": plan.kind,
            f"{name}.broad": plan.broad,
        }
    if stage == "select" and selection is not None:
        return {
            f"{name}.redundancy": round(selection.redundancy, 4),
            f"{name}.fill": round(selection.fill, 4),
            f"{name}.tokens": selection.used_tokens,
            f"{name}.budget_tokens": selection.budget_tokens,
            f"{name}.sources": len(answer.sources),
            f"{name}.left_out": len(selection.left_out),
        }
    if stage == "prompt":
        budget = answer.trace.budget if answer.trace is not None else None
        return {
            f"{name}.tokens": answer.tokens.prompt,
            f"{name}.sources": len(answer.sources),
            **({} if budget is None else {f"{name}.context_tokens": budget.context_tokens}),
        }
    if stage == "check":
        support = [sentence.support for sentence in answer.sentences]
        return {
            f"{name}.sentences": len(support),
            f"{name}.supported": support.count("supported"),
            f"{name}.unsupported": support.count("unsupported"),
            f"{name}.cited": sum(source.cited for source in answer.sources),
        }
    return {}


def _retrieval_facts(answer: Answer | None, spans: Sequence[StageSpan]) -> Mapping[str, Value]:
    name = "rag.query.retrieval"
    facts: dict[str, Value] = {}
    deadline = [value for span in spans if span.stage == "embed" for key, value in span.facts if key == "deadline_ms"]
    if deadline:
        facts[f"{name}.deadline_ms"] = deadline[-1]
    if answer is not None and answer.plan is not None:
        facts |= {f"{name}.k": answer.plan.candidate_count, f"{name}.ef_search": answer.plan.ef_search}
    leg = answer.trace.vector_leg if answer is not None and answer.trace is not None else None
    if leg is not None:
        facts |= {
            f"{name}.type": "hybrid" if leg == "searched" else "keyword",
            f"{name}.vector_leg": leg,
            f"{name}.early_exit": leg == "words_sure",
            f"{name}.deadline_missed": leg == "late",
        }
    elif any(span.stage == "scan" for span in spans):
        facts[f"{name}.type"] = "scan"
    return facts


def _root_facts(answer: Answer | None, trace: Trace | None, *, content: bool) -> Mapping[str, Value]:
    if answer is None:
        return {}
    facts: dict[str, Value] = {
        "rag.stop_reason": answer.stop_reason,
        "rag.found": answer.found,
        "rag.model": answer.model,
        "rag.prompt.tokens": answer.tokens.prompt,
        "rag.answer.tokens": answer.tokens.answer,
        "rag.sources": len(answer.sources),
        "rag.sources.cited": sum(source.cited for source in answer.sources),
        "rag.pending_chunks": answer.pending_count,
    }
    if answer.probability is not None:
        facts["rag.probability"] = round(answer.probability, 4)
    if trace is not None and trace.token_ns:
        facts["rag.ttft_ns"] = trace.token_ns[0]
    if content:
        facts |= {
            "rag.query.text": answer.question[:LONGEST_TEXT],
            "rag.answer.text": answer.text[:LONGEST_TEXT],
            "rag.source.paths": "\n".join(source.hit.chunk.path for source in answer.sources)[:LONGEST_TEXT],
        }
        if trace is not None:
            parts = (str(part) for message in trace.messages for part in message.parts)
            facts["rag.prompt.text"] = "".join(parts)[:LONGEST_TEXT]
    return facts


# ------------------------------------------------------------ the chat model


def _generation(spans: Sequence[StageSpan], begin: int, answer: Answer | None) -> Iterator[Span]:
    """Prefill, with its batches and states, and generation: the stages overlap, their spans do not."""
    account = next((span for span in spans if span.stage == "account"), None)
    if account is not None:
        yield _stage_span(account, begin)
    prefill = next((span for span in spans if span.stage == "prefill"), None)
    first = next((span for span in spans if span.stage == "first_token"), None)
    written = next((span for span in spans if span.stage == "generate"), None)
    counted = answer.prefill if answer is not None else None
    if prefill is not None:
        yield _prefill_span(prefill, begin, counted)
    if written is None and first is None:
        return
    starts = [prefill.start_s + prefill.seconds] if prefill is not None else []
    starts += [span.start_s for span in (first, written) if span is not None]
    last = written or first
    assert last is not None, "one of them is there"
    # Where the model does not say when its prefill was over, the time to the first token is one with the rest.
    yield Span(
        GENERATION,
        begin + nanoseconds(starts[0]),
        begin + nanoseconds(last.start_s + last.seconds),
        _token_facts(answer),
    )


def _prefill_span(span: StageSpan, begin: int, counted: Prefill | None) -> Span:
    name = "rag.llm.prefill"
    start_ns = begin + nanoseconds(span.start_s)
    end_ns = start_ns + nanoseconds(span.seconds)
    if counted is None:
        return Span(name, start_ns, end_ns)
    # Before the cache was filled the thread waited for the one before it, or for the model.
    filled_ns = max(start_ns, end_ns - nanoseconds(counted.seconds))
    inner = [Span(f"{name}.begin", start_ns, filled_ns)]
    for number, batch in enumerate(counted.batches):
        at = filled_ns + nanoseconds(batch.start_s)
        facts: dict[str, Value] = {f"{name}.batch.tokens": batch.tokens, f"{name}.batch.number": number}
        inner.append(Span(f"{name}.batch", at, at + nanoseconds(batch.seconds), facts))
    kv = "rag.kv.restore"
    for restore in counted.restores:
        at = filled_ns + nanoseconds(restore.start_s)
        state: dict[str, Value] = {
            f"{kv}.hits": int(restore.tokens > 0),
            f"{kv}.bytes": restore.size_bytes,
            f"{kv}.tokens": restore.tokens,
            f"{kv}.tier": restore.tier or "none",
        }
        inner.append(Span(kv, at, at + nanoseconds(restore.seconds), state))
    for save in counted.saves:
        at = filled_ns + nanoseconds(save.start_s)
        inner.append(Span("rag.kv.save", at, at + nanoseconds(save.seconds), {"rag.kv.save.bytes": save.size_bytes}))
    if not counted.restores:  # nothing was saved to look for; what the context held was kept or not
        inner.append(Span(kv, filled_ns, filled_ns, {f"{kv}.hits": 0, f"{kv}.bytes": 0, f"{kv}.tokens": 0}))
    first_kv = next(place for place, each in enumerate(inner) if each.name == kv)
    whole: dict[str, Value] = {
        **inner[first_kv].facts,
        f"{kv}.kept": counted.kept_tokens,
        f"{kv}.approximate": counted.approximate_tokens,
    }
    inner[first_kv] = Span(kv, inner[first_kv].start_ns, inner[first_kv].end_ns, whole)
    facts = {
        f"{name}.kept": counted.kept_tokens,
        f"{name}.restored": counted.restored_tokens,
        f"{name}.approximate": counted.approximate_tokens,
        f"{name}.computed": counted.computed_tokens,
        f"{name}.batches": len(counted.batches),
    }
    if counted.seconds > 0:
        facts[f"{name}.tokens_per_second"] = round(counted.computed_tokens / counted.seconds, 2)
    return Span(name, start_ns, end_ns, facts, tuple(inner))


def _token_facts(answer: Answer | None) -> Mapping[str, Value]:
    """What each token took, as rows of numbers: a span for each would be a hundred times as much."""
    trace = answer.trace if answer is not None else None
    if answer is None or trace is None:
        return {}
    facts: dict[str, Value] = {
        f"{GENERATION}.tokens": answer.tokens.answer,
        f"{GENERATION}.stop_reason": answer.stop_reason,
    }
    if len(trace.token_ns) > 1:
        decoding_ns = trace.token_ns[-1] - trace.token_ns[0]
        if decoding_ns > 0:
            facts[f"{GENERATION}.tokens_per_second"] = round((len(trace.token_ns) - 1) * 1e9 / decoding_ns, 2)
    # Stamps count from when the ask flow began; so does nothing else in a trace.
    facts[f"{GENERATION}.asked_ns"] = trace.began_ns
    facts[f"{GENERATION}.token.ns"] = trace.token_ns[:MOST_TOKENS]
    for kind in TOKEN_KINDS:
        if trace.tokens:
            facts[f"{GENERATION}.token.{kind}_ns"] = tuple(
                getattr(timing, f"{kind}_ns") for timing in trace.tokens[:MOST_TOKENS]
            )
    return facts
