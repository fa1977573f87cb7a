"""The reranker: a small network that orders candidates by what features.py tells of them.

A few thousand parameters in numpy, about a millisecond for all candidates of a question. Trained by
``bench/train_reranker.py`` on questions that no figure is reported of; its weights lie beside this file with the names
of the columns they are for. Pure; the same features always give the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from edgerag.ask.features import NAMES, Matrix

WEIGHTS_FILE = "reranker.npz"
# Beyond so many standard deviations of the training data a column says nothing more.
MOST_DEVIATIONS = 6.0


@dataclass(frozen=True, slots=True)
class Network:
    """``hidden`` and ``output`` are those of several networks, whose scores are added: (k, F, H), (k, H), (k, H)."""

    mean: NDArray[np.float32]  # (F,)
    deviation: NDArray[np.float32]  # (F,)
    hidden: NDArray[np.float32]
    bias: NDArray[np.float32]
    output: NDArray[np.float32]
    linear: NDArray[np.float32]  # (F,)

    def scores(self, rows: Matrix) -> NDArray[np.float32]:
        """(n,) for (n, F) features; only their differences mean something: softmax of them is a probability."""
        normal = np.clip((rows - self.mean) / self.deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        active = np.tanh(normal @ self.hidden + self.bias[:, None, :])  # (k, n, H)
        scores: NDArray[np.float32] = (active @ self.output[:, :, None]).sum(axis=(0, 2)) + normal @ self.linear
        return scores


@cache
def shipped() -> Network:
    """The network that comes with the program."""
    data = files("edgerag.ask").joinpath(WEIGHTS_FILE).read_bytes()
    with np.load(BytesIO(data)) as stored:
        names = tuple(stored["names"].tolist())
        assert names == NAMES, f"{WEIGHTS_FILE} was trained for other features: run bench/train_reranker.py"
        return Network(**{name: stored[name] for name in ("mean", "deviation", "hidden", "bias", "output", "linear")})
