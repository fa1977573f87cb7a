from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.index.catalogue import SegmentEntry
from edgerag.index.merging import plan_seal


def entry(number: int, rows: int, dead: int = 0) -> SegmentEntry:
    return SegmentEntry(number, f"{number}", rows, dead, 0, 0)


def test_a_large_segment_is_left_alone_by_a_small_one() -> None:
    assert plan_seal([entry(1, 1000)], 10).merged == ()


def test_small_segments_are_taken_in() -> None:
    segments = [entry(1, 1000), entry(2, 20), entry(3, 9)]
    assert [s.id for s in plan_seal(segments, 10).merged] == [2, 3]


def test_a_mostly_dead_segment_is_rewritten_without_new_vectors() -> None:
    plan = plan_seal([entry(1, 1000, 500), entry(2, 400, 10), entry(3, 5, 5)], 0)
    assert [s.id for s in plan.merged] == [1, 2], "what it is gathered with counts too"
    assert [s.id for s in plan.dropped] == [3]
    assert plan_seal([entry(1, 1000, 499)], 0).is_empty


def test_nothing_grows_beyond_the_bound() -> None:
    assert plan_seal([entry(1, 90)], 60, max_rows=100).merged == ()


@given(st.lists(st.integers(1, 5000), max_size=200))
def test_the_number_of_segments_stays_logarithmic(batches: list[int]) -> None:
    segments: list[SegmentEntry] = []
    for number, fresh in enumerate(batches):
        plan = plan_seal(segments, fresh)
        rows = fresh + sum(s.live_count for s in plan.merged)
        segments = [s for s in segments if s not in plan.merged] + [entry(number, rows)]
    assert sum(s.row_count for s in segments) == sum(batches)
    assert len(segments) <= 1 + sum(batches).bit_length()
