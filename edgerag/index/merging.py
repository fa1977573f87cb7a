"""Which segments a seal takes in, so that their number stays small without rewriting everything each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgerag.index.catalogue import SegmentEntry

# Rows of one segment at most: at 384 dimensions hnswlib needs by calculation 450 MB to build it.
MAX_SEGMENT_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class SealPlan:
    """What a seal is to do."""

    merged: tuple[SegmentEntry, ...]  # whose live rows go into the new segment
    dropped: tuple[SegmentEntry, ...]  # all dead: only taken out

    @property
    def is_empty(self) -> bool:
        return not self.merged and not self.dropped


def plan_seal(segments: Sequence[SegmentEntry], fresh_count: int, *, max_rows: int = MAX_SEGMENT_ROWS) -> SealPlan:
    """The segments to merge with ``fresh_count`` new vectors.

    Like a binary counter: a segment is taken in while it is no more than twice what has come together, so n
    vectors lie in O(log n) segments and each is rewritten O(log n) times. A segment that is half
    dead is rewritten whatever its size. Nothing grows beyond ``max_rows``.
    """
    dropped = tuple(segment for segment in segments if not segment.live_count)
    alive = sorted((segment for segment in segments if segment.live_count), key=lambda s: (s.live_count, s.id))
    gathered = fresh_count
    merged: list[SegmentEntry] = []
    for segment in sorted(alive, key=lambda s: not _is_mostly_dead(s)):  # those that must go come first
        wanted = _is_mostly_dead(segment) or segment.live_count <= 2 * gathered
        if wanted and (not gathered or gathered + segment.live_count <= max_rows):
            merged.append(segment)
            gathered += segment.live_count
    return SealPlan(tuple(sorted(merged, key=lambda s: s.id)), dropped)


def _is_mostly_dead(segment: SegmentEntry) -> bool:
    return segment.dead_count * 2 >= segment.row_count
