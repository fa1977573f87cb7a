"""The simulated tail of answer times."""

from __future__ import annotations

import numpy as np
import pytest

from edgerag.measure.latency_tail import fit, simulate
from edgerag.types import Observation


def observations(count: int, *, seed: int, tied: float) -> list[Observation]:
    """Reading has two humps; ``tied``: how much writing goes with reading."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        length = random.standard_normal()
        read = float(np.exp((0.0 if random.random() < 0.7 else 1.5) + 0.3 * length))
        write = float(np.exp(0.2 + 0.5 * (tied * length + np.sqrt(1 - tied**2) * random.standard_normal())))
        retrieve, rerank = float(random.gamma(4, 0.005)), 0.004
        total = retrieve + rerank + read + write
        found.append(Observation("chat", retrieve, rerank, read, write, 800, 1000, 60, 4, 0, total))
    return found


@pytest.mark.parametrize("tied", [0.0, 0.95])
def test_the_95th_percentile_of_answers_that_it_has_not_seen(tied: float) -> None:
    measured = np.quantile([each.total_s for each in observations(4000, seed=2, tied=tied)], 0.95)
    assert simulate(observations(200, seed=1, tied=tied)).p95_s == pytest.approx(measured, rel=0.15)


def test_stages_that_go_together_have_a_longer_tail() -> None:
    random = np.random.default_rng(3)
    lengths = np.exp(0.8 * random.standard_normal(400))
    window = [Observation("chat", 0.02, 0.0, t, 2 * t, 1, 1, 1, 1, 0, 0.02 + 3 * t) for t in map(float, lengths)]
    tail = simulate(window)
    measured = np.quantile([each.total_s for each in window], 0.95)
    assert tail.p95_s == pytest.approx(measured, rel=0.1) and tail.independent_p95_s < 0.93 * measured


@pytest.mark.parametrize(
    ("family", "draw"),
    [
        ("gamma", lambda random: random.gamma(2.0, 1.0, 600)),
        ("log-normal", lambda random: np.exp(random.standard_normal(600))),
        ("two log-normals", lambda random: np.exp(np.repeat([0.0, 3.0], 300) + 0.2 * random.standard_normal(600))),
        ("constant", lambda _: np.full(20, 0.5)),
        ("constant", lambda _: np.zeros(20)),
    ],
)
def test_the_family_that_it_was_drawn_from_is_found(family: str, draw: object) -> None:
    values = draw(np.random.default_rng(5))  # type: ignore[operator]
    fitted = fit(values)
    assert fitted.family == family
    drawn = fitted.draw(np.random.default_rng(6), 20_000)
    for share in (0.25, 0.95):  # between two humps, where the middle may lie, there is next to nothing
        assert np.quantile(drawn, share) == pytest.approx(np.quantile(values, share), rel=0.15, abs=1e-9)


def test_a_stage_that_is_often_not_there_stays_so() -> None:
    values = np.where(np.random.default_rng(1).random(400) < 0.5, 0.0, 2.0 + np.random.default_rng(2).random(400))
    drawn = fit(values).draw(np.random.default_rng(3), 10_000)
    assert np.mean(drawn == 0) == pytest.approx(0.5, abs=0.08)


def test_the_same_answers_give_the_same_tail() -> None:
    window = observations(50, seed=4, tied=0.5)
    assert simulate(window) == simulate(window)
    with pytest.raises(ValueError, match="no distribution"):
        simulate(window[:1])
