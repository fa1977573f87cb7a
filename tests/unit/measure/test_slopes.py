"""A line through samples that no outlier bends: what the soak judges by."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module("slopes").growth


def test_what_grows_is_seen_through_outliers(growth: Any) -> None:
    values = [100 + 0.5 * number for number in range(101)]
    values[10] = values[50] = 10_000
    line = growth(values)
    assert line.growth == pytest.approx(50, abs=1)
    assert line.low > 40 and line.low_share > 0.3


def test_noise_is_no_growth(growth: Any) -> None:
    pick = random.Random(3)
    line = growth([100 + pick.uniform(-5, 5) for _ in range(200)])
    assert line.low < 0 < line.high or abs(line.growth) < 1


def test_what_stays_as_it_is_does_not_grow_at_all(growth: Any) -> None:
    line = growth([38] * 50)
    assert (line.growth, line.low, line.high) == (0, 0, 0)


def test_a_long_series_is_taken_in_steps(growth: Any) -> None:
    assert growth(list(range(6_000))).growth == pytest.approx(5_990, abs=20)
