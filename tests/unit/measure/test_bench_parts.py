"""The pure parts of the benches of the index, loaded as the benches load them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edgerag.measure.sets import clustered

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == BENCH:
            del sys.modules[name]


def loaded(name: str) -> ModuleType:
    return import_module(name)


def test_sentences_are_cut_and_each_kept_once(bench: None) -> None:
    passages = loaded("passages")
    first, again = "The pump has four screws in its lid.", "The pump has FOUR screws in its lid."
    text = f"{first}  Tighten them all\nby hand first!\n\nFig. 3\n\n{again}"
    parts = passages.sentences(text)
    assert parts == [
        "The pump has four screws in its lid.",
        "Tighten them all by hand first!",
        "The pump has FOUR screws in its lid.",
    ]
    assert passages.distinct(parts) == parts[:2]


def test_frequent_pieces_weigh_less(bench: None) -> None:
    weights = loaded("static_embedder").sif_weights([[1, 1, 1, 2], [1, 1, 3]], 5)
    assert weights[1] < weights[2] == weights[3] < weights[0] == weights[4] == 1


def test_a_passage_is_the_weighted_mean_of_its_pieces_without_the_common_direction(bench: None) -> None:
    static = loaded("static_embedder")
    vectors = np.eye(3, dtype=np.float32)
    weights = np.array([1, 0.5, 0.25], dtype=np.float32)
    means = static.mean_vectors([[0, 1], [2, 2]], vectors, weights)
    np.testing.assert_allclose(means, [[0.5, 0.25, 0], [0, 0, 0.25]])
    np.testing.assert_allclose(static.without(means, vectors[0]), [[0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="text 1"):
        static.mean_vectors([[0], []], vectors, weights)


def test_the_common_direction_is_the_one_that_all_share(bench: None) -> None:
    random = np.random.default_rng(0)
    shared = np.array([0.6, 0.8, 0, 0])
    means = (shared + 0.1 * random.standard_normal((200, 4))).astype(np.float32)
    assert abs(float(loaded("static_embedder").first_component(means) @ shared)) > 0.99


def test_texts_that_the_vocabulary_cannot_read_and_equal_bags_are_left_out(bench: None) -> None:
    assert loaded("vector_sets").readable([[5, 6], [6, 5], [], [9, 9, 9, 5], [5, 5, 5, 5, 9]], unknown=9) == [0, 4]


def test_held_out_rows_are_not_near_duplicates_of_indexed_ones(bench: None) -> None:
    base, _ = clustered(200, dimension=16, queries=1, seed=1)
    vectors = np.concatenate([base, base[:40]])  # 40 rows are there twice
    indexed, held_out = loaded("vector_sets").split(vectors, held_out=20, seed=1)
    assert len(held_out) == 20 and not set(held_out.tolist()) & set(indexed.tolist())
    assert float((vectors[held_out] @ vectors[indexed].T).max()) < 0.95
    with pytest.raises(ValueError, match="near-duplicates"):
        loaded("vector_sets").split(np.concatenate([base[:9]] * 20), held_out=20, seed=1)
