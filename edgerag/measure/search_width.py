"""The smallest ef_search that reaches a recall: what "its best ef" means when two indexes are compared."""

from __future__ import annotations

from collections.abc import Callable

SMALLEST_EF, LARGEST_EF = 10, 2_000


def smallest_ef(measure: Callable[[int], float], target: float) -> tuple[int, float]:
    """(ef, its recall): the smallest that reaches ``target``, found by doubling, then by halving the gap.

    The largest there is, with the recall that it has, when none does. ``measure(ef)`` is asked once for each ef.
    """
    below, ef, found = SMALLEST_EF - 1, SMALLEST_EF, measure(SMALLEST_EF)
    while found < target and ef < LARGEST_EF:
        below, ef = ef, min(2 * ef, LARGEST_EF)
        found = measure(ef)
    if found < target:
        return ef, found
    while ef - below > 1:
        middle = (below + ef) // 2
        reached = measure(middle)
        if reached >= target:
            ef, found = middle, reached
        else:
            below = middle
    return ef, found
