"""The tail of answer times, simulated from the times of the stages.

Each stage gets the distribution that describes it best: log-normal, gamma, or a mixture of two log-normals (a stage
that sometimes finds its state and sometimes has to compute it has two humps), chosen by Bayes' information criterion.
Stages are not independent: a long prompt is read long and answered long. Their ranks are tied by a Gaussian copula with
the correlation that was seen (Nelsen, An Introduction to Copulas, 2006, 5.1). Pure; drawn with a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgerag.types import Observation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Family = Literal["constant", "log-normal", "gamma", "two log-normals"]
STAGES = ("retrieve_s", "rerank_s", "read_s", "generate_s")
_DRAWN = 40_000
_SEED = 8
_EM_ROUNDS = 60
_LEAST_SIGMA = 1e-3  # of a log-normal: a narrower one is a point that swallows the likelihood
_LEAST_SHARE = 0.05  # of a hump
_FEWEST_FOR_TWO_HUMPS = 12  # values; the mixture has five parameters, and fits any fewer


@dataclass(frozen=True, slots=True)
class Fitted:
    """The distribution of one stage."""

    family: Family
    draw: Callable[[np.random.Generator, int], Array]  # (n,) seconds


@dataclass(frozen=True, slots=True)
class Tail:
    """``p95_s``: with the stages tied as they were seen; ``independent_p95_s``: as if they were not."""

    p95_s: float
    independent_p95_s: float
    families: tuple[Family, ...]  # by STAGES


def simulate(observations: Sequence[Observation], *, share: float = 0.95) -> Tail:
    """The time within which ``share`` of the answers are done. Raises ValueError for fewer than two."""
    if len(observations) < 2:
        raise ValueError(f"{len(observations)} answers have no distribution")
    columns = np.array([[getattr(each, stage) for stage in STAGES] for each in observations])
    random = np.random.default_rng(_SEED)
    fitted = [fit(columns[:, place]) for place in range(len(STAGES))]
    quantiles = np.stack([np.sort(one.draw(random, _DRAWN)) for one in fitted], axis=1)
    normal = random.standard_normal((_DRAWN, len(STAGES)))
    tied = normal @ _factor(_normal_correlation(columns)).T
    return Tail(
        p95_s=_total_quantile(quantiles, tied, share),
        independent_p95_s=_total_quantile(quantiles, normal, share),
        families=tuple(one.family for one in fitted),
    )


def fit(values: Array) -> Fitted:
    """The family with the least BIC. Values of 0 are kept as a share of their own."""
    positive = values[values > 0]
    if not len(positive) or np.ptp(positive) <= 1e-9 * positive.max():
        level = float(values.mean())
        return Fitted("constant", lambda _, count: np.full(count, level))
    candidates = [_log_normal(positive), _gamma(positive)]
    if len(positive) >= _FEWEST_FOR_TWO_HUMPS:
        candidates.append(_two_log_normals(positive))
    _, best = min(candidates, key=lambda candidate: candidate[0])
    zero_share = 1 - len(positive) / len(values)
    if not zero_share:
        return best

    def draw(random: np.random.Generator, count: int) -> Array:
        drawn = best.draw(random, count)
        drawn[random.random(count) < zero_share] = 0.0
        return drawn

    return Fitted(best.family, draw)


def _log_normal(values: Array) -> tuple[float, Fitted]:
    logs = np.log(values)
    mean, sigma = float(logs.mean()), max(_LEAST_SIGMA, float(logs.std()))
    likelihood = float((_log_normal_density(logs, mean, sigma) - logs).sum())
    return _bic(likelihood, 2, len(values)), Fitted(
        "log-normal", lambda random, count: np.exp(mean + sigma * random.standard_normal(count))
    )


def _gamma(values: Array) -> tuple[float, Fitted]:
    """By the closed form near the maximum likelihood (Minka, Estimating a Gamma distribution, 2002)."""
    mean = float(values.mean())
    s = max(1e-9, math.log(mean) - float(np.log(values).mean()))
    shape = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    scale = mean / shape
    likelihood = float(((shape - 1) * np.log(values) - values / scale).sum()) - len(values) * (
        math.lgamma(shape) + shape * math.log(scale)
    )
    return _bic(likelihood, 2, len(values)), Fitted("gamma", lambda random, count: random.gamma(shape, scale, count))


def _two_log_normals(values: Array) -> tuple[float, Fitted]:
    """By expectation and maximisation, begun at the widest gap between neighbours."""
    logs = np.sort(np.log(values))
    least = max(2, int(_LEAST_SHARE * len(logs)))
    gaps = np.diff(logs)[least - 1 : len(logs) - least]
    split = least + int(np.argmax(gaps))
    parts = (logs[:split], logs[split:])
    means = np.array([part.mean() for part in parts])
    sigmas = np.array([max(_LEAST_SIGMA, part.std()) for part in parts])
    shares = np.array([len(part) / len(logs) for part in parts])
    for _ in range(_EM_ROUNDS):
        weighted = np.log(shares) + _log_normal_density(logs[:, None], means, sigmas)
        belongs = np.exp(weighted - np.logaddexp.reduce(weighted, axis=1, keepdims=True))
        sums = belongs.sum(axis=0)
        if sums.min() < least:
            break
        shares, means = sums / len(logs), belongs.T @ logs / sums
        sigmas = np.sqrt((belongs * np.square(logs[:, None] - means)).sum(axis=0) / sums)
        sigmas = np.maximum(sigmas, _LEAST_SIGMA)
    weighted = np.log(shares) + _log_normal_density(logs[:, None], means, sigmas)
    likelihood = float((np.logaddexp.reduce(weighted, axis=1) - logs).sum())

    def draw(random: np.random.Generator, count: int) -> Array:
        hump = (random.random(count) >= shares[0]).astype(int)
        drawn: Array = np.exp(means[hump] + sigmas[hump] * random.standard_normal(count))
        return drawn

    return _bic(likelihood, 5, len(logs)), Fitted("two log-normals", draw)


def _log_normal_density(logs: Array, mean: float | Array, sigma: float | Array) -> Array:
    """Of the logarithms, without the change of variable."""
    density: Array = -np.square((logs - mean) / sigma) / 2 - np.log(sigma) - math.log(2 * math.pi) / 2
    return density


def _bic(likelihood: float, parameters: int, count: int) -> float:
    return parameters * math.log(count) - 2 * likelihood


def _ranks(values: Array) -> Array:
    """0 to n - 1; equal values share the mean of their places."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Array = (last - (counts + 1) / 2)[place]
    return ranks


def _normal_correlation(columns: Array) -> Array:
    """That of the normal variables behind the ranks: 2 sin(pi rho / 6) of Spearman's rho."""
    ranks = np.stack([_ranks(columns[:, place]) for place in range(columns.shape[1])], axis=1)
    spread = ranks.std(axis=0)
    tied = np.eye(columns.shape[1])
    for one, other in np.ndindex(tied.shape):
        if one != other and spread[one] > 0 and spread[other] > 0:
            rho = float(((ranks[:, one] - ranks[:, one].mean()) * (ranks[:, other] - ranks[:, other].mean())).mean())
            tied[one, other] = 2 * math.sin(math.pi * rho / (spread[one] * spread[other]) / 6)
    return tied


def _factor(correlation: Array) -> Array:
    """F with F F' = the nearest correlation that there can be."""
    values, vectors = np.linalg.eigh(correlation)
    factor = vectors * np.sqrt(np.clip(values, 1e-9, None))
    normed: Array = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    return normed


def _total_quantile(quantiles: Array, normal: Array, share: float) -> float:
    """Of the sum, where the ranks of ``normal`` pick from the sorted ``quantiles`` of each stage."""
    ranks = np.argsort(np.argsort(normal, axis=0), axis=0)
    return float(np.quantile(np.take_along_axis(quantiles, ranks, axis=0).sum(axis=1), share))
