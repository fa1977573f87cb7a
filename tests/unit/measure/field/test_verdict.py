"""Verdicts: a real difference is named, and noise is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.measure.field.series import Better, Series, Turns, read_series, series_record
from edgerag.measure.field.verdict import LEVEL, NO_DIFFERENCE, between_runs, by_turns

RUNS = st.lists(st.floats(0.1, 10), min_size=6, max_size=9)


def series(
    runs: Sequence[float], *, beside: Sequence[float] = (), better: Better = "less", name: str = "p.w"
) -> Series:
    return Series(name, "s", better, tuple(runs), tuple(beside))


def drawn(seed: int, *, middle: float = 1.0, noise: float = 0.05, count: int = 7) -> list[float]:
    random = np.random.default_rng(seed)
    return [float(value) for value in middle * np.exp(noise * random.standard_normal(count))]


@given(runs=RUNS, better=st.sampled_from(("less", "more")))
@settings(max_examples=25)
def test_a_run_is_neither_faster_nor_slower_than_itself(runs: list[float], better: Better) -> None:
    one = series(runs, beside=runs, better=better)
    assert by_turns(one, one).word == NO_DIFFERENCE
    assert between_runs([one], [one])["p.w"].word == NO_DIFFERENCE


@given(runs=RUNS, factor=st.floats(1.5, 20))
@settings(max_examples=25)
def test_ways_by_turns_that_differ_in_every_round(runs: list[float], factor: float) -> None:
    """Also where the rounds themselves differ by more than the ways do."""
    slow = series([value * factor for value in runs])
    faster, slower = by_turns(series(runs), slow), by_turns(slow, series(runs))
    assert (faster.word, slower.word) == ("faster", "slower")
    assert math.isclose(faster.ratio, factor) and math.isclose(slower.ratio, 1 / factor)
    assert faster.low <= faster.ratio <= faster.high


def test_more_is_better_for_rates() -> None:
    runs = drawn(1, count=8)
    double = series([2 * value for value in runs], better="more")
    assert by_turns(double, series(runs, better="more")).word == "faster"
    assert between_runs([double], [series(runs, better="more")])["p.w"].word == "faster"


def test_a_run_of_another_day_that_is_faster_and_one_that_only_seems_so() -> None:
    before = series(drawn(1), beside=drawn(2, middle=0.002))
    faster = series(drawn(3, middle=0.7), beside=drawn(4, middle=0.002))
    assert between_runs([faster], [before])["p.w"].word == "faster"
    assert between_runs([before], [faster])["p.w"].word == "slower"
    on_a_busy_machine = series(drawn(3, middle=1.4), beside=drawn(4, middle=0.0028))
    verdict = between_runs([on_a_busy_machine], [before])["p.w"]
    assert verdict.word == NO_DIFFERENCE and verdict.why


def test_the_same_program_measured_twice_is_hardly_ever_told_apart() -> None:
    told = 0
    for seed in range(60):
        now = [series(drawn(1000 * seed + n, noise=0.2), name=f"p.{n}") for n in range(10)]
        before = [series(drawn(1000 * seed + 500 + n, noise=0.2), name=f"p.{n}") for n in range(10)]
        told += any(v.word in ("faster", "slower") for v in between_runs(now, before).values())
    assert told / 60 <= 2 * LEVEL, "of sixty comparisons of ten things each"


def test_a_small_difference_is_not_worth_a_word() -> None:
    assert by_turns(series([1.0] * 8), series([1.02] * 8)).word == NO_DIFFERENCE


def test_one_spoiled_round_makes_no_difference() -> None:
    runs = drawn(1, count=8, noise=0.001)
    assert by_turns(series(runs), series([*runs[:-1], 50.0])).word == NO_DIFFERENCE


def test_few_runs_give_no_verdict() -> None:
    assert by_turns(series([1.0] * 5), series([2.0] * 5)).word == "not compared"
    assert between_runs([series([1.0] * 5)], [series([2.0] * 9)])["p.w"].word == "not compared"


def test_another_unit_is_not_compared() -> None:
    other = Series("p.w", "tokens/s", "more", (1.0,) * 6)
    assert between_runs([series([1.0] * 6)], [other])["p.w"].word == "not compared"


@given(runs=RUNS)
def test_a_series_is_read_as_it_was_written(runs: list[float]) -> None:
    one = series(runs, beside=runs)
    read = read_series("p.w", series_record(one))
    assert read is not None and read.runs == pytest.approx(one.runs, abs=1e-6)
    assert (read.name, read.unit, read.better) == (one.name, one.unit, one.better)


@pytest.mark.parametrize(
    "record", [None, 7, {}, {"runs": []}, {"runs": ["1"], "better": "less"}, {"runs": [0.0], "better": "less"}]
)
def test_what_is_no_series_is_passed_over(record: object) -> None:
    assert read_series("p.w", record) is None


def test_no_way_always_comes_after_the_same_other() -> None:
    order: list[str] = []

    def way(name: str) -> float:
        order.append(name)
        return 1.0

    turns = Turns()
    turns.go({"a": lambda: way("a"), "b": lambda: way("b")}, rounds=4, warm=1)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]
    assert len(turns.series("a", part="p", unit="s", better="less").runs) == 4, "the warming is not kept"


def test_on_a_slow_machine_there_are_fewer_rounds_but_enough() -> None:
    hour = iter(range(0, 10**6, 3600))
    turns = Turns(most_s=1.0, clock=lambda: next(hour))
    turns.go({"a": lambda: 1.0}, rounds=50)
    assert len(turns.series("a", part="p", unit="s", better="less").runs) == 6
