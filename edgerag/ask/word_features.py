"""What the words of a question say of the passages found for it, as numbers: BM25 with its parts, which words stand
near each other, in title and headings, inside other words, and what the best passages have in common
(pseudo-relevance feedback, Lavrenko and Croft 2001). Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from edgerag.types import AskedTerm, PassageWords, WordEvidence

Column = NDArray[np.float64]
_Places = list[tuple[int, int]]  # where a term stands, and its number; in order

_TITLE_WEIGHT = 1.5  # as the keyword leg weighs the columns
_K1, _B = 1.2, 0.75
_FLAT_K1, _FLAT_B = 0.9, 0.4  # other constants suit short and long passages
_WINDOW_WORDS = 24  # about a sentence
_NEAR_WORDS = 8
_FEEDBACK_PASSAGES, _FEEDBACK_WORDS = 8, 20
_LEAST_PART = 4  # letters of a word that is looked for inside others
_STEM = 5  # letters that words of one family begin with
_PART_SHARE, _STEM_SHARE, _PHRASE_SHARE = 0.7, 0.4, 0.6


@dataclass(frozen=True, slots=True, eq=False)
class WordColumns:
    """Each (n,), in the order of the first columns of features.PASSAGE."""

    bm25: Column
    bm25_flat: Column
    bm25_body: Column
    covered: Column
    covered_by_title: Column
    covered_by_headings: Column
    pairs_in_order: Column
    pairs_near: Column
    best_window: Column
    first_place: Column
    density: Column
    length: Column
    has_rarest: Column
    rarest_missing: Column
    covered_softly: Column
    feedback: Column

    def columns(self) -> list[Column]:
        return [getattr(self, each.name) for each in fields(self)]


def word_columns(words: WordEvidence, found: Sequence[tuple[int, float]]) -> WordColumns:
    """``found``: of each of n candidates its chunk, which is among ``words``, and what the fusion gave it."""
    asked = _Asked(words.terms)
    idf, weight = asked.idf, asked.weight
    passages = [words.passages[chunk_id] for chunk_id, _ in found]
    bags = [Counter((*passage.body, *passage.title)) for passage in passages]
    places = [asked.places(passage.body) for passage in passages]
    in_body = asked.counted(places)
    in_title = asked.counted([asked.places(passage.title) for passage in passages])
    in_headings = asked.counted([asked.places(passage.headings) for passage in passages])
    in_all = in_body + _TITLE_WEIGHT * (in_title + in_headings)
    held = in_all > 0
    body_words = np.array([len(passage.body) for passage in passages], dtype=np.float64)
    all_words = body_words + [len(passage.title) + len(passage.headings) for passage in passages]
    long = all_words / words.mean_words
    divisor = np.maximum(1.0, body_words)
    pairs = np.array([asked.pairs(each) for each in places], dtype=np.float64)
    highest = idf.max(initial=0.0)
    softly = [asked.covered_softly(each, bag) for each, bag in zip(held.tolist(), bags, strict=True)]
    expansion = _feedback_words(found, passages, bags, asked.words, mean_words=words.mean_words)
    expanded = np.array([list(map(bag.get, expansion, repeat(0))) for bag in bags], dtype=np.float64)
    return WordColumns(
        bm25=_saturated(in_all, long, _K1, _B) @ idf / weight,
        bm25_flat=_saturated(in_all, long, _FLAT_K1, _FLAT_B) @ idf / weight,
        bm25_body=_saturated(in_body, body_words / words.mean_words, _K1, _B) @ idf / weight,
        covered=held @ idf / weight,
        covered_by_title=(in_title > 0) @ idf / weight,
        covered_by_headings=(in_headings > 0) @ idf / weight,
        pairs_in_order=pairs[:, 0],
        pairs_near=pairs[:, 1],
        best_window=np.array([asked.best_window(each) for each in places]) / weight,
        first_place=np.array([each[0][0] if each else size for each, size in zip(places, divisor, strict=True)])
        / divisor,
        density=10 * in_body.sum(axis=1) / divisor,
        length=np.log1p(body_words) / 5,
        has_rarest=held[:, idf.argmax()].astype(np.float64) if len(idf) else np.zeros(len(found)),
        rarest_missing=np.where(held, 0.0, idf).max(axis=1, initial=0.0) / highest if highest else np.ones(len(found)),
        covered_softly=np.array(softly) / weight,
        feedback=_saturated(expanded, long, _K1, _B) @ np.fromiter(expansion.values(), dtype=np.float64),
    )


def word_shares(words: WordEvidence, chunk_id: int) -> tuple[float, float]:
    """The columns "covered_softly" and "best_window" of one passage."""
    asked, passage = _Asked(words.terms), words.passages[chunk_id]
    places = asked.places(passage.body)
    (held,) = asked.counted([[*places, *asked.places(passage.title), *asked.places(passage.headings)]]) > 0
    present = Counter((*passage.body, *passage.title))
    return asked.covered_softly(held.tolist(), present) / asked.weight, asked.best_window(places) / asked.weight


def _saturated(times: Column, long: Column, k1: float, b: float) -> Column:
    """(n, t) what occurrences of t words count in n texts that are so long, as shares of the mean: BM25 without idf."""
    saturated: Column = times * (k1 + 1) / (times + (k1 * (1 - b + b * long))[:, None])
    return saturated


class _Asked:
    """The t terms of a question, to be found in a row of words."""

    def __init__(self, terms: Sequence[AskedTerm]) -> None:
        self.idf = np.array([term.idf for term in terms], dtype=np.float64)
        self.weight = float(self.idf.sum()) or 1.0
        self.words = frozenset(word for term in terms for form in term.forms for word in form)
        self._idf: list[float] = self.idf.tolist()
        self._pair_weights = [one + other for one, other in zip(self._idf, self._idf[1:], strict=False)]
        self._single: dict[str, int] = {}
        self._rows: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)  # by their first word
        for number, term in enumerate(terms):
            for form in term.forms:
                if len(form) == 1:
                    self._single.setdefault(form[0], number)
                else:
                    self._rows[form[0]].append((number, form))
        self._phrases = [tuple(form for form in term.forms if len(form) > 1) for term in terms]
        alone = [[form[0] for form in term.forms if len(form) == 1] for term in terms]
        self._parts = [tuple(word for word in each if len(word) >= _LEAST_PART) for each in alone]
        self._stems = [tuple(dict.fromkeys(f" {word[:_STEM]}" for word in each if len(word) > _STEM)) for each in alone]

    def places(self, words: Sequence[str]) -> _Places:
        """Every occurrence of a term."""
        single = self._single
        places = [(place, single[word]) for place, word in enumerate(words) if word in single]
        if self._rows:
            for place, word in enumerate(words):
                for number, form in self._rows.get(word, ()):
                    if tuple(words[place : place + len(form)]) == form:
                        places.append((place, number))
            places.sort()
        return places

    def counted(self, texts: Sequence[_Places]) -> Column:
        """(n, t) how often each term stands in each of n texts."""
        count = len(self._idf)
        cells = np.array([row * count + number for row, each in enumerate(texts) for _, number in each], dtype=np.int64)
        return np.bincount(cells, minlength=len(texts) * count).reshape(len(texts), count).astype(np.float64)

    def pairs(self, places: _Places) -> tuple[float, float]:
        """The share of neighbouring terms of the question that stand in a row, and that stand near each other."""
        total = sum(self._pair_weights)
        if not total or len(places) < 2:
            return 0.0, 0.0
        where: dict[int, list[int]] = defaultdict(list)
        for place, number in places:
            where[number].append(place)
        in_order = near = 0.0
        for number, first in where.items():
            second = where.get(number + 1)
            if second is not None:
                gaps = [after - before for before in first for after in second]
                in_order += self._pair_weights[number] * any(0 < gap <= 2 for gap in gaps)
                near += self._pair_weights[number] * any(abs(gap) <= _NEAR_WORDS for gap in gaps)
        return in_order / total, near / total

    def best_window(self, places: _Places) -> float:
        """The weight of the different terms in the run of words that has most of it."""
        idf = self._idf
        best = held = 0.0
        first = 0
        counts = [0] * len(idf)
        for place, number in places:
            if not counts[number]:
                held += idf[number]
            counts[number] += 1
            while places[first][0] <= place - _WINDOW_WORDS:
                left = places[first][1]
                counts[left] -= 1
                if not counts[left]:
                    held -= idf[left]
                first += 1
            best = max(best, held)
        return best

    def covered_softly(self, held: Sequence[bool], present: Mapping[str, int]) -> float:
        """The weight of the terms, those that stand only inside another word or in part for a share of it."""
        covered = 0.0
        joined = ""
        for number, is_held in enumerate(held):
            share = 1.0
            if not is_held:
                joined = joined or " ".join(present)
                share = self._share(number, present, joined)
            covered += share * self._idf[number]
        return covered

    def _share(self, number: int, present: Mapping[str, int], joined: str) -> float:
        share = 0.0
        for word in self._parts[number]:
            if word in joined:
                share = _PART_SHARE
                break
        else:
            for stem in self._stems[number]:
                if stem in joined:
                    share = _STEM_SHARE
                    break
        for form in self._phrases[number]:
            share = max(share, _PHRASE_SHARE * sum(word in present for word in form) / len(form))
        return share


def _feedback_words(
    found: Sequence[tuple[int, float]],
    passages: Sequence[PassageWords],
    bags: Sequence[Mapping[str, int]],
    asked: Collection[str],
    *,
    mean_words: float,
) -> dict[str, float]:
    """Words that the best candidates have in common and the others have not, with their shares of 1."""
    holders = Counter(chain.from_iterable(bags))
    best = sorted(range(len(found)), key=lambda n: (-found[n][1], found[n][0]))[:_FEEDBACK_PASSAGES]
    trust = sum(found[n][1] for n in best) or 1.0
    weights: dict[str, float] = defaultdict(float)
    for n in best:
        share = found[n][1] / trust / max(1.0, len(passages[n].body), mean_words / 4)
        for word, times in bags[n].items():
            if word not in asked:
                weights[word] += share * times * math.log(1 + len(passages) / holders[word])
    chosen = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_FEEDBACK_WORDS]
    total = sum(weight for _, weight in chosen) or 1.0
    return {word: weight / total for word, weight in chosen}
