"""Opens a segment file where it lies and searches it there.

Opening reads the header and nothing else. A block's checksum is verified when a row of it is first
touched, through ``pread``, which leaves the process's resident pages alone; a damaged block is named and
never searched. Every id that comes out of the file is checked before it is used as an index.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw import kernel
from edgerag.index.hnsw.format import Header, Section, SectionKind
from edgerag.index.hnsw.residency import WINDOW_BYTES, BlockMap, Residency
from edgerag.types import EmbedderIdentity, LegHit

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Fewer live rows than this are compared one by one: exact, and faster than walking a graph.
FLAT_ROWS = 5_000
_VERIFY_BYTES = 2**20


class Segment:
    """One mapped segment. Usable from one thread at a time; results are deterministic."""

    def __init__(
        self, path: Path, *, identity: EmbedderIdentity, residency: Residency, flat_rows: int = FLAT_ROWS
    ) -> None:
        """Raises what read_header raises; FileNotFoundError if the file is gone."""
        self.path = path
        self._flat_rows = flat_rows
        self.header: Header = layout.read_header(path, identity=identity)
        self._residency = residency
        self._descriptor = os.open(path, os.O_RDONLY)
        try:
            mapping = mmap.mmap(self._descriptor, self.header.file_bytes, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._spans = layout.block_spans(self.header)
        self._verified = np.zeros(len(self._spans), dtype=np.bool_)
        first = {}
        count = 0
        for section in self.header.sections:
            first[section.kind] = count
            count += section.block_count
        levels = next((s for s in self.header.sections if s.kind is SectionKind.LEVELS), None)
        pinned = range(first[levels.kind], first[levels.kind] + levels.block_count) if levels else range(0)
        self.blocks = BlockMap(mapping, self._spans, pinned=pinned)
        residency.add(self.blocks)
        self._rows = {s.kind: _SectionRows(self, mapping, s, first[s.kind]) for s in self.header.sections}

    @property
    def row_count(self) -> int:
        return self.header.row_count

    @property
    def vector_rows(self) -> kernel.VectorRows:
        """The vectors as the kernel takes them."""
        return self._rows[SectionKind.VECTORS]

    @property
    def entry_point(self) -> int:
        return self.header.entry_point

    @property
    def max_level(self) -> int:
        return self.header.max_level

    def search(self, query: Vectors, *, limit: int, ef_search: int, dead: NDArray[np.bool_] | None) -> list[LegHit]:
        """At most ``limit`` live rows as (chunk id, cosine), best first, equal ones by id.

        Raises LibraryDamaged naming file and block.
        """
        live = self.row_count if dead is None else self.row_count - int(dead.sum())
        if limit < 1 or not live:
            return []
        vectors = self.vector_rows
        if live < self._flat_rows or not self.header.has_graph or limit >= live:
            rows = np.arange(self.row_count) if dead is None else np.flatnonzero(~dead)
            # A few more than asked for, because equal vectors may differ in the last bit here.
            found = kernel.search_flat(vectors, query, limit=limit + 8, live=rows)
        else:
            found = kernel.search_graph(self, vectors, query, ef=max(ef_search, limit), dead=dead)
        similarities = kernel.exact_similarities(vectors.take(found.rows), query)
        ids = self.labels(found.rows)
        order = np.lexsort((ids, -similarities))[:limit]
        self._residency.settle()
        return [LegHit(int(ids[i]), float(similarities[i])) for i in order]

    def neighbours(self, level: int, row: int) -> NDArray[np.int64]:
        """The links of a node, checked."""
        if level == 0:
            record = self._rows[SectionKind.LINKS].take_one(row)
            count, links = int(record[0]), record[1:]
        else:
            record = self._rows[SectionKind.LEVELS].take_one(self._level_row(level, row))
            count, links = int(record[1]), record[2:]
        if count > len(links):
            raise layout.damaged(self.path, f"has a damaged link list (row {row}, level {level}: {count} links)")
        rows: NDArray[np.int64] = links[:count].astype(np.int64)
        if count and int(rows.max()) >= self.row_count:
            raise layout.damaged(self.path, f"has a damaged link list (row {row}, level {level}: {int(rows.max())})")
        return rows

    def _level_row(self, level: int, row: int) -> int:
        """Where the node stands in the section of the upper levels, by binary search."""
        counts = self.header.level_counts
        low = sum(counts[: level - 1])
        end = high = low + counts[level - 1]
        section = self._rows[SectionKind.LEVELS]
        while low < high:
            middle = (low + high) // 2
            if int(section.take_one(middle)[0]) < row:
                low = middle + 1
            else:
                high = middle
        if low == end or int(section.take_one(low)[0]) != row:
            raise layout.damaged(self.path, f"has a damaged link list (row {row} is not on level {level})")
        return low

    def labels(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Chunk ids of rows."""
        labels: NDArray[np.int64] = self._rows[SectionKind.LABELS].take(rows)[:, 0].astype(np.int64)
        return labels

    def vectors(self, rows: NDArray[np.int64]) -> Vectors:
        """(len(rows), dim) float32, copied out of the file."""
        return self._rows[SectionKind.VECTORS].take(rows)

    def damage(self) -> list[str]:
        """Every block that does not match its checksum, and every link that leads nowhere; empty if whole."""
        faults = []
        for block in range(len(self._spans)):
            if not self._matches(block):
                faults.append(f"{layout.block_name(self.header, block)} does not match its checksum")
            else:
                self._verified[block] = True
        if faults or not self.header.has_graph:
            return faults
        for kind, skipped in ((SectionKind.LINKS, 0), (SectionKind.LEVELS, 1)):
            section = self._rows[kind]
            for start in range(0, section.row_count, FLAT_ROWS):
                records = section.take(np.arange(start, min(start + FLAT_ROWS, section.row_count)))[:, skipped:]
                used = np.arange(records.shape[1] - 1) < records[:, :1]
                if (records[:, 0] >= records.shape[1]).any() or (records[:, 1:][used] >= self.row_count).any():
                    faults.append(f"links near row {start} of {kind.name.lower()} lead out of the segment")
        self._residency.settle()
        return faults

    def verify_blocks(self, blocks: NDArray[np.int64]) -> None:
        """Verifies those of ``blocks`` that were not yet. Raises LibraryDamaged naming the first bad one."""
        for block in np.unique(blocks[~self._verified[blocks]]).tolist():
            if not self._matches(block):
                raise layout.damaged(self.path, f"is damaged in {layout.block_name(self.header, block)} (checksum)")
            self._verified[block] = True

    def _matches(self, block: int) -> bool:
        start, end = self._spans[block]
        crc = 0
        for position in range(start, end, _VERIFY_BYTES):
            crc = zlib.crc32(os.pread(self._descriptor, min(_VERIFY_BYTES, end - position), position), crc)
        return crc == self.header.block_crcs[block]

    def touch(self, blocks: NDArray[np.int64], windows: NDArray[np.int64]) -> None:
        """To be called with the blocks and the windows of rows about to be read."""
        if not self._verified[blocks].all():
            self.verify_blocks(blocks)
        self._residency.touch(self.blocks, blocks, windows)

    @property
    def rows_at_once(self) -> int:
        """So many rows may be read at once, wherever they lie."""
        return self._residency.room_bytes // WINDOW_BYTES if self._residency.is_short else self.row_count

    def close(self) -> None:
        """Unmaps the file; arrays taken from it were copies and stay good."""
        if self._descriptor < 0:
            return
        self._residency.remove(self.blocks)
        self._rows.clear()
        with contextlib.suppress(BufferError):  # still used by a frame of an error being reported; freed with it
            self.blocks.mapping.close()
        os.close(self._descriptor)
        self._descriptor = -1


class _SectionRows:
    """The rows of one section, verified and noted before they are read."""

    def __init__(self, segment: Segment, mapping: mmap.mmap, section: Section, first_block: int) -> None:
        dtype: np.dtype[Any] = np.dtype(layout.ENCODING_DTYPE[section.encoding])
        groups = section.length // section.group_bytes
        self._view = np.ndarray(
            shape=(groups, section.rows_per_group, section.row_bytes // dtype.itemsize),
            dtype=dtype,
            buffer=mapping,
            offset=section.offset,
            strides=(section.group_bytes, section.row_bytes, dtype.itemsize),
        )
        self._segment = segment
        self._offset = section.offset
        self._group_bytes = section.group_bytes
        self._row_bytes = section.row_bytes
        self._rows_per_group = section.rows_per_group
        self._rows_per_block = (segment.header.block_bytes // section.group_bytes) * section.rows_per_group
        self._first_block = first_block
        self.row_count = section.row_count

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """(len(rows), width), a copy."""
        groups, places = rows // self._rows_per_group, rows % self._rows_per_group
        blocks = self._first_block + rows // self._rows_per_block
        windows = (self._offset + groups * self._group_bytes + places * self._row_bytes) // WINDOW_BYTES
        most = self._segment.rows_at_once
        if len(rows) <= most:
            self._segment.touch(blocks, windows)
            taken: NDArray[Any] = self._view[groups, places]
            return taken
        # In pieces: a new one wherever another window would be one too many. In order of
        # the rows there are as few windows as can be, and scans come in that order.
        entered = np.cumsum(np.diff(windows, prepend=windows[0] - 1) != 0) - 1
        edges = np.searchsorted(entered, np.arange(0, int(entered[-1]) + 1, most)).tolist()
        taken = np.empty((len(rows), self._view.shape[2]), dtype=self._view.dtype)
        for start, end in zip(edges, [*edges[1:], len(rows)], strict=True):
            self._segment.touch(blocks[start:end], windows[start:end])
            taken[start:end] = self._view[groups[start:end], places[start:end]]
        return taken

    def take_one(self, row: int) -> NDArray[Any]:
        """(width,), a copy."""
        record: NDArray[Any] = self.take(np.array([row]))[0]
        return record
