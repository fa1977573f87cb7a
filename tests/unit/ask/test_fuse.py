from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.fuse import fuse
from edgerag.types import LegHit, Scores

rankings = st.lists(st.integers(1, 30), unique=True, max_size=15).map(
    lambda ids: [LegHit(chunk_id, 1.0 / rank) for rank, chunk_id in enumerate(ids, start=1)]
)


def legs(*ids: int) -> list[LegHit]:
    return [LegHit(chunk_id, 1.0 - rank / 100) for rank, chunk_id in enumerate(ids)]


def fused(
    keyword: list[LegHit],
    vector: list[LegHit],
    *,
    weights: tuple[float, float] = (1.0, 1.0),
    exact: set[int] = frozenset(),  # type: ignore[assignment]
) -> list[tuple[int, Scores]]:
    return fuse(
        keyword=keyword, vector=vector, keyword_weight=weights[0], vector_weight=weights[1], rrf_k=60, exact=exact
    )


def order(result: list[tuple[int, Scores]]) -> list[int]:
    return [chunk_id for chunk_id, _ in result]


def test_what_both_legs_find_comes_first() -> None:
    assert order(fused(legs(1, 2, 3), legs(4, 2, 5)))[0] == 2


def test_scores_tell_how_a_hit_came_about() -> None:
    scores = dict(fused(legs(1, 2), legs(2)))
    assert (scores[2].keyword_rank, scores[2].vector_rank) == (2, 1)
    assert (scores[1].vector, scores[1].vector_rank) == (None, None)
    assert scores[2].fused == 1 / 62 + 1 / 61


def test_a_leg_without_weight_changes_nothing() -> None:
    assert order(fused(legs(1, 2), legs(9, 8), weights=(1.0, 0.0))) == [1, 2]
    assert order(fused(legs(1, 2), legs(9, 8), weights=(0.0, 1.0))) == [9, 8]


def test_an_exact_match_is_not_outvoted_by_the_embedder() -> None:
    keyword, vector = legs(1, 2, 3), legs(2, 3, 4, 5, 6)
    assert order(fused(keyword, vector))[0] != 1
    assert order(fused(keyword, vector, exact={1}))[0] == 1


@given(rankings, rankings, st.sets(st.integers(1, 30)))
def test_the_order_is_complete_unique_and_the_same_every_time(
    keyword: list[LegHit], vector: list[LegHit], exact: set[int]
) -> None:
    first = fused(keyword, vector, exact=exact)
    assert first == fused(list(keyword), list(vector), exact=set(exact))
    assert sorted(order(first)) == sorted({hit.chunk_id for hit in (*keyword, *vector)})
    values = [scores.fused for _, scores in first]
    assert values == sorted(values, reverse=True)


@given(rankings)
def test_one_leg_alone_keeps_its_order(ranking: list[LegHit]) -> None:
    assert order(fused(ranking, [])) == [hit.chunk_id for hit in ranking]
