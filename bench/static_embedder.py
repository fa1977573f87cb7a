"""A static distillation of the default embedder: one vector per word piece, passages are weighted means.

Embedding 100,000 passages with the model takes half an hour on two cores, the distillation seconds. It keeps what
matters to an index: the crowding, the near-duplicates and the uneven density of real text. Every piece of the
vocabulary goes through the real model once, between its end tokens. A passage is the mean of the vectors of its
pieces, weighted by a / (a + frequency) (SIF: Arora, Liang, Ma, "A simple but tough-to-beat baseline for sentence
embeddings", ICLR 2017), less its part along the first principal component of a sample, of unit length.

    python bench/static_embedder.py     the nearest passages of a few sentences, to look at
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.engine.llama import Context, ContextSettings, Model
from edgerag.engine.wordpiece import WordPiece

if TYPE_CHECKING:
    from edgerag.types import Vectors

SIF_A = 1e-3  # the value of the paper's sentence tasks
_SAMPLE = 20_000  # passages that the principal component is computed on
_WINDOW_TOKENS = 16


@dataclass(frozen=True, slots=True)
class StaticEmbedder:
    word_piece: WordPiece
    vectors: Vectors  # (vocabulary, dim) float32, as the model pools them, of unit length
    weights: NDArray[np.float32]  # (vocabulary,) float32
    component: Vectors  # (dim,) float32, unit length: the direction that all passages share

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) float32, unit rows. Raises ValueError for a text without a known piece."""
        means = mean_vectors([self.word_piece.encode(text) for text in texts], self.vectors, self.weights)
        return without(means, self.component)


def distil(vectors: Vectors, word_piece: WordPiece, texts: Sequence[str]) -> StaticEmbedder:
    """The embedder for ``texts``: their frequencies, their common direction."""
    encoded = [word_piece.encode(text) for text in texts]
    weights = sif_weights(encoded, len(vectors))
    step = max(1, len(encoded) // _SAMPLE)
    component = first_component(mean_vectors(encoded[::step], vectors, weights))
    return StaticEmbedder(word_piece, vectors, weights, component)


def piece_vectors(model: Path, *, threads: int) -> tuple[Vectors, list[str]]:
    """((vocabulary, dim) float32 unit rows, the vocabulary): each piece alone through a BERT model."""
    loaded = Model(model)
    context = Context(
        loaded,
        ContextSettings(context_tokens=_WINDOW_TOKENS, batch_tokens=_WINDOW_TOKENS, threads=threads, embeddings=True),
    )
    try:
        vocabulary = list(loaded.vocabulary())
        ends = WordPiece(vocabulary)
        vectors = np.stack([context.embed([ends.first, piece, ends.last]) for piece in range(len(vocabulary))])
    finally:
        context.close()
        loaded.close()
    return unit_rows(vectors), vocabulary


def sif_weights(encoded: Iterable[Sequence[int]], vocabulary_size: int) -> NDArray[np.float32]:
    """(vocabulary,) float32 in (0, 1]: rare pieces count fully, frequent ones little."""
    counts = np.zeros(vocabulary_size, dtype=np.float64)
    for pieces in encoded:
        np.add.at(counts, pieces, 1)
    frequencies = counts / max(1.0, counts.sum())
    weights: NDArray[np.float32] = (SIF_A / (SIF_A + frequencies)).astype(np.float32)
    return weights


def mean_vectors(encoded: Sequence[Sequence[int]], vectors: Vectors, weights: NDArray[np.float32]) -> Vectors:
    """(n, dim) float32: weighted means. Raises ValueError for a text without a piece."""
    means = np.empty((len(encoded), vectors.shape[1]), dtype=np.float32)
    for row, pieces in enumerate(encoded):
        if not pieces:
            raise ValueError(f"text {row} has no word piece")
        means[row] = weights[pieces] @ vectors[pieces] / len(pieces)
    return means


def first_component(means: Vectors) -> Vectors:
    """(dim,) float32 unit: the first right singular vector, not centred, as in the paper."""
    _, axes = np.linalg.eigh(means.T.astype(np.float64) @ means)
    component: Vectors = axes[:, -1].astype(np.float32)
    return component


def without(means: Vectors, component: Vectors) -> Vectors:
    """Unit rows of ``means`` less their part along ``component``."""
    rest: Vectors = means - np.outer(means @ component, component)
    return unit_rows(rest)


def unit_rows(vectors: Vectors) -> Vectors:
    """Rows of unit length. Raises ValueError for a row of zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ValueError(f"row {int(np.argmin(lengths))} has no direction")
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit


def main() -> None:
    from vector_sets import text_passages, text_set

    from_set = text_set()
    base_texts, query_texts = text_passages()
    for number in range(0, len(query_texts), max(1, len(query_texts) // 12)):
        print(f"\n{query_texts[number]}")
        for row in from_set.truth[number][:3].tolist():
            print(f"  {float(from_set.base[row] @ from_set.queries[number]):.3f}  {base_texts[row]}")


if __name__ == "__main__":
    main()
