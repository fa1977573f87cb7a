"""Faster, slower, or no difference that the noise allows to see.

Within a run two ways were measured by turns: what counts are the ratios of neighbours. That their middle is not one by
chance is told by turning each ratio over or not in every combination (the sign-flip test, exact up to 2^14).

Two runs of a bench were made at different times. That their values differ by more than chance is told by dealing
them out anew to both (a permutation test of the mean rank, exact where there are few). That is not enough: the machine
itself may have been slower. So a difference counts only beyond what the yardstick moved, and only if it is there both
in the values and in the values measured by the yardstick. Of many comparisons some would look real by chance: the
bounds are those of Holm (Scandinavian Journal of Statistics 6, 1979). Pure; drawn with a fixed seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edgerag.measure.field.series import FEWEST_ROUNDS, Series

Word = Literal["faster", "slower", "no difference that the noise allows to see", "not compared"]
NO_DIFFERENCE: Word = "no difference that the noise allows to see"
LEAST_DIFFERENCE = 0.03  # a smaller one is not worth a word, however sure it is
LEVEL = 0.05
_MOST_EXACT = 14  # flips: 16,384 combinations
_DRAWN = 4_000
_SEED = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """``ratio``: how many times as fast (or as much per second), above 1 is better; with the bounds between which it
    lies in 95 of 100 cases, by drawing the runs again."""

    word: Word
    ratio: float
    low: float
    high: float
    chance: float  # that a difference like this comes about by chance
    why: str = ""  # it was not compared, or a difference does not count

    def record(self) -> dict[str, Any]:
        return {
            "verdict": self.word,
            "ratio": round(self.ratio, 3),
            "low": round(self.low, 3),
            "high": round(self.high, 3),
            "chance": round(self.chance, 5),
            "why": self.why,
        }


def by_turns(way: Series, other: Series) -> Verdict:
    """How ``way`` stands to ``other``, measured by turns in one run."""
    count = min(len(way.runs), len(other.runs))
    if count < 1:
        return Verdict("not compared", 1.0, 1.0, 1.0, 1.0, "Nothing was measured.")
    gains = _gains(way.runs[:count], other.runs[:count], better=way.better)
    middle, low, high = _middle(gains)
    if count < FEWEST_ROUNDS:
        why = f"Only {count} rounds: {FEWEST_ROUNDS} are the fewest that tell."
        return Verdict("not compared", middle, low, high, 1.0, why)
    chance = _flipped(np.log(gains))
    # By the mean of the ratios and by their median: one round that something else spoiled must not make a difference.
    is_sure = chance <= LEVEL and not low <= 1 <= high
    return Verdict(_word(math.log(middle), is_sure, LEAST_DIFFERENCE), middle, low, high, chance)


def between_runs(now: Sequence[Series], before: Sequence[Series]) -> dict[str, Verdict]:
    """How each series of ``now`` stands to the one of its name of ``before``."""
    earlier = {series.name: series for series in before}
    pairs = [(series, earlier[series.name]) for series in now if series.name in earlier]
    found = {series.name: _between(series, other) for series, other in pairs}
    # The clearest has to be clearer than by chance among all, the next among all but one, ...
    ranked = sorted(found, key=lambda name: found[name].chance)
    verdicts, open_to_doubt = {}, False
    for place, name in enumerate(ranked):
        open_to_doubt = open_to_doubt or found[name].chance > LEVEL / (len(ranked) - place)
        verdict = found[name]
        if open_to_doubt and verdict.word in ("faster", "slower"):
            why = "A difference like this comes about by chance among so many comparisons."
            verdict = Verdict(NO_DIFFERENCE, verdict.ratio, verdict.low, verdict.high, verdict.chance, why)
        verdicts[name] = verdict
    return {series.name: verdicts[series.name] for series, _ in pairs}


def _between(now: Series, before: Series) -> Verdict:
    if (now.unit, now.better) != (before.unit, before.better):
        return Verdict("not compared", 1.0, 1.0, 1.0, 1.0, "It was measured in another unit then.")
    ratio, low, high = _ratio_of_medians(now.runs, before.runs, better=now.better)
    if min(len(now.runs), len(before.runs)) < FEWEST_ROUNDS:
        why = f"Fewer than {FEWEST_ROUNDS} runs: they do not tell."
        return Verdict("not compared", ratio, low, high, 1.0, why)
    chance = _dealt(now.runs, before.runs)
    moved = 0.0
    if now.yardstick_s and before.yardstick_s:
        moved = abs(math.log(float(np.median(now.yardstick_s)) / float(np.median(before.yardstick_s))))
    word = _word(math.log(ratio), chance <= LEVEL, max(LEAST_DIFFERENCE, moved))
    why = ""
    if word == NO_DIFFERENCE and chance <= LEVEL and abs(math.log(ratio)) >= LEAST_DIFFERENCE:
        why = f"The machine itself was {math.expm1(moved):.0%} faster or slower than then."
    elif word != NO_DIFFERENCE and now.yardstick_s and before.yardstick_s:
        scaled = _dealt(_scaled(now), _scaled(before))
        level, _, _ = _ratio_of_medians(_scaled(now), _scaled(before), better=now.better)
        if scaled > LEVEL or (level > 1) != (ratio > 1):
            word, why = NO_DIFFERENCE, "Beside the fixed work measured with it there is no difference."
        chance = max(chance, scaled)
    return Verdict(word, ratio, low, high, chance, why)


def _word(log_ratio: float, is_sure: bool, least: float) -> Word:
    if not is_sure or abs(log_ratio) < math.log1p(least):
        return NO_DIFFERENCE
    return "faster" if log_ratio > 0 else "slower"


def _gains(runs: Sequence[float], others: Sequence[float], *, better: str) -> list[float]:
    pairs = zip(runs, others, strict=True)
    return [one / other if better == "more" else other / one for one, other in pairs]


def _scaled(series: Series) -> list[float]:
    """The values in yardsticks: a machine that is slower by the same share gives the same."""
    factors = series.yardstick_s
    if series.better == "less":
        return [value / beside for value, beside in zip(series.runs, factors, strict=False)]
    return [value * beside for value, beside in zip(series.runs, factors, strict=False)]


def _middle(gains: Sequence[float]) -> tuple[float, float, float]:
    """The median of ratios, and the bounds of it by drawing the rounds again."""
    logs = np.log(gains)
    drawn = np.random.default_rng(_SEED).integers(0, len(logs), (_DRAWN, len(logs)))
    medians = np.median(logs[drawn], axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return math.exp(float(np.median(logs))), math.exp(float(low)), math.exp(float(high))


def _ratio_of_medians(runs: Sequence[float], others: Sequence[float], *, better: str) -> tuple[float, float, float]:
    random = np.random.default_rng(_SEED)
    logs, other_logs = np.log(runs), np.log(others)
    sign = 1 if better == "more" else -1

    def medians(values: Any) -> Any:
        return np.median(values[random.integers(0, len(values), (_DRAWN, len(values)))], axis=1)

    differences = sign * (medians(logs) - medians(other_logs))
    middle = sign * float(np.median(logs) - np.median(other_logs))
    low, high = np.quantile(differences, (0.025, 0.975))
    return math.exp(middle), math.exp(float(low)), math.exp(float(high))


def _flipped(logs: Any) -> float:
    """The share of all ways to turn the ratios over that give as large a sum."""
    count = len(logs)
    if count <= _MOST_EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=count)))
    else:
        signs = np.random.default_rng(_SEED).choice((1.0, -1.0), (_DRAWN, count))
        signs[0] = 1.0  # as it was
    sums = np.abs(signs @ logs)
    return float(np.mean(sums >= abs(float(logs.sum())) - 1e-12))


def _dealt(runs: Sequence[float], others: Sequence[float]) -> float:
    """The share of all ways to deal the values out to both that set their mean ranks as far apart."""
    values = np.concatenate([runs, others])
    ranks = np.array([np.mean(np.flatnonzero(np.sort(values) == value)) for value in values])
    first, count = len(runs), len(values)
    mean = ranks.mean()
    seen = abs(float(ranks[:first].mean() - mean))
    if math.comb(count, first) <= _DRAWN:
        picks = np.array(list(itertools.combinations(range(count), first)))
    else:
        random = np.random.default_rng(_SEED)
        picks = np.array([random.permutation(count)[:first] for _ in range(_DRAWN)])
        picks[0] = np.arange(first)  # as it was
    apart = np.abs(ranks[picks].mean(axis=1) - mean)
    return float(np.mean(apart >= seen - 1e-12))
