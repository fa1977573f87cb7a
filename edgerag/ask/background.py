"""How much nearer a passage is to a question than any passage: a cosine that means the same for every embedder.

Two texts that have nothing to do with each other have a cosine of about 0 with one embedder and of 0.75 with another
(multilingual-e5), and of 0.84 in one of its languages; no threshold on the cosine itself fits them all. Taken above the
question's own background, which is its mean cosine with passages from all over the library, they are comparable
(docs/decisions/046 has the figures).
"""

from __future__ import annotations

import numpy as np

from edgerag.types import Embedder

_QUESTION = "Which colour do ripe lemons have?"
_STRANGERS = (
    "The committee adjourned the hearing until the third week of October.",
    "Tighten the four bolts crosswise, then start the motor.",
    "She played the second movement of the sonata too fast.",
)
_FOUND: dict[str, float] = {}  # by the weights, which decide it: a memo that keeps no embedder in memory
# A small library is mostly the answer: its own mean counts as much as the embedder's once it has so many passages.
_AS_GOOD_AS_THE_LIBRARY = 16


def background(*, mean_cosine: float, sampled: int, unrelated: float) -> float:
    """The cosine that the question has with any passage.

    ``mean_cosine`` is the product of the question's vector with Library.mean_vector(), over ``sampled`` passages;
    ``unrelated`` is the cosine that this embedder gives to texts that have nothing to do with each other.
    """
    return (sampled * mean_cosine + _AS_GOOD_AS_THE_LIBRARY * unrelated) / (sampled + _AS_GOOD_AS_THE_LIBRARY)


def above_background(cosine: float, *, background: float) -> float:
    """0 for a passage like any other, 1 for the question itself; below 0 for one that is further away."""
    return (cosine - background) / max(1e-6, 1.0 - background)


def unrelated_cosine(embedder: Embedder) -> float:
    """The cosine that an embedder gives to texts that have nothing to do with each other."""
    weights = embedder.identity.weights_sha256
    if weights not in _FOUND:
        _FOUND[weights] = float(np.mean(embedder.embed_passages(_STRANGERS) @ embedder.embed_query(_QUESTION)))
    return _FOUND[weights]
