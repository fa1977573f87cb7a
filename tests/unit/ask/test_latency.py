"""The latency model: weights on the simplex, forecasts that learn, and no more sources than fit."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.ask.latency import FEWEST, WINDOW, calibrate, choose, expected_s, forecast, profile_of, simplex_weights
from edgerag.types import Observation, Profile

READ_TPS, WRITE_TPS = 500.0, 100.0


def seen(
    sources: int, *, known: float = 0.0, answer: int = 60, looked: int = 0, slow: float = 1.0, profile: Profile = "chat"
) -> Observation:
    """An answer on a machine that reads and writes at a constant speed."""
    prompt = 60 + 200 * sources
    computed = round(prompt * (1 - known))
    retrieve, rerank = 0.02 * slow, (0.01 + 0.2 * looked) * slow
    read, write = slow * computed / READ_TPS, slow * answer / WRITE_TPS
    return Observation(
        profile,
        retrieve,
        rerank,
        read,
        write,
        computed,
        prompt,
        answer,
        sources,
        looked,
        retrieve + rerank + read + write,
    )


def answers(count: int, *, seed: int = 1, profile: Profile = "chat") -> list[Observation]:
    random = np.random.default_rng(seed)
    return [
        seen(
            int(random.integers(1, 9)),
            known=float(random.choice((0.0, 0.5))),
            answer=int(random.integers(20, 100)),
            profile=profile,
        )
        for _ in range(count)
    ]


@given(
    st.lists(st.tuples(*[st.floats(0.0, 5.0)] * 4), min_size=4, max_size=30),
    st.lists(st.floats(0.1, 5.0), min_size=4, max_size=30),
)
@settings(max_examples=60)
def test_weights_are_on_the_simplex_and_no_other_point_of_it_is_better(
    rows: list[tuple[float, ...]], target: list[float]
) -> None:
    count = min(len(rows), len(target))
    terms, wanted = np.array(rows[:count]), np.array(target[:count])
    weights = simplex_weights(terms, wanted)
    assert weights.min() >= 0 and math.isclose(weights.sum(), 1, rel_tol=1e-9)

    def error(of: np.ndarray) -> float:
        return float(np.square(terms @ of - wanted).sum())

    others = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    assert error(weights) <= min(error(other) for other in (*others, *np.eye(4))) + 1e-6


def test_the_weights_are_the_shares_of_the_mean_answer() -> None:
    window = answers(100)
    calibration = calibrate(window, "chat")
    assert calibration is not None
    weights = calibration.weights
    assert math.isclose(sum(dataclasses.astuple(weights)), 1, abs_tol=1e-5)
    total = sum(each.total_s for each in window)
    assert weights.cache_miss == pytest.approx(sum(each.read_s for each in window) / total, abs=0.02)
    assert weights.generate == pytest.approx(sum(each.generate_s for each in window) / total, abs=0.02)
    for each in window[:10]:
        expected = expected_s(
            calibration,
            retrieve_s=each.retrieve_s,
            rerank_s=each.rerank_s,
            generate_s=each.generate_s,
            computed_tokens=each.computed_tokens,
        )
        assert expected == pytest.approx(each.total_s, rel=0.05)


def test_few_answers_are_not_enough_and_profiles_are_apart() -> None:
    assert calibrate(answers(FEWEST - 1), "chat") is None
    assert calibrate(answers(50), "report") is None
    mixed = answers(50) + [dataclasses.replace(seen(9, answer=900), profile="report") for _ in range(20)]
    chat, report = calibrate(mixed, "chat"), calibrate(mixed, "report")
    assert chat is not None and report is not None and report.mean_total_s > 3 * chat.mean_total_s


def test_the_window_slides() -> None:
    slow = [dataclasses.replace(each, total_s=10 * each.total_s) for each in answers(50)]
    calibration = calibrate(slow + answers(WINDOW), "chat")
    assert calibration is not None and calibration == calibrate(answers(WINDOW), "chat")


def test_forecasts_tell_their_error_and_more_takes_longer() -> None:
    calibration = calibrate(answers(150), "chat")
    assert calibration is not None and 0 < calibration.error < 0.5 and calibration.tail >= 1
    seconds = [forecast(calibration, source_count=count).seconds for count in range(1, 10)]
    assert seconds == sorted(seconds) and seconds[-1] > 1.5 * seconds[0]


def test_no_more_sources_than_fit() -> None:
    calibration = calibrate(answers(150), "chat")
    assert calibration is not None
    plenty = choose(calibration, target_s=600, most_sources=9, most_looked=0)
    tight = choose(calibration, target_s=forecast(calibration, source_count=4).p95_s, most_sources=9, most_looked=0)
    none = choose(calibration, target_s=0.001, most_sources=9, most_looked=3)
    assert (plenty.source_count, tight.source_count, none.source_count, none.looked_count) == (9, 4, 1, 0)
    assert tight.p95_s <= forecast(calibration, source_count=4).p95_s


def test_second_looks_go_before_sources() -> None:
    window = [seen(1 + number % 8, looked=number % 5) for number in range(60)]
    calibration = calibrate(window, "chat")
    assert calibration is not None and calibration.looked_s == pytest.approx(0.2, rel=0.2)
    target = forecast(calibration, source_count=9, looked_count=2).p95_s
    chosen = choose(calibration, target_s=target, most_sources=9, most_looked=10)
    assert (chosen.source_count, chosen.looked_count) == (9, 2)


def test_a_report_is_broad_or_long() -> None:
    assert profile_of(broad=False, answer_tokens=256) == "chat"
    assert profile_of(broad=True, answer_tokens=256) == profile_of(broad=False, answer_tokens=2000) == "report"


@pytest.mark.parametrize("field", ["retrieve_s", "total_s", "computed_tokens"])
def test_what_can_be_no_observation_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        dataclasses.replace(seen(3), **{field: -1})
