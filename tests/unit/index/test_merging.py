from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.index.catalogue import SegmentEntry
from edgerag.index.merging import MAX_SEGMENT_ROWS, MIN_SEGMENT_ROWS, compaction, next_merge, rows_for

PLENTY = 10**9


def entry(number: int, rows: int, dead: int = 0) -> SegmentEntry:
    return SegmentEntry(number, f"{number}", rows, dead, 0, 0)


def ids(segments: tuple[SegmentEntry, ...]) -> list[int]:
    return [segment.id for segment in segments]


def sealed(segments: list[SegmentEntry], fresh: int, *, max_rows: int = PLENTY) -> list[SegmentEntry]:
    """The segments after ``fresh`` vectors were sealed: merges until there are none."""
    for _ in range(1000):
        group = next_merge(segments, fresh, max_rows=max_rows)
        if not group and not fresh:
            return segments
        rows = fresh + sum(segment.live_count for segment in group)
        number = max((segment.id for segment in segments), default=0) + 1
        parts = -(-rows // max_rows)
        made = [entry(number + part, rows // parts + (part < rows % parts)) for part in range(parts)]
        segments, fresh = [segment for segment in segments if segment not in group] + made, 0
    raise AssertionError("it does not end")


def test_a_large_segment_is_left_alone_by_a_small_one() -> None:
    assert next_merge([entry(1, 1_000_000)], 1_000, max_rows=PLENTY) == ()
    assert next_merge([entry(1, 1_000_000), entry(2, 1_000)], 0, max_rows=PLENTY) == ()


def test_small_segments_are_taken_in() -> None:
    segments = [entry(1, 1000), entry(2, 20), entry(3, 9)]
    assert ids(next_merge(segments, 10, max_rows=PLENTY)) == [2, 3]


def test_segments_of_a_long_ingest_are_joined_at_its_end() -> None:
    segments = [entry(number, 8_192) for number in range(1, 62)]
    assert len(next_merge(segments, 100, max_rows=PLENTY)) == 61, "each new one is small beside them"
    rows = [segment.row_count for segment in sealed(segments, 0, max_rows=100_000)]
    assert sorted(rows) == [8_192, *[98_304] * 5]


def test_a_mostly_dead_segment_is_rewritten_without_new_vectors() -> None:
    assert ids(next_merge([entry(1, 1000, 500), entry(2, 400, 10), entry(3, 5, 5)], 0, max_rows=PLENTY)) == [1, 2]
    assert next_merge([entry(1, 1000, 499)], 0, max_rows=PLENTY) == ()
    assert ids(next_merge([entry(1, 1000, 500)], 0, max_rows=100)) == [1], "also one that is larger than can be built"


def test_nothing_grows_beyond_the_bound() -> None:
    assert next_merge([entry(1, 90)], 60, max_rows=100) == ()


@given(st.lists(st.integers(1, 5000), max_size=100))
def test_the_number_of_segments_stays_logarithmic(batches: list[int]) -> None:
    segments: list[SegmentEntry] = []
    for fresh in batches:
        segments = sealed(segments, fresh)
    assert sum(s.row_count for s in segments) == sum(batches)
    assert len(segments) <= 1 + sum(batches).bit_length()


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=30), st.integers(0, 300))
def test_sealing_and_compacting_end_and_hold_the_bound(shapes: list[tuple[int, int]], fresh: int) -> None:
    segments = [entry(n, rows, min(dead, rows)) for n, (rows, dead) in enumerate(shapes, 1)]
    live = fresh + sum(segment.live_count for segment in segments)
    segments = [segment for segment in segments if segment.live_count]
    after = sealed(segments, fresh, max_rows=100)
    assert sum(segment.live_count for segment in after) == live
    assert all(s.row_count <= 100 or s in segments for s in after)
    rewritten = compaction(after, 0, max_rows=100)
    rows = sum(segment.live_count for segment in rewritten)
    parts = -(-rows // 100)
    left = [segment for segment in after if segment not in rewritten]
    if rewritten:
        assert parts < len(rewritten) or any(segment.dead_count for segment in rewritten), "something is gained"
    assert compaction([*left, *(entry(900 + p, -(-rows // parts)) for p in range(parts))], 0, max_rows=100) == ()


def test_compacting_joins_all_that_fits_and_leaves_what_is_full() -> None:
    full, large = entry(1, 100), entry(2, 400, 10)
    small = [entry(number, 20) for number in (3, 4, 5)]
    assert ids(compaction([full, large, *small], 0, max_rows=100)) == [3, 4, 5]
    assert compaction([full, large, entry(3, 60)], 0, max_rows=100) == (), "one alone is as few as can be"
    assert ids(compaction([full, entry(3, 60, 1)], 0, max_rows=100)) == [3], "its removed row goes"
    assert ids(compaction([dataclasses.replace(large, dead_count=200)], 0, max_rows=100)) == [2]


@pytest.mark.parametrize(
    ("free_bytes", "dimension", "rows"),
    [
        (0, 384, MIN_SEGMENT_ROWS),
        (10**13, 384, MAX_SEGMENT_ROWS),
        (1_000_000_000, 384, 150_966),  # 3,312 bytes each in half of it
        (1_000_000_000, 1024, 59_297),
    ],
)
def test_a_segment_is_as_large_as_the_free_memory_can_build(free_bytes: int, dimension: int, rows: int) -> None:
    assert rows_for(free_bytes, dimension=dimension, m=16) == rows


def test_more_links_or_dimensions_make_smaller_segments() -> None:
    free = 2_000_000_000
    base = rows_for(free, dimension=384, m=16)
    assert rows_for(free, dimension=768, m=16) < base > rows_for(free, dimension=384, m=64)
