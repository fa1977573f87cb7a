from __future__ import annotations

import pytest

from edgerag.measure.search_width import LARGEST_EF, SMALLEST_EF, smallest_ef


@pytest.mark.parametrize("enough", [SMALLEST_EF, SMALLEST_EF + 1, 37, 80, 81, LARGEST_EF])
def test_the_smallest_width_that_is_enough(enough: int) -> None:
    asked: list[int] = []

    def measure(ef: int) -> float:
        asked.append(ef)
        return ef / enough

    assert smallest_ef(measure, 1.0) == (enough, 1.0)
    assert len(asked) == len(set(asked)) < 25


def test_the_largest_width_when_none_is_enough() -> None:
    assert smallest_ef(lambda _: 0.5, 0.95) == (LARGEST_EF, 0.5)
