"""Whether a series of samples grows: a straight line that outliers do not bend.

Theil (1950) and Sen (1968): the slope is the median of the slopes of all pairs, and its confidence interval holds the
slopes whose rank Kendall's statistic allows. No sample may drag it, as one slow moment drags a least-squares line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_Z_95 = 1.96
_MOST_SAMPLES = 600  # of all pairs; of more, every n-th is taken


@dataclass(frozen=True, slots=True)
class Growth:
    """Over the whole series, in the unit of its values."""

    median: float  # of the values
    growth: float  # of the line, from the first sample to the last
    low: float  # of it, with 95 % confidence
    high: float

    @property
    def share(self) -> float:
        """Of the median."""
        return self.growth / self.median if self.median else 0.0

    @property
    def low_share(self) -> float:
        return self.low / self.median if self.median else 0.0


def growth(values: Sequence[float]) -> Growth:
    """Of at least three equally spaced samples."""
    series = np.asarray(values, dtype=np.float64)
    series = series[:: -(-len(series) // _MOST_SAMPLES)]
    count = len(series)
    assert count >= 3, "a slope of fewer than three samples says nothing"
    first, second = np.triu_indices(count, k=1)
    slopes = np.sort((series[second] - series[first]) / (second - first))
    spread = _Z_95 * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int((len(slopes) - spread) // 2))
    high = min(len(slopes) - 1, int((len(slopes) + spread) // 2))
    whole = count - 1
    middle = float(np.median(slopes))
    return Growth(float(np.median(series)), middle * whole, float(slopes[low]) * whole, float(slopes[high]) * whole)
