from __future__ import annotations

import random
from itertools import product

import pytest

from edgerag.measure.eval.significance import ROUNDS, holm, paired


def test_p_is_that_of_all_orders_of_signs() -> None:
    differences = [0.5, 0.25, 0.25, -0.125, 0.5, 0.0, 0.125, 0.375]
    changed = [d for d in differences if d]
    sums = [
        abs(sum(s * d for s, d in zip(signs, changed, strict=True))) for signs in product((1, -1), repeat=len(changed))
    ]
    exact = sum(s >= abs(sum(changed)) - 1e-9 for s in sums) / len(sums)
    found = paired([0.0] * len(differences), differences, seed=1)
    assert found.p == pytest.approx(exact, abs=0.01)
    assert found.mean == pytest.approx(sum(differences) / 8)
    assert (found.better, found.worse, found.count) == (6, 1, 8)
    assert found.low <= found.mean <= found.high


def test_the_same_runs_are_not_different() -> None:
    same = paired([0.0, 1.0, 0.5], [0.0, 1.0, 0.5], seed=1)
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_one_that_is_always_better_is_better() -> None:
    found = paired([0.0] * 50, [1.0] * 50, seed=1)
    assert found.p == pytest.approx(1 / (ROUNDS + 1)) and found.low > 0


def test_the_seed_decides() -> None:
    chance = random.Random(3)
    one, other = ([chance.random() for _ in range(40)] for _ in range(2))
    assert paired(one, other, seed=7) == paired(one, other, seed=7)
    assert paired(one, other, seed=7).p == pytest.approx(paired(one, other, seed=8).p, abs=0.03)
    turned = paired(other, one, seed=7)
    assert turned.mean == pytest.approx(-paired(one, other, seed=7).mean)


def test_what_is_no_pairs() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        paired([], [], seed=1)
    with pytest.raises(ValueError, match="1 and 2"):
        paired([1.0], [1.0, 2.0], seed=1)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
