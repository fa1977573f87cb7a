from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgerag.errors import UsageError
from edgerag.measure import sets
from edgerag.measure.sets import clustered, exact_truth, file_set, recall


def test_clustered_vectors_are_of_unit_length_and_the_same_for_the_same_seed() -> None:
    base, queries = clustered(300, dimension=16, queries=7, seed=5)
    again, _ = clustered(300, dimension=16, queries=7, seed=5)
    other, _ = clustered(300, dimension=16, queries=7, seed=6)
    assert base.shape == (300, 16) and queries.shape == (7, 16) and base.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(base, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(base, again)
    assert not np.allclose(base, other)


def test_clustered_vectors_lie_near_few_centres() -> None:
    base, _ = clustered(400, dimension=64, queries=1, seed=1)
    similarities = base @ base.T
    np.fill_diagonal(similarities, 0)
    assert similarities.max(axis=1).min() > 0.5  # every one has company; random ones in 64 dimensions have not


@pytest.mark.parametrize("piece", [3, 7, 50, 1000])
def test_truth_is_what_sorting_all_similarities_gives(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "_COMPARED_AT_ONCE", piece)
    base, queries = clustered(50, dimension=8, queries=6, seed=2)
    expected = np.argsort(-(queries @ base.T), axis=1)[:, :10]
    np.testing.assert_array_equal(exact_truth(base, queries), expected)


def test_truth_has_no_more_columns_than_there_are_rows() -> None:
    base, queries = clustered(4, dimension=8, queries=2, seed=2)
    truth = exact_truth(base, queries)
    assert [sorted(row) for row in truth.tolist()] == [[0, 1, 2, 3]] * 2


def test_recall_is_the_share_of_true_neighbours_found() -> None:
    truth = np.array([[1, 2], [3, 4]])
    assert recall(np.array([[2, 1], [4, 3]]), truth) == 1
    assert recall(np.array([[2, 9], [-1, -1]]), truth) == 0.25


def test_a_file_brings_its_last_rows_as_queries(tmp_path: Path) -> None:
    base, _ = clustered(200, dimension=8, queries=1, seed=3)
    np.save(tmp_path / "v.npy", 3 * base)
    data = file_set(tmp_path / "v.npy", rows=None)
    np.testing.assert_allclose(data.base, base[:196], rtol=1e-5)
    np.testing.assert_allclose(data.queries, base[196:], rtol=1e-5)
    assert len(file_set(tmp_path / "v.npy", rows=50).base) == 50


def test_a_file_with_queries_beside_it_keeps_all_its_rows(tmp_path: Path) -> None:
    base, queries = clustered(200, dimension=8, queries=5, seed=3)
    np.save(tmp_path / "v.base.npy", base)
    np.save(tmp_path / "v.q.npy", queries)
    data = file_set(tmp_path / "v.base.npy", rows=None)
    assert len(data.base) == 200
    np.testing.assert_array_equal(data.queries, queries)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((5, 4), dtype=np.float32), "Row 0 of"),
        (np.array([[1, 0], [np.nan, 1], [1, 1]], dtype=np.float32), "Row 1 of"),
        (np.ones((5, 4), dtype=np.int64), "int64"),
        (np.ones(5, dtype=np.float32), "shape (5,)"),
        (np.ones((1, 4), dtype=np.float32), "shape (1, 4)"),
    ],
)
def test_a_file_that_holds_no_vectors_is_refused(tmp_path: Path, value: np.ndarray, words: str) -> None:
    np.save(tmp_path / "v.npy", value)
    with pytest.raises(UsageError) as caught:
        file_set(tmp_path / "v.npy", rows=None)
    assert words in str(caught.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(b"hello")
    for name in ("v.npy", "gone.npy"):
        with pytest.raises(UsageError):
            file_set(tmp_path / name, rows=None)
