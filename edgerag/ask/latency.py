"""The latency model: what an answer is expected to take, and how many sources and second looks fit into a time.

    L = a T_retrieve + b T_rerank + c T_generate + d I_cache_miss,   a + b + c + d = 1,   all at least 0

Each term is counted in units of its own mean over a window of answers, and so is L. On a machine that is always alike
the weights then are the shares of the mean answer; on one that is now busy and now idle a quick stage also tells how
busy it is, and weighs more. I_cache_miss is not 0 or 1 but how many tokens of the prompt had to be computed as no kept
state had them, which is what a miss costs. T_generate is without them.

Pure. The weights are found exactly: least squares on the simplex, by trying which of the four are zero. A forecast is
made of what is known before anything was searched: its error is told with it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from edgerag.types import Answer, Calibration, Forecast, Observation, Profile, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW = 200  # answers; older ones were of another library, another load, another season
FEWEST = 12  # of fewer the 95th percentile is a guess
_LONG_ANSWER_TOKENS = 512
_RETRIEVING = frozenset({"plan", "scan", "keyword", "embed", "vector", "fuse", "read", "select", "instant"})
_RERANKING = frozenset({"words", "rerank", "second_look"})
_GENERATING = frozenset({"prompt", "generate", "check"})
_READING = "first_token"
_TAIL = 0.95


def profile_of(*, broad: bool, answer_tokens: int) -> Profile:
    """``answer_tokens``: the most that it may have."""
    return "report" if broad or answer_tokens > _LONG_ANSWER_TOKENS else "chat"


def observation_of(answer: Answer, *, answer_tokens: int) -> Observation | None:
    """What one answer tells; None of one that no model wrote to its end. Loading models is no part of it."""
    if answer.prefill is None or answer.stop_reason not in ("end", "length"):
        return None
    seconds = {time.stage: time.seconds for time in answer.timings}

    def of(stages: frozenset[str]) -> float:
        return sum(seconds.get(stage, 0.0) for stage in stages)

    look = answer.trace.second_look if answer.trace is not None else None
    return Observation(
        profile=profile_of(broad=answer.plan is not None and answer.plan.broad, answer_tokens=answer_tokens),
        retrieve_s=of(_RETRIEVING),
        rerank_s=of(_RERANKING),
        read_s=seconds.get(_READING, 0.0),
        generate_s=of(_GENERATING),
        computed_tokens=answer.prefill.computed_tokens,
        prompt_tokens=answer.tokens.prompt,
        answer_tokens=answer.tokens.answer,
        source_count=len(answer.sources),
        looked_count=0 if look is None else look.read_count,
        total_s=of(_RETRIEVING) + of(_RERANKING) + of(_GENERATING) + seconds.get(_READING, 0.0),
    )


def calibrate(observations: Sequence[Observation], profile: Profile) -> Calibration | None:
    """Of the last WINDOW of that profile, oldest first; None of too few."""
    window = [each for each in observations if each.profile == profile][-WINDOW:]
    if len(window) < FEWEST:
        return None
    calibration = _fitted(window, profile)
    # Forecasts as they would have been made: each from the answers before it.
    forecasts = list(_online(window, profile))
    ratios = [seen / expected for seen, expected in forecasts]
    errors = [abs(seen - expected) / seen for seen, expected in forecasts if seen]
    return dataclasses.replace(
        calibration,
        tail=float(np.quantile(ratios, _TAIL)) if ratios else 1.0,
        error=median(errors) if errors else 1.0,
    )


def expected_s(
    calibration: Calibration, *, retrieve_s: float, rerank_s: float, generate_s: float, computed_tokens: float
) -> float:
    """L of these."""
    terms = (
        (calibration.weights.retrieve, retrieve_s, calibration.mean_retrieve_s),
        (calibration.weights.rerank, rerank_s, calibration.mean_rerank_s),
        (calibration.weights.generate, generate_s, calibration.mean_generate_s),
        (calibration.weights.cache_miss, computed_tokens, calibration.mean_computed_tokens),
    )
    return calibration.mean_total_s * sum(weight * value / mean for weight, value, mean in terms if mean)


def forecast(
    calibration: Calibration, *, source_count: int, looked_count: int = 0, computed_share: float | None = None
) -> Forecast:
    """Before anything was searched: an answer with so many sources, all else as usual. ``computed_share``: of the
    prompt, where that is not as usual."""
    share = calibration.computed_share if computed_share is None else computed_share
    prompt_tokens = calibration.other_tokens + source_count * calibration.source_tokens
    seconds = expected_s(
        calibration,
        retrieve_s=calibration.mean_retrieve_s,
        rerank_s=max(0.0, calibration.mean_rerank_s + calibration.looked_s * (looked_count - calibration.mean_looked)),
        generate_s=calibration.mean_generate_s,
        computed_tokens=share * prompt_tokens,
    )
    return Forecast(seconds, seconds * calibration.tail, calibration.error, source_count, looked_count)


def choose(calibration: Calibration, *, target_s: float, most_sources: int, most_looked: int) -> Forecast:
    """The most sources, and with them the most second looks, whose forecast stays within ``target_s`` in 95 of 100
    answers; one source and no look where nothing does."""
    for source_count in range(most_sources, 0, -1):
        for looked_count in range(most_looked, -1, -1):
            expected = forecast(calibration, source_count=source_count, looked_count=looked_count)
            if expected.p95_s <= target_s:
                return expected
    return forecast(calibration, source_count=1)


def simplex_weights(terms: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) weights w >= 0 with sum 1 that make ``terms`` (n, k) @ w nearest to ``target`` (n,), by least squares.

    Exact: for each choice of which weights are not zero the minimum on their plane is a linear system (Lagrange); the
    best one that has no negative weight is the minimum of the convex problem.
    """
    count = terms.shape[1]
    best, best_error = np.full(count, 1 / count), np.inf
    for size in range(1, count + 1):
        for chosen in itertools.combinations(range(count), size):
            part = terms[:, chosen]
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = 2 * part.T @ part
            system[:size, size] = system[size, :size] = 1.0
            solved = np.linalg.lstsq(system, np.append(2 * part.T @ target, 1.0), rcond=None)[0][:size]
            if solved.min() < -1e-9 or abs(solved.sum() - 1) > 1e-6:
                continue
            solved = np.clip(solved, 0.0, None)
            error = float(np.square(part @ solved - target).sum())
            if error < best_error - 1e-12:
                best, best_error = np.zeros(count), error
                best[list(chosen)] = solved
    weights: NDArray[np.float64] = best / best.sum()
    return weights


def _fitted(window: Sequence[Observation], profile: Profile) -> Calibration:
    columns = np.array([[o.retrieve_s, o.rerank_s, o.generate_s, float(o.computed_tokens)] for o in window])
    totals = np.array([o.total_s for o in window])
    means, mean_total = columns.mean(axis=0), float(totals.mean())
    there = means > 0
    weights = np.zeros(4)
    if mean_total > 0 and there.any():
        weights[there] = simplex_weights(columns[:, there] / means[there], totals / mean_total)
    source_tokens, other_tokens = _tokens_by_source(window)
    prompt_tokens = sum(o.prompt_tokens for o in window)
    looks = sum(o.looked_count for o in window)
    return Calibration(
        profile=profile,
        weights=Weights(*(round(float(weight), 6) for weight in weights)),
        mean_retrieve_s=float(means[0]),
        mean_rerank_s=float(means[1]),
        mean_generate_s=float(means[2]),
        mean_computed_tokens=float(means[3]),
        mean_total_s=mean_total,
        source_tokens=source_tokens,
        other_tokens=other_tokens,
        computed_share=sum(o.computed_tokens for o in window) / prompt_tokens if prompt_tokens else 1.0,
        looked_s=sum(o.rerank_s for o in window if o.looked_count) / looks if looks else 0.0,
        mean_looked=looks / len(window),
        tail=1.0,
        error=1.0,
        count=len(window),
    )


def _tokens_by_source(window: Sequence[Observation]) -> tuple[float, float]:
    """Tokens of the prompt for each source, and without any: a line through the window, or the mean by source where
    all had the same number."""
    counts = np.array([float(o.source_count) for o in window])
    tokens = np.array([float(o.prompt_tokens) for o in window])
    if np.ptp(counts) > 0:
        slope, intercept = np.polyfit(counts, tokens, 1)
        if slope > 0 and intercept >= 0:
            return float(slope), float(intercept)
    return float(tokens.mean() / max(1.0, counts.mean())), 0.0


def _online(window: Sequence[Observation], profile: Profile) -> Iterator[tuple[float, float]]:
    """(seen, expected) of each answer that has enough before it; what is expected is made of its number of sources
    and looks alone."""
    for place in range(FEWEST, len(window)):
        expected = forecast(
            _fitted(window[:place], profile),
            source_count=window[place].source_count,
            looked_count=window[place].looked_count,
        )
        if expected.seconds > 0:
            yield window[place].total_s, expected.seconds
