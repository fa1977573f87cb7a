"""What can be told of a passage found for a question, as numbers: what the reranker looks at.

Everything is at hand once both legs have run: the words of question and passage (BM25 with its parts, which words stand
near each other, title and headings), their vectors, where they lie in the latent space of the library's words
(index/latent_space.py), and the other passages found (a passage like many good ones is
better than its own words say; pseudo-relevance feedback, Lavrenko and Croft 2001, and the cluster hypothesis). Pure,
and the same each time; with a vector missing, what it would tell is 0.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.types import AskedTerm, LatentEvidence, PassageWords, Scores, WordEvidence

if TYPE_CHECKING:
    from edgerag.types import Vectors

Matrix = NDArray[np.float32]

# Of each passage. The order is that of the columns, which the weights of the reranker are for.
PASSAGE = (
    "bm25", "bm25_flat", "bm25_body", "covered", "covered_by_title", "covered_by_headings", "pairs_in_order",
    "pairs_near", "best_window", "first_place", "density", "length", "has_rarest", "rarest_missing", "covered_softly",
    "feedback", "nearness", "keyword_rank", "vector_rank", "keyword_share", "exact", "by_keyword", "by_vector",
    "is_embedded", "fused", "bm25_below_best", "covered_below_best", "nearness_below_best", "nearness_spread",
    "feedback_below_best", "feedback_nearness", "neighbours", "walk", "latent", "latent_below_best", "latent_spread",
    "latent_feedback", "latent_rank", "nearness_rank", "bm25_rank", "agreed", "agreed_below_best",
)  # fmt: skip
# Of the question, the same in every row. How level the candidates are tells whether one passage is meant or many.
QUESTION = (
    "terms", "mean_idf", "has_vector", "best_nearness", "best_covered", "best_bm25", "has_latent", "best_latent",
    "mean_covered", "mean_nearness", "mean_latent", "mean_window", "mean_feedback", "mean_bm25_below_best",
    "deviation_of_bm25", "deviation_of_nearness", "deviation_of_latent",
)  # fmt: skip
NAMES = PASSAGE + QUESTION

_TITLE_WEIGHT = 1.5  # as the keyword leg weighs the columns
_K1, _B = 1.2, 0.75
_FLAT_K1, _FLAT_B = 0.9, 0.4  # other constants suit short and long passages
_WINDOW_WORDS = 24  # about a sentence
_NEAR_WORDS = 8
_RANK_CONSTANT = 5
_FEEDBACK_PASSAGES, _FEEDBACK_WORDS = 8, 20
_NEIGHBOURS, _NEIGHBOUR_POWER = 8, 4
_WALK_STEPS, _WALK_SHARE, _WALK_SHARPNESS = 3, 0.5, 6.0
_LEAST_PART = 4  # letters of a word that is looked for inside others
_STEM = 5  # letters that words of one family begin with
_PART_SHARE, _STEM_SHARE, _PHRASE_SHARE = 0.7, 0.4, 0.6


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
    asked = _Asked(words.terms)
    passages = [words.passages[each.chunk_id] for each in found]
    bags = [Counter((*passage.body, *passage.title)) for passage in passages]
    expansion = _feedback_words(found, passages, bags, asked.words, mean_words=words.mean_words)
    own = np.array(
        [
            _of_words(passage, bag, asked, expansion, mean_words=words.mean_words)
            for passage, bag in zip(passages, bags, strict=True)
        ],
        dtype=np.float64,
    )
    cosine, is_embedded, alike = _of_vectors(found, nearness)
    best_keyword = _best_keyword(found)
    legs = np.array([_of_legs(each, best_keyword=best_keyword) for each in found], dtype=np.float64)
    bm25, covered, window, feedback = own[:, 0], own[:, 3], own[:, 8], own[:, 15]
    near, latent_feedback = _of_latent(legs[:, 6], latent)
    base = bm25 / max(bm25.max(), 1e-6) + cosine / max(cosine.max(), 1e-6)
    agreed = _spread(near) + _spread(cosine) + _spread(bm25)
    columns = [
        own,
        cosine,
        legs[:, :6],
        is_embedded,
        legs[:, 6],
        bm25 - bm25.max(),
        covered - covered.max(),
        cosine - cosine.max(),
        _spread(cosine),
        feedback - feedback.max(),
        *_of_others(legs[:, 6], alike, base),
        near,
        near - near.max(),
        _spread(near),
        latent_feedback,
        _rank_share(near),
        _rank_share(cosine),
        _rank_share(bm25),
        agreed,
        agreed - agreed.max(),
    ]
    question = [
        len(words.terms) / 10,
        asked.weight / max(1, len(words.terms)) / 5,
        float(nearness is not None),
        cosine.max(),
        covered.max(),
        bm25.max(),
        float(latent is not None),
        near.max(),
        covered.mean(),
        cosine.mean(),
        near.mean(),
        window.mean(),
        feedback.mean(),
        bm25.mean() - bm25.max(),
        bm25.std(),
        cosine.std(),
        near.std(),
    ]
    rows = np.column_stack([*columns, np.tile(question, (len(found), 1))]).astype(np.float32)
    assert rows.shape[1] == len(NAMES)
    return rows


def word_shares(words: WordEvidence, chunk_id: int) -> tuple[float, float]:
    """The columns "covered_softly" and "best_window" of one passage."""
    asked, passage = _Asked(words.terms), words.passages[chunk_id]
    places = asked.places(passage.body)
    held = {number for part in (passage.body, passage.title, passage.headings) for _, number in asked.places(part)}
    present = Counter((*passage.body, *passage.title))
    return _covered_softly(asked, held, present) / asked.weight, _best_window(places, asked.idf) / asked.weight


class _Asked:
    """The terms of a question, to be found in a row of words."""

    def __init__(self, terms: Sequence[AskedTerm]) -> None:
        self.terms = terms
        self.idf = [term.idf for term in terms]
        self.weight = sum(self.idf) or 1.0
        self.single: dict[str, int] = {}
        self.rows: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)  # by their first word
        for number, term in enumerate(terms):
            for form in term.forms:
                if len(form) == 1:
                    self.single.setdefault(form[0], number)
                else:
                    self.rows[form[0]].append((number, form))
        self.words = frozenset(word for term in terms for form in term.forms for word in form)

    def places(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """(place, number of the term) of every occurrence, in order."""
        single = self.single
        places = [(place, single[word]) for place, word in enumerate(words) if word in single]
        if self.rows:
            for place, word in enumerate(words):
                for number, form in self.rows.get(word, ()):
                    if tuple(words[place : place + len(form)]) == form:
                        places.append((place, number))
            places.sort()
        return places


def _of_words(
    passage: PassageWords,
    present: Mapping[str, int],
    asked: _Asked,
    expansion: Mapping[str, float],
    *,
    mean_words: float,
) -> tuple[float, ...]:
    """The first sixteen columns of PASSAGE. ``present`` are the words of its body and title."""
    idf, weight = asked.idf, asked.weight
    places = asked.places(passage.body)
    in_body = _counted(places)
    in_title = _counted(asked.places(passage.title))
    in_headings = _counted(asked.places(passage.headings))
    held = in_body.keys() | in_title.keys() | in_headings.keys()
    body_words = len(passage.body)
    all_words = body_words + len(passage.title) + len(passage.headings)
    damping = _K1 * (1 - _B + _B * all_words / mean_words)
    flat_damping = _FLAT_K1 * (1 - _FLAT_B + _FLAT_B * all_words / mean_words)
    body_damping = _K1 * (1 - _B + _B * body_words / mean_words)
    bm25 = flat = body = 0.0
    for number in held:
        times = in_body.get(number, 0) + _TITLE_WEIGHT * (in_title.get(number, 0) + in_headings.get(number, 0))
        bm25 += idf[number] * times / (times + damping)
        flat += idf[number] * times / (times + flat_damping)
    for number, times in in_body.items():
        body += idf[number] * times / (times + body_damping)
    in_order, near = _pairs(places, asked)
    missing = [idf[number] for number in range(len(idf)) if number not in held]
    highest = max(idf, default=0.0)
    return (
        bm25 * (_K1 + 1) / weight,
        flat * (_FLAT_K1 + 1) / weight,
        body * (_K1 + 1) / weight,
        sum(idf[number] for number in held) / weight,
        sum(idf[number] for number in in_title) / weight,
        sum(idf[number] for number in in_headings) / weight,
        in_order,
        near,
        _best_window(places, idf) / weight,
        places[0][0] / max(1, body_words) if places else 1.0,
        10 * len(places) / max(1, body_words),
        math.log1p(body_words) / 5,
        float(bool(idf) and idf.index(highest) in held),
        max(missing, default=0.0) / highest if highest else 1.0,
        _covered_softly(asked, held, present) / weight,
        sum(
            share * times / (times + damping) * (_K1 + 1)
            for word, share in expansion.items()
            if (times := present.get(word, 0))
        ),
    )


def _counted(places: Sequence[tuple[int, int]]) -> dict[int, int]:
    """How often each term stands there."""
    counts: dict[int, int] = {}
    for _, number in places:
        counts[number] = counts.get(number, 0) + 1
    return counts


def _pairs(places: Sequence[tuple[int, int]], asked: _Asked) -> tuple[float, float]:
    """The share of neighbouring terms of the question that stand in a row, and that stand near each other."""
    if len(asked.idf) < 2:
        return 0.0, 0.0
    where: dict[int, list[int]] = defaultdict(list)
    for place, number in places:
        where[number].append(place)
    in_order = near = total = 0.0
    for number in range(len(asked.idf) - 1):
        weight = asked.idf[number] + asked.idf[number + 1]
        total += weight
        if number in where and number + 1 in where:
            gaps = [second - first for first in where[number] for second in where[number + 1]]
            in_order += weight * any(0 < gap <= 2 for gap in gaps)
            near += weight * any(abs(gap) <= _NEAR_WORDS for gap in gaps)
    return (in_order / total, near / total) if total else (0.0, 0.0)


def _best_window(places: Sequence[tuple[int, int]], idf: Sequence[float]) -> float:
    """The weight of the different terms in the run of words that has most of it."""
    best = held = 0.0
    first = 0
    counts: dict[int, int] = defaultdict(int)
    for place, number in places:
        if counts[number] == 0:
            held += idf[number]
        counts[number] += 1
        while places[first][0] <= place - _WINDOW_WORDS:
            left = places[first][1]
            counts[left] -= 1
            if counts[left] == 0:
                held -= idf[left]
            first += 1
        best = max(best, held)
    return best


def _covered_softly(asked: _Asked, held: Collection[int], present: Mapping[str, int]) -> float:
    """The weight of the terms, those that stand only inside another word or in part for a share of it."""
    covered = 0.0
    joined = ""
    for number, term in enumerate(asked.terms):
        if number in held:
            covered += term.idf
            continue
        joined = joined or " ".join(present)
        covered += term.idf * max((_share(form, present, joined) for form in term.forms), default=0.0)
    return covered


def _share(form: tuple[str, ...], present: Mapping[str, int], joined: str) -> float:
    if len(form) > 1:
        return _PHRASE_SHARE * sum(word in present for word in form) / len(form)
    word = form[0]
    if len(word) >= _LEAST_PART and word in joined:
        return _PART_SHARE
    return _STEM_SHARE if len(word) > _STEM and f" {word[:_STEM]}" in joined else 0.0


def _feedback_words(
    found: Sequence[Found],
    passages: Sequence[PassageWords],
    bags: Sequence[Mapping[str, int]],
    asked: Collection[str],
    *,
    mean_words: float,
) -> dict[str, float]:
    """Words that the best candidates have in common and the others have not, with their shares of 1."""
    holders = Counter(chain.from_iterable(bags))
    best = sorted(range(len(found)), key=lambda n: (-found[n].scores.fused, found[n].chunk_id))[:_FEEDBACK_PASSAGES]
    trust = sum(found[n].scores.fused for n in best) or 1.0
    weights: dict[str, float] = defaultdict(float)
    for n in best:
        share = found[n].scores.fused / trust / max(1.0, len(passages[n].body), mean_words / 4)
        for word, times in bags[n].items():
            if word not in asked:
                weights[word] += share * times * math.log(1 + len(passages) / holders[word])
    chosen = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_FEEDBACK_WORDS]
    total = sum(weight for _, weight in chosen) or 1.0
    return {word: weight / total for word, weight in chosen}


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
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """(n,) how much nearer each is than any passage, 1 being the question itself; (n,) whether it has a vector; and
    (n, n) the cosines of the candidates, None without vectors."""
    count = len(found)
    if nearness is None:
        return np.zeros(count), np.zeros(count), None
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


def _of_latent(
    fused: NDArray[np.float64], latent: LatentEvidence | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) how near each is to the question in its library's latent space, and to the best."""
    if latent is None:
        return np.zeros(len(fused)), np.zeros(len(fused))
    best = np.argsort(-fused, kind="stable")[:_RANK_CONSTANT]
    return latent.cosines.astype(np.float64), latent.alike[:, best].mean(axis=1).astype(np.float64)


def _rank_share(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 for the highest, and less the further down one stands; equal ones in their order."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return _RANK_CONSTANT / (_RANK_CONSTANT + ranks)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each is above their mean, in standard deviations."""
    spread: NDArray[np.float64] = (values - values.mean()) / (values.std() + 1e-6)
    return spread


def _of_others(
    fused: NDArray[np.float64], alike: NDArray[np.float64] | None, base: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Three columns of PASSAGE: how alike each is to the best, what those like it are worth, and where a walk
    from one to those like it comes by most often."""
    count = len(base)
    if alike is None or count < 2:
        return np.zeros(count), np.zeros(count), np.zeros(count)
    best = np.argsort(-fused, kind="stable")[:_RANK_CONSTANT]
    feedback = alike[:, best].mean(axis=1)
    near = np.maximum(alike, 0.0) ** _NEIGHBOUR_POWER
    size = min(_NEIGHBOURS, count - 1)
    nearest = np.argsort(-near, axis=1, kind="stable")[:, :size]
    weights = np.take_along_axis(near, nearest, axis=1)
    neighbours = (weights * base[nearest]).sum(axis=1) / (weights.sum(axis=1) + 1e-6)
    start = np.exp(_WALK_SHARPNESS * (base - base.max()))
    start /= start.sum()
    steps = near / (near.sum(axis=1, keepdims=True) + 1e-6)
    share = start
    for _ in range(_WALK_STEPS):
        share = _WALK_SHARE * start + (1 - _WALK_SHARE) * (steps.T @ share)
    walk = np.log(share + 1e-6)
    return feedback, neighbours, walk - walk.max()
