from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.background import above_background, background

COSINES = st.floats(-0.2, 0.95)


def test_embedders_with_another_floor_agree() -> None:
    """A passage halfway between any passage and the question itself."""
    assert above_background(0.5, background=0.0) == pytest.approx(above_background(0.875, background=0.75))


@given(COSINES, st.floats(-1, 1), st.floats(-1, 1))
def test_it_keeps_the_order_of_passages(floor: float, one: float, other: float) -> None:
    a, b = (above_background(cosine, background=floor) for cosine in (one, other))
    assert a <= b if one <= other else a >= b


def test_any_passage_is_at_zero_and_the_question_itself_at_one() -> None:
    assert above_background(0.76, background=0.76) == 0
    assert above_background(1.0, background=0.76) == pytest.approx(1)


def test_a_library_of_one_passage_does_not_hide_it() -> None:
    """Its mean is the answer: what the embedder gives to unrelated texts stands in."""
    floor = background(mean_cosine=0.88, sampled=1, unrelated=0.75)
    assert above_background(0.88, background=floor) > 0.4
    assert background(mean_cosine=0.88, sampled=0, unrelated=0.75) == 0.75


def test_a_large_library_speaks_for_itself() -> None:
    assert background(mean_cosine=0.84, sampled=128, unrelated=0.7) == pytest.approx(0.84, abs=0.02)
