"""Whether one run is better than another, or only luckier with its questions. Pure; the same seed, the same result.

Both runs answered the same questions, so that differences are looked at question by question: a randomisation test
(each difference might as well have had the other sign; Smucker, Allan and Carterette 2007, "A comparison of statistical
significance tests for information retrieval evaluation") and a bootstrap interval of the mean difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROUNDS = 10_000  # a p of 0.05 is then known to within 0.004
_AT_ONCE = 500  # rounds, so that some thousand questions fit into some megabytes


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second run is better by, on average over ``count`` questions. ``low`` to ``high`` holds 95 % of what
    other such questions would give."""

    count: int
    mean: float
    low: float
    high: float
    p: float  # two-sided: how often chance alone makes a difference as large
    better: int  # questions
    worse: int


def paired(first: Sequence[float], second: Sequence[float], *, seed: int) -> Difference:
    """Compares the figures of two runs, question by question. Raises ValueError if there are none, or not pairs."""
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} figures are no pairs")
    random = np.random.default_rng(seed)
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    count = len(differences)
    observed = abs(float(differences.sum()))
    changed = differences[differences != 0]  # the others have no sign to change
    extreme, means = 0, []
    for start in range(0, ROUNDS, _AT_ONCE):
        rounds = min(_AT_ONCE, ROUNDS - start)
        signs = random.integers(0, 2, (rounds, len(changed)), dtype=np.int8) * 2.0 - 1.0
        # Sums that are equal but for rounding are equal.
        extreme += int((np.abs(signs @ changed) >= observed - 1e-9).sum())
        means.append(differences[random.integers(0, count, (rounds, count))].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Difference(
        count=count,
        mean=float(differences.mean()),
        low=float(low),
        high=float(high),
        # The order that was observed is one of those possible (Phipson and Smyth 2010): never 0.
        p=(extreme + 1) / (ROUNDS + 1),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values as they count when so many are looked at together (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, number in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[number]))
        adjusted[number] = highest
    return adjusted
