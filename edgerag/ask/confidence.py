"""When the keyword leg is sure of its best passage, so that the vector leg can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from edgerag.types import LegHit

# How far the second best hit must be below the best, as a share. Calibrated by bench/early_exit.py so that nDCG@10 of
# queries that are words alone loses 0.2 points at most.
LEAST_LEAD = 0.35


def is_confident(hits: Sequence[LegHit], *, term_count: int) -> bool:
    """``hits`` are those of the keyword leg, best first, for a query of so many content terms."""
    return term_count > 0 and lead_of(hits) >= LEAST_LEAD


def lead_of(hits: Sequence[LegHit]) -> float:
    """How far the second hit is below the first, as a share of it: 1 with no second, 0 with none at all."""
    if not hits or hits[0].score <= 0:
        return 0.0
    return 1 - hits[1].score / hits[0].score if len(hits) > 1 else 1.0
