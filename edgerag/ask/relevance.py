"""Is there anything here about this at all?

A chunk is judged by signals that do not depend on how many documents the library holds: how much nearer its vector
is to the question than any chunk's, and the share of the question's content words, weighed by rarity, that stand in
the chunk and in one place of it. They go into one logistic function; without vectors the words decide alone. Pure.

The constants are fitted by ``python bench/refusal.py`` on half of its questions and judged on the
other half; docs/decisions/042 has the error rates. They are those of questions about another subject
in the same style, which is the hardest case, moved a little towards answering: a passage shown in
vain costs a glance, a refusal hides what is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgerag.types import Hit, Plan

JUDGED_HITS = 10  # hits looked at for whether they are relevant; sources come from the first of them
# bias, weight of the nearness, weight of the words covered. The public questions share more words with their passages
# than a user's do, so a passage half as near as the question itself is found without any word, and one that holds all
# words however far it is.
_NEARNESS_AND_WORDS = (-9.3, 18.0, 8.7)
# bias, weight of the words covered, weight of those that stand together
_WORDS = (-5.8, 9.7, 6.5)
# The same for scripts without spaces: their "words" are pairs of characters, of which a passage that
# answers holds fewer.
_PAIRS_OF_CHARACTERS = (-8.3, 14.5, 6.2)
_UNSPACED_SCRIPTS = frozenset({"han", "kana", "thai", "lao", "khmer", "myanmar"})


def chunk_probability(*, nearness: float | None, covered: float, together: float, script: str) -> float:
    """Probability (0..1) that a chunk has to do with what is asked.

    ``nearness``, ``covered`` and ``together`` are those of its scores; ``script`` is that of the question.
    """
    if nearness is not None:
        bias, nearness_weight, covered_weight = _NEARNESS_AND_WORDS
        # Further away than a passage like any other says no more than that.
        logit = bias + nearness_weight * max(0.0, nearness) + covered_weight * covered
    else:
        bias, covered_weight, together_weight = _PAIRS_OF_CHARACTERS if script in _UNSPACED_SCRIPTS else _WORDS
        logit = bias + covered_weight * covered + together_weight * together
    return 1.0 / (1.0 + math.exp(-logit))


def judged_count(plan: Plan) -> int:
    """How many of the best hits are judged: enough to choose its sources from."""
    return max(JUDGED_HITS, 2 * plan.source_count)


def probabilities_of(hits: Sequence[Hit], *, script: str, has_vectors: bool = True) -> dict[int, float]:
    """The probability of each hit, by its chunk; without ``has_vectors`` by words alone."""
    return {
        hit.chunk.id: chunk_probability(
            nearness=hit.scores.nearness if has_vectors else None,
            covered=hit.scores.covered,
            together=hit.scores.together,
            script=script,
        )
        for hit in hits
    }
