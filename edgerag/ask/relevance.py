"""Is there anything here about this at all?

A chunk is judged by two signals that do not depend on how many documents the library holds: the
cosine between question and chunk, and the idf-weighted share of the question's content words that
stand in the chunk. Both go into one logistic function; without a trusted cosine the words decide
alone. Pure.

The constants are fitted by ``python bench/refusal.py`` on half of its questions and judged on the
other half; docs/decisions/042 has the error rates. They are those of questions about another subject
in the same style, which is the hardest case, moved a little towards answering: a passage shown in
vain costs a glance, a refusal hides what is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgerag.ask.plan import VECTOR_WEIGHT
from edgerag.types import Plan, Scores

# bias, weight of the cosine, weight of the coverage
_COSINE_AND_WORDS = (-8.5, 15.5, 10.1)
# bias, weight of the coverage: found from a coverage of 0.32 on
_WORDS = (-5.5, 14.5)
# The same for scripts without spaces: their "words" are pairs of characters, of which a passage that
# answers holds fewer. Found from 0.25 on.
_PAIRS_OF_CHARACTERS = (-6.0, 20.6)
_UNSPACED_SCRIPTS = frozenset({"han", "kana", "thai", "lao", "khmer", "myanmar"})

# Below even odds: a passage shown in vain costs a glance, a refusal hides what is there.
FOUND_PROBABILITY = 0.3


def chunk_probability(*, cosine: float | None, coverage: float, script: str) -> float:
    """Probability (0..1) that a chunk has to do with what is asked.

    ``cosine`` is None when the vector leg cannot tell about the chunk or does not know the language;
    ``script`` is that of the question.
    """
    if cosine is not None:
        bias, cosine_weight, coverage_weight = _COSINE_AND_WORDS
        logit = bias + cosine_weight * cosine + coverage_weight * coverage
    else:
        bias, coverage_weight = _PAIRS_OF_CHARACTERS if script in _UNSPACED_SCRIPTS else _WORDS
        logit = bias + coverage_weight * coverage
    return 1.0 / (1.0 + math.exp(-logit))


def judged_cosine(plan: Plan, scores: Scores, *, ceiling: float | None) -> float | None:
    """The cosine to judge a hit by: its own, else the highest it can have, None when it says nothing."""
    if plan.vector_weight < VECTOR_WEIGHT:
        return None  # of an embedder that does not know the language
    return ceiling if scores.vector is None else scores.vector


def anything_relevant(probabilities: Sequence[float]) -> bool:
    """Whether the best of the chunks is good enough to answer from."""
    return max(probabilities, default=0.0) >= FOUND_PROBABILITY
