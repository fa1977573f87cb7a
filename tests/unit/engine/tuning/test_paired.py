from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.tuning.paired import MOST_ROUNDS, Round, Speed, gain, is_clear, middle, noise, typical, wins

GAINS = st.lists(st.floats(0.1, 10), min_size=1, max_size=MOST_ROUNDS)


def test_an_answer_is_prompt_and_words() -> None:
    slow, fast = Speed(400.0, 40.0), Speed(800.0, 40.0)
    assert gain(Round(slow, fast), "prefill") == 2
    assert gain(Round(slow, fast), "decode") == 1
    assert gain(Round(slow, fast), "answer") == pytest.approx(4 / 3)  # 2 s + 2 s against 1 s + 2 s


@given(GAINS)
def test_a_winner_won_by_more_than_the_noise(gains: list[float]) -> None:
    if wins(gains):
        assert len(gains) >= 3
        assert math.log(middle(gains)) > noise(gains)
        assert not wins([1 / one for one in gains])


@given(GAINS)
def test_a_slower_one_never_wins(gains: list[float]) -> None:
    assert not wins([min(one, 1.02) for one in gains])


def test_two_clear_losses_are_enough_but_not_two_wins() -> None:
    assert is_clear([0.5, 0.6])
    assert not is_clear([1.5, 1.6])
    assert is_clear([1.5, 1.6, 1.55])
    assert not is_clear([1.0, 1.5, 0.8])
    assert is_clear([1.0, 1.5, 0.8, 1.0, 1.2, 1.1, 1.0])


def test_typical_speeds_are_medians() -> None:
    rounds = [Round(Speed(rate, 1.0), Speed(2 * rate, 2.0)) for rate in (1.0, 100.0, 3.0)]
    assert typical(rounds) == Round(Speed(3.0, 1.0), Speed(6.0, 2.0))
