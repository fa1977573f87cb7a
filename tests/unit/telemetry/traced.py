"""Answers to trace."""

from __future__ import annotations

from typing import Any

from edgerag.types import Answer, Prefill, TokenCounts, Trace


def answer(trace: Trace | None, prefill: Prefill | None = None, **more: Any) -> Answer:
    return Answer(
        question="why?",
        text="so.",
        found=True,
        sources=(),
        stop_reason="end",
        timings=(),
        tokens=TokenCounts(10, 3),
        model="m",
        pending_count=0,
        notes=(),
        prefill=prefill,
        trace=trace,
        **more,
    )
