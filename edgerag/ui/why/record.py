"""How an answer came about, as JSON values: `edgerag ask --why --json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from edgerag.types import PromptBudget, Trace, own_id
from edgerag.ui.output import hit_record


def trace_record(trace: Trace) -> Mapping[str, Any]:
    return {
        "spans": [
            {"stage": span.stage, "start_s": round(span.start_s, 6), "seconds": round(span.seconds, 6)}
            for span in trace.spans
        ],
        "token_ns": list(trace.token_ns),
        "hits": [
            {
                "rank": rank,
                "fused_rank": traced.fused_rank,
                "reranked_rank": traced.reranked_rank,
                "probability": None if traced.probability is None else round(traced.probability, 4),
                "outcome": traced.outcome,
                "source": traced.source,
                **hit_record(traced.hit),
            }
            for rank, traced in enumerate(trace.hits, start=1)
        ],
        "vector_leg": trace.vector_leg,
        "second_look": None if trace.second_look is None else dataclasses.asdict(trace.second_look),
        "budget": None if trace.budget is None else _budget_record(trace.budget),
        "messages": [
            {
                "role": message.role,
                "parts": [
                    {"text": str(part), "chunk_id": None if isinstance(part, str) else own_id(part.chunk_id)}
                    for part in message.parts
                ],
            }
            for message in trace.messages
        ],
    }


def _budget_record(budget: PromptBudget) -> Mapping[str, Any]:
    return {
        "context_tokens": budget.context_tokens,
        "prompt_tokens": budget.prompt_tokens,
        "answer_room": budget.answer_room,
        "free_tokens": budget.free_tokens,
        "parts": [dataclasses.asdict(part) for part in budget.parts],
    }
