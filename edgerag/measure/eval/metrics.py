"""How good a ranking is. Pure; every figure is between 0 and 1, and 1 is best.

nDCG is that of trec_eval and BEIR: the gain is the grade itself, discounted by log2(rank + 1) (Järvelin and
Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from edgerag.measure.eval.matching import Ranking

RANKS = 10  # depth of MRR and nDCG
_HITS = (1, 5, 10)
_RECALLS = (5, 10, 20)


def ranking_figures(ranks: Ranking, grades: Sequence[float]) -> Mapping[str, float]:
    """All figures of one ranking by name; ``grades`` are those of the targets, by index."""
    return {
        **{f"hit@{k}": float(hit_at(ranks, k)) for k in _HITS},
        **{f"recall@{k}": recall_at(ranks, k, total=len(grades)) for k in _RECALLS},
        f"mrr@{RANKS}": reciprocal_rank(ranks, RANKS),
        f"ndcg@{RANKS}": ndcg(ranks, grades, RANKS),
    }


def first_rank(ranks: Ranking) -> int | None:
    """The rank, from 1, of the first that is relevant; None when there is none."""
    return next((rank for rank, met in enumerate(ranks, start=1) if met), None)


def hit_at(ranks: Ranking, k: int) -> bool:
    """Whether something relevant is among the first k."""
    return any(ranks[:k])


def recall_at(ranks: Ranking, k: int, *, total: int) -> float:
    """The share of what is relevant that is among the first k."""
    return len(frozenset().union(*ranks[:k])) / total if total else 0.0


def reciprocal_rank(ranks: Ranking, depth: int) -> float:
    """1 / rank of the first that is relevant, 0 beyond ``depth``."""
    rank = first_rank(ranks[:depth])
    return 0.0 if rank is None else 1.0 / rank


def ndcg(ranks: Ranking, grades: Sequence[float], depth: int) -> float:
    """Normalised discounted cumulative gain. What meets several targets at once gains the best grade of them."""
    gain = sum(
        max((grades[number] for number in met), default=0.0) / math.log2(rank + 1)
        for rank, met in enumerate(ranks[:depth], start=1)
    )
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(sorted(grades, reverse=True)[:depth], start=1))
    return gain / ideal if ideal else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of them do not exceed, of those that there are (nearest rank). 0 of none."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def mean(values: Sequence[float]) -> float:
    """0 of none."""
    return math.fsum(values) / len(values) if values else 0.0
