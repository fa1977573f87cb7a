"""Which segments are made one, and how large one may be: pure rules, without files.

A seal keeps the number of segments small without rewriting everything each time; a compaction, which the user
asks for, makes it as small as it can be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edgerag.index.catalogue import SegmentEntry

# A segment of more rows would be built in one go for the better part of an hour. The format allows 2^31.
MAX_SEGMENT_ROWS = 1_048_576
# Segments below this need no graph, and so no memory for one; a machine that cannot build so much has none at all.
MIN_SEGMENT_ROWS = 5_000
# Of the free memory; the rest is for the models, for what else runs, and for errors of this estimate.
_SHARE = 0.5


def rows_for(free_bytes: int, *, dimension: int, m: int) -> int:
    """The most rows of a segment that hnswlib can build in ``free_bytes`` of memory.

    While it builds, a row takes its record (links of level 0, vector, label) and about 100 bytes beside it
    (lock, level, label table, upper levels), and its vector a second time as input, mapped from a file.
    """
    record_bytes = 4 + 4 * 2 * m + 4 * dimension + 8
    row_bytes = record_bytes + 100 + 4 * dimension
    return max(MIN_SEGMENT_ROWS, min(MAX_SEGMENT_ROWS, int(free_bytes * _SHARE) // row_bytes))


def next_merge(
    segments: Sequence[SegmentEntry], fresh_count: int, *, max_rows: int, outdated: Collection[int] = ()
) -> tuple[SegmentEntry, ...]:
    """The segments to make one with ``fresh_count`` new vectors; asked again after each, until there are none.

    By size from the smallest: up to the largest that is no more than twice what comes before it. So those that
    stay grow threefold from one to the next, n vectors lie in O(log n) of them, and each vector is
    rewritten O(log n) times. One that is half dead, or whose file is of an older format (``outdated``, ids), is
    rewritten whatever its size. Else nothing grows beyond ``max_rows``.
    """
    alive = sorted((segment for segment in segments if segment.live_count), key=lambda s: (s.live_count, s.id))
    group: list[SegmentEntry] = []
    total = fresh_count
    for segment in alive:
        must_go = segment.id in outdated or _is_mostly_dead(segment)
        if must_go and (not total or total + segment.live_count <= max_rows):
            group.append(segment)
            total += segment.live_count
    rest = [segment for segment in alive if segment not in group]
    wanted = 0
    for count, segment in enumerate(rest, start=1):
        if total + segment.live_count > max_rows:
            break
        if total and segment.live_count <= 2 * total:
            wanted = count
        total += segment.live_count
    return tuple(sorted([*group, *rest[:wanted]], key=lambda s: s.id))


def compaction(
    segments: Sequence[SegmentEntry], fresh_count: int, *, max_rows: int, outdated: Collection[int] = ()
) -> tuple[SegmentEntry, ...]:
    """The segments that a compaction rewrites, oldest first; none where there is nothing to gain.

    One that is full or larger is left alone, unless it is half dead or its file is of an older format
    (``outdated``, ids): to cut it would make more segments, not fewer.
    """
    movable = [
        segment
        for segment in segments
        if segment.live_count < max_rows
        or segment.id in outdated
        or (segment.dead_count and segment.live_count == max_rows)
        or _is_mostly_dead(segment)
    ]
    total = fresh_count + sum(segment.live_count for segment in movable)
    fewest = -(-total // max_rows)
    stays = not any(segment.dead_count or segment.id in outdated for segment in movable)
    if not fresh_count and len(movable) <= fewest and stays:
        return ()
    return tuple(sorted(movable, key=lambda s: s.id))


def _is_mostly_dead(segment: SegmentEntry) -> bool:
    return segment.dead_count * 2 >= segment.row_count
