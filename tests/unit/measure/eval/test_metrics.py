from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.measure.eval.matching import Ranking
from edgerag.measure.eval.metrics import (
    first_rank,
    hit_at,
    mean,
    ndcg,
    percentile,
    ranking_figures,
    recall_at,
    reciprocal_rank,
)


def ranks(*met: int | None) -> Ranking:
    """A ranking: the target met at each rank, None for what is not relevant."""
    return tuple(frozenset() if number is None else frozenset({number}) for number in met)


def test_hand_computed_figures_of_one_ranking() -> None:
    # Relevant at 2 and 4, of three that are relevant; grades 3 at rank 2, 1 at rank 4, and 2 not found.
    found, grades = ranks(None, 0, None, 1), (3.0, 1.0, 2.0)
    assert first_rank(found) == 2
    assert not hit_at(found, 1) and hit_at(found, 2)
    assert recall_at(found, 3, total=3) == pytest.approx(1 / 3)
    assert recall_at(found, 10, total=3) == pytest.approx(2 / 3)
    assert reciprocal_rank(found, 10) == 0.5
    gain = 3 / math.log2(3) + 1 / math.log2(5)
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(found, grades, 10) == pytest.approx(gain / ideal) == pytest.approx(0.48793, abs=1e-4)


def test_what_stands_below_the_depth_does_not_count() -> None:
    found = ranks(*[None] * 10, 0)
    assert reciprocal_rank(found, 10) == 0.0 and ndcg(found, (1.0,), 10) == 0.0
    assert first_rank(found) == 11


def test_a_chunk_that_meets_two_expectations_counts_for_both_in_recall_and_once_in_gain() -> None:
    found: Ranking = (frozenset({0, 1}),)
    assert recall_at(found, 1, total=2) == 1.0
    assert ndcg(found, (1.0, 1.0), 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_nothing_found() -> None:
    assert set(ranking_figures((), (1.0,)).values()) == {0.0}
    assert first_rank(()) is None


@given(st.data())
def test_figures_are_between_0_and_1_and_1_for_the_best_order(data: st.DataObject) -> None:
    grades = data.draw(st.lists(st.floats(0.1, 4), min_size=1, max_size=8))
    places = data.draw(st.permutations([*range(len(grades)), *[None] * 5]))
    figures = ranking_figures(ranks(*places), grades)
    assert all(0 <= value <= 1 + 1e-12 for value in figures.values())
    assert figures["hit@1"] <= figures["hit@5"] <= figures["hit@10"]
    assert figures["recall@5"] <= figures["recall@10"] <= figures["recall@20"]
    best = sorted(range(len(grades)), key=lambda number: -grades[number])
    perfect = ranking_figures(ranks(*best), grades)
    assert perfect["ndcg@10"] == pytest.approx(1) and perfect["mrr@10"] == 1
    assert figures["ndcg@10"] <= perfect["ndcg@10"] + 1e-9


def test_percentiles_are_values_that_were_measured() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, p) for p in (0, 20, 50, 95, 100)] == [1, 1, 3, 5, 5]
    assert percentile([], 50) == 0 and mean([]) == 0 and mean([1, 2]) == 1.5
