"""Checks what checksums cannot: that the links of a segment lead to rows that exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw import codes
from edgerag.index.hnsw.format import Header, Section, SectionKind
from edgerag.index.hnsw.source import SegmentSource

_PIECE_ROWS = 4096  # unpacked at a time: some megabytes
# (n, row bytes) to (n,) counts and (n, most links) links.
_Unpack = Callable[[NDArray[np.uint8]], tuple[NDArray[np.int64], NDArray[np.int64]]]


def graph_faults(header: Header, source: SegmentSource) -> list[str]:
    """Sentences about links out of range, of blocks that match their checksums; empty if all are good."""
    if header.version == 1:
        return _faults(header, source, SectionKind.LINKS_1, _old_links, header.row_count) + _faults(
            header, source, SectionKind.LEVELS_1, lambda rows: _old_links(rows[:, 4:]), header.row_count
        )

    def unpack(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return codes.unpack_links(rows, header.row_count, header.m0)

    return _faults(header, source, SectionKind.LINKS, unpack, header.row_count) + _level_faults(header, source)


def _faults(header: Header, source: SegmentSource, kind: SectionKind, unpack: _Unpack, bound: int) -> list[str]:
    section = header.section(kind)
    faults = []
    for start, rows in _pieces(section, source) if section else ():
        counts, links = unpack(rows)
        used = np.arange(links.shape[1]) < counts[:, None]
        if (counts > links.shape[1]).any() or (links[used] >= bound).any():
            faults.append(f"links near row {start} of {kind.title} lead out of the segment")
    return faults


def _level_faults(header: Header, source: SegmentSource) -> list[str]:
    """Rows ascend within a level, links and the position below lead to records, and those below to the same row."""
    section = header.section(SectionKind.LEVELS)
    if section is None:
        return ["the levels are missing"]
    width = 3 + header.m
    pieces = [np.ascontiguousarray(rows).view("<u4").astype(np.int64) for _, rows in _pieces(section, source)]
    numbers = np.concatenate(pieces) if pieces else np.zeros((0, width), dtype=np.int64)  # few rows: no upper level
    faults, start, below = [], 0, np.zeros(0, dtype=np.int64)
    for level, count in enumerate(header.level_counts, 1):
        part = numbers[start : start + count]
        rows, positions, counts, links = part[:, 0], part[:, 1], part[:, 2], part[:, 3:]
        used = np.arange(header.m) < counts[:, None]
        good = [
            bool((np.diff(rows) > 0).all()),
            bool((rows < header.row_count).all()),
            bool((counts <= header.m).all()),
        ]
        good.append(bool((links[used] < count).all()))
        if level == 1:
            below = np.arange(header.row_count)
        good.append(bool((positions < len(below)).all()) and np.array_equal(below[positions], rows))
        if not all(good):
            faults.append(f"records of level {level} contradict each other")
            break
        start, below = start + count, rows
    if header.level_counts and not faults and below[header.entry_position] != header.entry_point:
        faults.append("the entry point is not where the header says")
    return faults


def _pieces(section: Section, source: SegmentSource) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """(first row, (n, row bytes)) through the section."""
    groups_at_once = max(1, _PIECE_ROWS // section.rows_per_group)
    used = section.rows_per_group * section.row_bytes
    for group in range(0, section.length // section.group_bytes, groups_at_once):
        groups = min(groups_at_once, section.length // section.group_bytes - group)
        raw = np.empty(groups * section.group_bytes, dtype=np.uint8)
        if source.read_into(raw.data, section.offset + group * section.group_bytes) < len(raw):
            raw[:] = 0xFF  # cut short meanwhile: nothing in it leads anywhere
        rows = raw.reshape(groups, section.group_bytes)[:, :used].reshape(-1, section.row_bytes)
        first = group * section.rows_per_group
        yield first, rows[: section.row_count - first]


def _old_links(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers = np.ascontiguousarray(rows).view("<u4").astype(np.int64)
    return numbers[:, 0], numbers[:, 1:]
