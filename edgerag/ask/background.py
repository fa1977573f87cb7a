"""How much nearer a passage is to a question than any passage: a cosine that means the same for every embedder.

Two texts that have nothing to do with each other have a cosine of about 0 with one embedder and of 0.75 with another
(multilingual-e5), and of 0.84 in one of its languages; no threshold on the cosine itself fits them all. Taken above the
question's own background, which is its mean cosine with passages from all over the library, they are comparable
(docs/decisions/046 has the figures). Pure.
"""

from __future__ import annotations

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
