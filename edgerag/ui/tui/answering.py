"""The events of one answer, as its exchange on the screen shows them."""

from __future__ import annotations

from typing import Any

from edgerag.types import (
    AnswerDelta,
    AnswerDone,
    HitsFound,
    InstantAnswer,
    PlanMade,
    PromptReady,
    ThoughtDelta,
)
from edgerag.ui.tui.widgets.exchange import ExchangeView


async def show(exchange: ExchangeView, event: Any, *, loads_model: bool) -> bool:
    """Whether other sources are to be seen than before."""
    match event:
        case PlanMade():
            exchange.show_phase("Counting …" if event.plan.kind == "aggregate" else "Searching …")
        case HitsFound():
            exchange.show_phase(f"Found {len(event.hits)} passages …")
        case InstantAnswer():
            exchange.show_evidence(event.sentences)
            exchange.show_sources(event.sources)
            exchange.show_phase("Loading the model …" if loads_model else "")
            return True
        case PromptReady():
            exchange.show_sources(event.prompt.sources)
            count = len(event.prompt.sources)
            exchange.show_phase(f"Reading {count} {'source' if count == 1 else 'sources'} … (Esc stops)")
            return True
        case ThoughtDelta():
            exchange.add_thought(event.text)
        case AnswerDelta():
            exchange.add_text(event.text)
        case AnswerDone():
            await exchange.finish(event.answer)
            return True
    return False
