"""The latent space of a library's words: which words stand in the same passages, learned from the library alone.

Latent semantic indexing (Deerwester et al. 1990): the matrix of passages and words, weighed by rarity, is cut down to
its strongest directions, found by randomised subspace iteration (Halko, Martinsson and Tropp 2011). A question and a
passage that share no word may lie close to each other in it. It needs no model and knows every language and every
trade that the library is written in. Pure, and the same each time for the same passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import Cancelled
from edgerag.types import AskedTerm, CancelCheck, LatentEvidence, PassageWords, WordEvidence

Matrix = NDArray[np.float32]

DIMENSION = 128  # of 64 to 300 tried, 128 and 200 are best by the same margin (docs/decisions/120)
FEWEST_PASSAGES = 16  # of fewer nothing can be learned
_MOST_TERMS = 32_768
_FEWEST_HOLDERS = 2  # a word of one passage stands beside nothing else
_OVERSAMPLED = 16
_ITERATIONS = 2
_SEED = 0
_WEAKEST = 1e-6  # of the strongest; what is weaker is what single precision rounds off
_BLOCK_CELLS = 32_768  # of the sparse matrix, multiplied at a time
_STEPS = 127  # of a direction, either way
# What so many occurrences in one passage count; more count no more.
_DAMPED = np.log1p(np.arange(256, dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class LatentSpace:
    """(t, d) int8 directions of terms, each times its own weight, which has its rarity in it, (t,) f32."""

    terms: Mapping[str, int]
    weights: Matrix
    directions: NDArray[np.int8]

    @property
    def dimension(self) -> int:
        return int(self.directions.shape[1])

    def evidence(self, words: WordEvidence, chunk_ids: Sequence[int]) -> LatentEvidence:
        """Of those chunks, all of which are among ``words``."""
        places = self._folded([_asked(words.terms), *(_words(words.passages[chunk_id]) for chunk_id in chunk_ids)])
        alike = places[1:] @ places[1:].T
        np.fill_diagonal(alike, 0.0)
        return LatentEvidence(cosines=places[1:] @ places[0], alike=alike)

    def _folded(self, texts: Sequence[Sequence[str]]) -> Matrix:
        """(n, d) where rows of words lie, of unit length; 0 for one of which no word is known."""
        rows, columns = _known(texts, self.terms)
        is_used = np.zeros(len(self.terms), dtype=np.bool_)
        is_used[columns] = True
        used = np.flatnonzero(is_used)
        counts = np.bincount(rows * len(used) + (np.cumsum(is_used) - 1)[columns], minlength=len(texts) * len(used))
        weighed = _DAMPED[np.minimum(counts, len(_DAMPED) - 1)].reshape(len(texts), len(used)) * self.weights[used]
        return _of_unit_length(weighed @ self.directions[used].astype(np.float32))


def make_space(passages: Iterable[PassageWords], *, cancelled: CancelCheck) -> LatentSpace | None:
    """None where there are too few passages or too few words for one. Raises Cancelled."""
    numbers: dict[str, int] = {}
    texts = [_numbered(words, numbers) for passage in passages if (words := _words(passage))]
    if len(texts) < FEWEST_PASSAGES:
        return None
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    cells, counts = np.unique(rows * len(numbers) + np.concatenate(texts), return_counts=True)
    rows, of_word = np.divmod(cells, len(numbers))
    holders = np.bincount(of_word, minlength=len(numbers))
    names = list(numbers)
    common = np.flatnonzero(holders >= _FEWEST_HOLDERS).tolist()
    chosen = sorted(common, key=lambda word: (-holders[word], names[word]))[:_MOST_TERMS]
    dimension = min(DIMENSION, len(texts) // 2, len(chosen) // 2)
    if dimension < 1:
        return None
    column_of = np.full(len(names), -1)
    column_of[chosen] = np.arange(len(chosen))
    columns = column_of[of_word]
    kept = columns >= 0
    rarity = np.log(1 + (len(texts) - holders[chosen] + 0.5) / (holders[chosen] + 0.5)).astype(np.float32)
    values = np.log1p(counts[kept]).astype(np.float32) * rarity[columns[kept]]
    matrix = _Sparse(rows[kept], columns[kept], values, shape=(len(texts), len(chosen)), cancelled=cancelled)
    directions = matrix.strongest_directions(dimension)
    largest = np.maximum(np.abs(directions).max(axis=1), np.finfo(np.float32).tiny)
    return LatentSpace(
        terms={names[word]: number for number, word in enumerate(chosen)},
        weights=rarity * largest / np.float32(_STEPS),
        directions=np.rint(directions * (_STEPS / largest)[:, None]).astype(np.int8),
    )


class _Sparse:
    """(n, t) with rows of unit length; its products are the same however they are cut into blocks."""

    def __init__(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        values: Matrix,
        *,
        shape: tuple[int, int],
        cancelled: CancelCheck,
    ) -> None:
        length = np.sqrt(np.bincount(rows, values.astype(np.float64) ** 2, minlength=shape[0]))
        values = (values / np.maximum(length, np.finfo(np.float32).tiny)[rows]).astype(np.float32)
        by_column = np.argsort(columns, kind="stable")
        self._by_row = _Ordered(rows, columns, values, count=shape[0], cancelled=cancelled)
        self._by_column = _Ordered(
            columns[by_column], rows[by_column], values[by_column], count=shape[1], cancelled=cancelled
        )

    def strongest_directions(self, count: int) -> Matrix:
        """(t, at most count) right singular vectors, strongest first; of no strength none, where passages repeat."""
        random = np.random.default_rng(_SEED)
        width = min(count + _OVERSAMPLED, self._by_row.count, self._by_column.count)
        start = random.standard_normal((self._by_column.count, width)).astype(np.float32)
        basis = np.linalg.qr(self._by_row.times(start))[0]
        for _ in range(_ITERATIONS):
            basis = np.linalg.qr(self._by_column.times(basis))[0]
            basis = np.linalg.qr(self._by_row.times(basis))[0]
        projected = self._by_column.times(basis).astype(np.float64)  # (t, width)
        strengths, mixing = np.linalg.eigh(projected.T @ projected)
        strongest = np.argsort(-strengths, kind="stable")[:count]
        strongest = strongest[strengths[strongest] > _WEAKEST * strengths.max()]
        directions: Matrix = (projected @ (mixing[:, strongest] / np.sqrt(strengths[strongest]))).astype(np.float32)
        return directions


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The cells of a sparse matrix in the order of ``groups``, of which there are ``count``."""

    groups: NDArray[np.int64]
    others: NDArray[np.int64]
    values: Matrix
    count: int
    cancelled: CancelCheck

    def times(self, factor: Matrix) -> Matrix:
        """(count, k) for (other side, k)."""
        product = np.zeros((self.count, factor.shape[1]), dtype=np.float32)
        for start, end in self._blocks():
            stop_if(self.cancelled)
            groups, first = np.unique(self.groups[start:end], return_index=True)
            cells = factor[self.others[start:end]]
            cells *= self.values[start:end, None]
            product[groups] = np.add.reduceat(cells, first, axis=0)
        return product

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Runs of whole groups."""
        starts = np.flatnonzero(np.diff(self.groups, prepend=-1))
        start = 0
        while start < len(self.groups):
            following = int(np.searchsorted(starts, start + _BLOCK_CELLS, side="right"))
            end = int(starts[following]) if following < len(starts) else len(self.groups)
            yield start, end
            start = end


def stop_if(cancelled: CancelCheck) -> None:
    """Raises Cancelled."""
    if cancelled():
        raise Cancelled("The latent space was not finished.")


def _known(texts: Sequence[Sequence[str]], terms: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(text, term) of each word that is among ``terms``."""
    found = np.fromiter(map(terms.get, chain.from_iterable(texts), repeat(-1)), dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return rows[found >= 0], found[found >= 0]


def _numbered(words: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int64]:
    """The words by their numbers, new ones being given the next."""
    return np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int64)


def _words(passage: PassageWords) -> tuple[str, ...]:
    return (*passage.title, *passage.body)


def _asked(terms: Sequence[AskedTerm]) -> tuple[str, ...]:
    """Each word of any form of a term, once."""
    return tuple(word for term in terms for word in dict.fromkeys(chain.from_iterable(term.forms)))


def _of_unit_length(rows: Matrix) -> Matrix:
    unit: Matrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return unit
