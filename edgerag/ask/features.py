"""What can be told of a passage found for a question, as numbers: what the reranker looks at.

Everything is at hand once both legs have run: the words of question and passage (BM25 with its parts, which words stand
near each other, title and headings), their vectors, where they lie in the latent space of the library's words
(index/latent_space.py), and the other passages found (a passage like many good ones is
better than its own words say; pseudo-relevance feedback, Lavrenko and Croft 2001, and the cluster hypothesis). Pure,
and the same each time; with a vector missing, what it would tell is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.ask.word_features import word_columns
from edgerag.types import LatentEvidence, Scores, WordEvidence

if TYPE_CHECKING:
    from edgerag.types import Vectors

Matrix = NDArray[np.float32]

# What each of three ways to be alike tells of a passage: by vectors, in the latent space, and by both.
_OF_OTHERS = (
    "feedback_nearness", "neighbours", "walk", "latent_feedback", "latent_neighbours", "latent_walk",
    "both_feedback", "both_neighbours", "both_walk",
)  # fmt: skip
# Of each passage. The order is that of the columns, which the weights of the reranker are for.
PASSAGE = (
    "bm25", "bm25_flat", "bm25_body", "covered", "covered_by_title", "covered_by_headings", "pairs_in_order",
    "pairs_near", "best_window", "first_place", "density", "length", "has_rarest", "rarest_missing", "covered_softly",
    "feedback", "nearness", "keyword_rank", "vector_rank", "keyword_share", "exact", "by_keyword", "by_vector",
    "is_embedded", "fused", "bm25_below_best", "covered_below_best", "nearness_below_best", "nearness_spread",
    "feedback_below_best", "latent", "latent_below_best", "latent_spread", "latent_rank", "nearness_rank", "bm25_rank",
    "agreed", "agreed_below_best", *_OF_OTHERS, *(f"{name}_spread" for name in _OF_OTHERS),
)  # fmt: skip
# Of the question, the same in every row. How level the candidates are tells whether one passage is meant or many.
QUESTION = (
    "terms", "mean_idf", "has_vector", "best_nearness", "best_covered", "best_bm25", "has_latent", "best_latent",
    "mean_covered", "mean_nearness", "mean_latent", "mean_window", "mean_feedback", "mean_bm25_below_best",
    "deviation_of_bm25", "deviation_of_nearness", "deviation_of_latent",
)  # fmt: skip
NAMES = PASSAGE + QUESTION

_RANK_CONSTANT = 5
_NEIGHBOURS, _NEIGHBOUR_POWER = 8, 4
_WALK_STEPS, _WALK_SHARE, _WALK_SHARPNESS = 3, 0.5, 6.0


@dataclass(frozen=True, slots=True)
class Nearness:
    """The vectors of passages by chunk id, (dim,) of unit length, and of the question; ``background`` is the cosine
    that it has with any passage (background.py)."""

    question: Vectors
    passages: Mapping[int, Vectors]
    background: float


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate: what the legs and their fusion say of it."""

    chunk_id: int
    scores: Scores
    exact: bool


def features(
    found: Sequence[Found], *, words: WordEvidence, nearness: Nearness | None, latent: LatentEvidence | None
) -> Matrix:
    """(n, len(NAMES)) for n candidates that all have words. ``nearness`` is None where no vector says anything,
    ``latent`` where no library has a latent space; it is in the order of ``found``."""
    if not found:
        return np.zeros((0, len(NAMES)), dtype=np.float32)
    own = word_columns(words, [(each.chunk_id, each.scores.fused) for each in found])
    cosine, is_embedded, alike = _of_vectors(found, nearness)
    best_keyword = _best_keyword(found)
    legs = np.array([_of_legs(each, best_keyword=best_keyword) for each in found], dtype=np.float64)
    bm25, covered, feedback = own.bm25, own.covered, own.feedback
    near, latent_alike = _of_latent(len(found), latent)
    near_spread, cosine_spread = _spread(near), _spread(cosine)
    agreed = near_spread + cosine_spread + _spread(bm25)
    both_alike = np.maximum(alike, 0.0) + np.maximum(latent_alike, 0.0)
    others = _of_others(np.stack([alike, latent_alike, both_alike]), fused=legs[:, 6], worth=agreed / 3)
    columns = [
        *own.columns(),
        cosine,
        legs[:, :6],
        is_embedded,
        legs[:, 6],
        bm25 - bm25.max(),
        covered - covered.max(),
        cosine - cosine.max(),
        cosine_spread,
        feedback - feedback.max(),
        near,
        near - near.max(),
        near_spread,
        _rank_share(near),
        _rank_share(cosine),
        _rank_share(bm25),
        agreed,
        agreed - agreed.max(),
        *others,
        *_spread(others),
    ]
    question = [
        len(words.terms) / 10,
        (sum(term.idf for term in words.terms) or 1.0) / max(1, len(words.terms)) / 5,
        float(nearness is not None),
        cosine.max(),
        covered.max(),
        bm25.max(),
        float(latent is not None),
        near.max(),
        covered.mean(),
        cosine.mean(),
        near.mean(),
        own.best_window.mean(),
        feedback.mean(),
        bm25.mean() - bm25.max(),
        bm25.std(),
        cosine.std(),
        near.std(),
    ]
    rows = np.column_stack([*columns, np.tile(question, (len(found), 1))]).astype(np.float32)
    assert rows.shape[1] == len(NAMES)
    return rows


def _best_keyword(found: Sequence[Found]) -> float:
    return max((each.scores.keyword or 0.0 for each in found), default=0.0) or 1.0


def _of_legs(each: Found, *, best_keyword: float) -> tuple[float, ...]:
    scores = each.scores
    return (
        _RANK_CONSTANT / (_RANK_CONSTANT + scores.keyword_rank - 1) if scores.keyword_rank else 0.0,
        _RANK_CONSTANT / (_RANK_CONSTANT + scores.vector_rank - 1) if scores.vector_rank else 0.0,
        (scores.keyword or 0.0) / best_keyword,
        float(each.exact),
        float(scores.keyword_rank is not None),
        float(scores.vector_rank is not None),
        60 * scores.fused,
    )


def _of_vectors(
    found: Sequence[Found], nearness: Nearness | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(n,) how much nearer each is than any passage, 1 being the question itself; (n,) whether it has a vector; and
    (n, n) the same of the candidates among themselves. Without vectors all of it is 0."""
    count = len(found)
    if nearness is None:
        return np.zeros(count), np.zeros(count), np.zeros((count, count))
    dimension = len(nearness.question)
    missing = np.zeros(dimension, dtype=np.float32)
    vectors = np.stack([nearness.passages.get(each.chunk_id, missing) for each in found]).astype(np.float64)
    is_embedded = np.array([each.chunk_id in nearness.passages for each in found], dtype=np.float64)
    spread = max(1e-6, 1.0 - nearness.background)
    cosine = is_embedded * (vectors @ nearness.question.astype(np.float64) - nearness.background) / spread
    alike = (vectors @ vectors.T - nearness.background) / spread
    alike *= np.outer(is_embedded, is_embedded)
    np.fill_diagonal(alike, 0.0)
    return cosine, is_embedded, alike


def _of_latent(count: int, latent: LatentEvidence | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) how near each is to the question in its library's latent space, and (n, n) to each other."""
    if latent is None:
        return np.zeros(count), np.zeros((count, count))
    return latent.cosines.astype(np.float64), latent.alike.astype(np.float64)


def _rank_share(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 for the highest, and less the further down one stands; equal ones in their order."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return _RANK_CONSTANT / (_RANK_CONSTANT + ranks)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each is above the mean of its row, in standard deviations."""
    mean, deviation = values.mean(axis=-1, keepdims=True), values.std(axis=-1, keepdims=True)
    spread: NDArray[np.float64] = (values - mean) / (deviation + 1e-6)
    return spread


def _of_others(
    alike: NDArray[np.float64], *, fused: NDArray[np.float64], worth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(3 k, n), for each of k ways to be alike three columns: how alike each of n is to the best, what those like it
    are worth, and where a walk from one to those like it comes by most often. ``alike`` is (k, n, n) with 0 for
    themselves; where nothing is alike all is 0."""
    ways, count = len(alike), len(fused)
    best = np.argsort(-fused, kind="stable")[:_RANK_CONSTANT]
    feedback = alike[:, :, best].mean(axis=2)
    near = np.maximum(alike, 0.0) ** _NEIGHBOUR_POWER
    size = min(_NEIGHBOURS, count - 1)
    nearest = np.argsort(-near, axis=2, kind="stable")[:, :, :size]
    weights = np.take_along_axis(near, nearest, axis=2)
    neighbours = (weights * worth[nearest]).sum(axis=2) / (weights.sum(axis=2) + 1e-6)
    start = np.exp(_WALK_SHARPNESS * (worth - worth.max()))
    start /= start.sum()
    steps = (near / (near.sum(axis=2, keepdims=True) + 1e-6)).transpose(0, 2, 1)
    share = np.broadcast_to(start[:, None], (ways, count, 1))
    for _ in range(_WALK_STEPS):
        share = _WALK_SHARE * start[:, None] + (1 - _WALK_SHARE) * (steps @ share)
    walk = np.log(share[:, :, 0] + 1e-6)
    walk -= walk.max(axis=1, keepdims=True)
    columns = np.stack([feedback, neighbours, walk], axis=1)  # (k, 3, n)
    columns[~alike.any(axis=(1, 2))] = 0.0
    return columns.reshape(3 * ways, count)
