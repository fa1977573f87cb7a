"""Is there anything here about this at all?

A chunk is judged by two signals that do not depend on how many documents the library holds: the
cosine between question and chunk, and the idf-weighted share of the question's content words that
stand in the chunk. Both go into one logistic function; without a trusted cosine the words decide
alone. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# PLACEHOLDER calibration; see bench/retrieval.py
_BOTH = (-6.0, 9.0, 4.0)
_WORDS_ONLY = (-4.0, 8.0)
FOUND_PROBABILITY = 0.5


def chunk_probability(*, cosine: float | None, coverage: float) -> float:
    """Probability (0..1) that a chunk has to do with what is asked.

    ``cosine`` is None when the vector leg did not see the chunk or does not know the language.
    """
    if cosine is None:
        bias, weight = _WORDS_ONLY
        logit = bias + weight * coverage
    else:
        bias, cosine_weight, coverage_weight = _BOTH
        logit = bias + cosine_weight * cosine + coverage_weight * coverage
    return 1.0 / (1.0 + math.exp(-logit))


def anything_relevant(probabilities: Sequence[float]) -> bool:
    """Whether the best of the chunks is good enough to answer from."""
    return max(probabilities, default=0.0) >= FOUND_PROBABILITY
