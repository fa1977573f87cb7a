from __future__ import annotations

import numpy as np

from edgerag.ask.features import NAMES
from edgerag.ask.rerank import Network, shipped


def random_rows(count: int) -> np.ndarray:
    network = shipped()
    noise = np.random.default_rng(1).normal(size=(count, len(NAMES)))
    return (network.mean + network.deviation * noise).astype(np.float32)


def test_the_weights_that_are_shipped_fit_the_features() -> None:
    network = shipped()
    assert network.hidden.shape[1] == len(NAMES) == len(network.mean) == len(network.linear)
    assert np.isfinite(network.scores(random_rows(50))).all()


def test_scores_are_the_sum_of_the_networks() -> None:
    generator = np.random.default_rng(2)
    parts = {
        "hidden": generator.normal(size=(2, 3, 4)),
        "bias": generator.normal(size=(2, 4)),
        "output": generator.normal(size=(2, 4)),
    }
    linear, rows = generator.normal(size=3), generator.normal(size=(5, 3)).astype(np.float32)
    network = Network(
        mean=np.zeros(3, np.float32),
        deviation=np.ones(3, np.float32),
        linear=linear.astype(np.float32),
        **{name: part.astype(np.float32) for name, part in parts.items()},
    )
    expected = rows @ linear + sum(
        np.tanh(rows @ parts["hidden"][k] + parts["bias"][k]) @ parts["output"][k] for k in range(2)
    )
    assert np.allclose(network.scores(rows), expected, atol=1e-5)


def test_a_value_far_beyond_the_training_counts_no_more_than_the_last_that_was_seen() -> None:
    network = shipped()
    far, farther = network.mean + 50 * network.deviation, network.mean + 5000 * network.deviation
    rows = np.stack([far, farther]).astype(np.float32)
    first, second = network.scores(rows)
    assert first == second
