"""The searcher in numpy: fallback where kernel.c was not compiled, and the oracle that it is tested against.

Every float operation stands in the order in which the kernel does it, so both give the same hits, bit for
bit. Algorithm: Malkov and Yashunin, arXiv:1603.09320, algorithms 2 and 5, on estimates from codes.
"""

from __future__ import annotations

import bisect
import zlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.units import UnitDamaged
from edgerag.index.hnsw import codes, view
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Encoding, Section, SectionKind
from edgerag.index.hnsw.residency import WINDOW_BYTES
from edgerag.index.hnsw.view import Effort, Found, Room, Rows, SegmentView, Similarities, Walk

if TYPE_CHECKING:
    from edgerag.types import Vectors

_TOGETHER = 3  # rows whose links are followed before what they lead to is compared; as in the kernel
_LANES = 16  # partial sums of a product
_NO_SIMILARITY = -2  # instead of NaN, which damage under a right checksum can give: below every cosine


class ReferenceSearcher:
    """Searches one segment; usable from many threads at once."""

    def __init__(self, segment: SegmentView, *, by_rows: bool = False) -> None:
        """``by_rows``: each row is read from the file, and nothing through the mapping; so is an encrypted one's."""
        self._view = segment
        self._header = segment.header
        by_rows = by_rows or segment.is_encrypted
        self._sections = {section.kind: _SectionRows(segment, section, by_rows) for section in segment.header.sections}
        self._vectors = next(s for s in segment.header.sections if s.kind is SectionKind.VECTORS)

    def walk(
        self, query: Vectors, effort: Effort, *, walk: Walk, excluded: NDArray[np.bool_] | None, room: Room | None
    ) -> Found:
        budget = _Budget(self._view, room)
        estimates = _Estimates(self, query, walk, budget)
        pool = _Pool(effort.ef, excluded)
        row = self._descend(estimates, budget)
        compared = estimates.compared + int(effort.exact)
        compare = (lambda rows: self._exact(query, rows)) if effort.exact else estimates.of
        visited = np.zeros(self._header.row_count, dtype=np.bool_)
        visited[row] = True
        pool.offer(float(compare(np.array([row]))[0]), row)
        while rows := pool.next(_TOGETHER):
            fresh = []
            for row in rows:
                links = self._links(row, budget)
                fresh.append(links[~visited[links]])
                visited[links] = True
            links = np.concatenate(fresh)
            compared += len(links)
            for similarity, link in zip(compare(links).tolist(), links.tolist(), strict=True):
                pool.offer(similarity, link)
        found = self._rescored(query, *pool.live(), effort)
        return Found(found.labels, found.similarities, pool.least, compared + found.compared)

    def near_rows(self, query: Vectors, effort: Effort, *, walk: Walk, rows: Rows, room: Room | None) -> Found:
        similarities = _Estimates(self, query, walk, _Budget(self._view, room)).of(rows)
        best = np.lexsort((rows, -similarities))[: effort.ef]
        found = self._rescored(query, rows[best], similarities[best], effort)
        least = float(similarities[best[-1]]) if len(best) == effort.ef else -np.inf
        return Found(found.labels, found.similarities, least, len(rows) + found.compared)

    def score_rows(self, query: Vectors, *, limit: int, rows: Rows) -> Found:
        return self._best(query, self.read_rows(rows), limit)

    def scan(self, query: Vectors, *, limit: int, excluded: NDArray[np.bool_] | None) -> Found:
        rows = np.arange(self._header.row_count) if excluded is None else np.flatnonzero(~excluded)
        return self._best(query, self._sections[SectionKind.VECTORS].take(rows), limit)

    def read_rows(self, rows: Rows) -> NDArray[np.uint8]:
        section = self._vectors
        out = np.empty((len(rows), section.row_bytes), dtype=np.uint8)
        for place in np.argsort(rows, kind="stable").tolist():
            row = int(rows[place])
            group, in_group = divmod(row, section.rows_per_group)
            position = section.offset + group * section.group_bytes + in_group * section.row_bytes
            try:
                raw = self._view.source.read(position, section.row_bytes)
            except UnitDamaged as error:
                raise layout.damaged(self._view.path, error.what) from error
            except OSError as error:
                raise view.read_failed(self._view, error.errno or 0) from error
            if len(raw) < section.row_bytes:
                raise view.read_failed(self._view, 0)
            if zlib.crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
                raise view.bad_row(self._view, row)
            out[place] = np.frombuffer(raw, dtype=np.uint8)
        return out

    def mapped(self, kind: SectionKind) -> _SectionRows:
        return self._sections[kind]

    def _exact(self, query: Vectors, rows: Rows) -> Similarities:
        """(n,) by the full vectors."""
        return fixed_products(split_rows(self.read_rows(rows), self._vectors.encoding)[0], query)

    def _rescored(self, query: Vectors, rows: Rows, estimates: Similarities, effort: Effort) -> Found:
        """The best of ``rows``, best estimate first: some in any case, and all that may be better than those."""
        found = self._best(query, self.read_rows(rows[: effort.rescore]), effort.limit)
        if len(found.labels) < effort.limit or not effort.limit:
            return found
        least = found.similarities[-1] - np.float32(effort.margin)
        near = np.flatnonzero(estimates[effort.rescore :] >= least) + effort.rescore
        if not len(near):
            return found
        chosen = np.concatenate([rows[: effort.rescore], rows[near]])
        return self._best(query, self.read_rows(chosen), effort.limit)

    def _best(self, query: Vectors, raw: NDArray[np.uint8], limit: int) -> Found:
        vectors, labels = split_rows(raw, self._vectors.encoding)
        similarities = fixed_products(vectors, query)
        order = np.lexsort((labels, -similarities))[:limit]
        return Found(labels[order], similarities[order], compared=len(raw))

    def _descend(self, estimates: _Estimates, budget: _Budget) -> int:
        """The best row of the upper levels, greedily, from the entry point."""
        header, records = self._header, self._sections.get(SectionKind.LEVELS)
        row, position = header.entry_point, header.entry_position
        similarity = float(estimates.of(np.array([row]))[0])
        starts = np.concatenate([[0], np.cumsum(header.level_counts)]).astype(np.int64)
        for level in range(header.max_level, 0, -1):
            start, count = int(starts[level - 1]), header.level_counts[level - 1]
            assert records is not None
            while True:
                if position >= count:
                    raise view.bad_link(self._view, row, level)
                record = self._record(records, start + position, budget)
                links = record[3 : 3 + int(record[2])].astype(np.int64)
                if int(record[0]) != row or int(record[2]) > header.m or (len(links) and int(links.max()) >= count):
                    raise view.bad_link(self._view, row, level)
                linked = np.array(
                    [int(self._record(records, start + int(k), budget)[0]) for k in links], dtype=np.int64
                )
                if len(linked) and int(linked.max()) >= header.row_count:
                    raise view.bad_link(self._view, row, level)
                here = position
                for found, near, link in zip(
                    estimates.of(linked).tolist(), linked.tolist(), links.tolist(), strict=True
                ):
                    if (-found, near) < (-similarity, row):
                        similarity, row, position = found, near, link
                if position == here:
                    position = int(record[1])
                    break
        return row

    def _record(self, records: _SectionRows, number: int, budget: _Budget) -> NDArray[np.uint32]:
        record: NDArray[np.uint32] = budget.take(records, np.array([number]))[0].view("<u4")
        return record

    def _links(self, row: int, budget: _Budget) -> Rows:
        section = self._sections[SectionKind.LINKS]
        counts, links = codes.unpack_links(
            budget.take(section, np.array([row])), self._header.row_count, self._header.m0
        )
        if int(counts[0]) > self._header.m0:
            raise view.bad_link(self._view, row, 0)
        found = links[0, : int(counts[0])]
        if len(found) and int(found.max()) >= self._header.row_count:
            raise view.bad_link(self._view, row, 0)
        # A damaged list may name a row twice; the first counts.
        return found[np.sort(np.unique(found, return_index=True)[1])]


def split_rows(raw: NDArray[np.uint8], encoding: Encoding) -> tuple[Vectors, Rows]:
    """((n, dim) float32, (n,) chunk ids) of full rows as they are in the file."""
    end = raw.shape[1] - layout.ROW_TAIL_BYTES
    vectors = np.ascontiguousarray(raw[:, :end]).view(layout.ENCODING_DTYPE[encoding]).astype(np.float32)
    return vectors, np.ascontiguousarray(raw[:, end : end + 8]).view("<u8")[:, 0].astype(np.int64)


def fixed_products(vectors: Vectors, query: Vectors) -> Similarities:
    """(n,) products in the order of the kernel: sixteen partial sums, then halves added to halves. -2 for NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = _products(vectors, query)
    products[np.isnan(products)] = _NO_SIMILARITY
    return products


def _products(vectors: Vectors, query: Vectors) -> Similarities:
    count, dimension = vectors.shape
    whole = dimension // _LANES * _LANES
    sums = np.zeros((count, _LANES), dtype=np.float32)
    for start in range(0, whole, _LANES):
        sums += vectors[:, start : start + _LANES] * query[start : start + _LANES]
    if whole < dimension:
        rest = np.zeros((count, _LANES), dtype=np.float32)
        rest[:, : dimension - whole] += vectors[:, whole:] * query[whole:]
        sums += rest
    width = _LANES // 2
    while width:
        sums = sums[:, :width] + sums[:, width : 2 * width]
        width //= 2
    return sums[:, 0]


class _SectionRows:
    """The rows of one section, read through the mapping and counted, or from the source."""

    def __init__(self, segment: SegmentView, section: Section, by_rows: bool) -> None:
        self._view = segment
        self._by_rows = by_rows
        self.section = section
        self._first_block = segment.header.blocks_of(section).start
        groups = section.length // section.group_bytes
        self._rows = np.ndarray(
            shape=(groups, section.rows_per_group, section.row_bytes),
            dtype=np.uint8,
            buffer=segment.mapping,
            offset=section.offset,
            strides=(section.group_bytes, section.row_bytes, 1),
        )

    def take(self, rows: Rows) -> NDArray[np.uint8]:
        """(n, row bytes), a copy."""
        blocks = self._first_block + (self.section.offsets(rows) - self.section.offset) // self._view.header.block_bytes
        np.add.at(self._view.hits, blocks, 1)
        if self._by_rows:
            return self._from_source(rows)
        taken: NDArray[np.uint8] = self._rows[rows // self.section.rows_per_group, rows % self.section.rows_per_group]
        return taken

    def _from_source(self, rows: Rows) -> NDArray[np.uint8]:
        size = self.section.row_bytes
        try:
            raw = self._view.source.gather(self.section.offsets(rows), size)
        except UnitDamaged as error:
            raise layout.damaged(self._view.path, error.what) from error
        except OSError as error:
            raise view.read_failed(self._view, error.errno or 0) from error
        if len(raw) < len(rows) * size:  # it was cut off since it was opened
            raise view.read_failed(self._view, 0)
        return np.frombuffer(raw, dtype=np.uint8).reshape(-1, size)


class _Budget:
    """Counts what reading may bring into memory, and asks for more room before it does."""

    def __init__(self, segment: SegmentView, room: Room | None) -> None:
        self._absent = segment.absent
        self._room = room
        self._left = room.first_bytes if room else 0

    def take(self, section: _SectionRows, rows: Rows) -> NDArray[np.uint8]:
        """(n, row bytes), n >= 1. With a bound row after row: making room for one may let another go."""
        if self._room is None:
            return section.take(rows)
        return np.concatenate([self._one(section, rows[place : place + 1]) for place in range(len(rows))])

    def _one(self, section: _SectionRows, row: Rows) -> NDArray[np.uint8]:
        assert self._room is not None
        window = int(section.section.offsets(row)[0]) // WINDOW_BYTES
        while int(self._absent[window]) > self._left:
            self._left = self._room.more_bytes()
        self._left -= int(self._absent[window])
        self._absent[window] = 0
        return section.take(row)


class _Estimates:
    """Similarities to one query by the codes."""

    def __init__(self, searcher: ReferenceSearcher, query: Vectors, walk: Walk, budget: _Budget) -> None:
        self._rows = searcher.mapped(SectionKind.NIBBLES if walk == "nibbles" else SectionKind.BITS)
        self.compared = 0
        self._budget = budget
        self._nibbles = walk == "nibbles"
        rotated = codes.rotated(query.reshape(1, -1))[0]
        self._size = len(rotated)
        largest = np.abs(rotated).max()
        self._scale = np.float32(largest / np.float32(127)) if largest > 0 else np.float32(1)
        self._codes = np.clip(np.rint(rotated / self._scale), -127, 127).astype(np.int64)
        self._sum = int(self._codes.sum())

    def of(self, rows: Rows) -> Similarities:
        """(n,) float32."""
        self.compared += len(rows)
        out = np.empty(len(rows), dtype=np.float32)
        if not len(rows):
            return out
        raw = self._budget.take(self._rows, rows)
        if self._nibbles:
            packed, tail = raw[:, : self._size // 2], raw[:, self._size // 2 : self._size // 2 + 4]
            halves = packed.reshape(len(rows), -1, 1, 32)
            levels = np.concatenate([halves & 15, halves >> 4], axis=2).reshape(len(rows), self._size)
            sums = 2 * (levels.astype(np.int64) @ self._codes) - 15 * self._sum
        else:
            size = self._size // 8
            flags, tail = np.unpackbits(raw[:, :size], axis=1, bitorder="little"), raw[:, size : size + 4]
            sums = 2 * (flags.astype(np.int64) @ self._codes) - self._sum
        factors = np.ascontiguousarray(tail).view("<f4")[:, 0]
        with np.errstate(invalid="ignore", over="ignore"):
            out[:] = (sums.astype(np.float32) * self._scale) * factors
        out[np.isnan(out)] = _NO_SIMILARITY  # a damaged factor
        return out


class _Pool:
    """The best rows so far, best first, until ``ef`` live ones are better; equal ones by row."""

    def __init__(self, ef: int, excluded: NDArray[np.bool_] | None) -> None:
        self._ef = ef
        self._excluded = excluded
        self._items: list[tuple[float, int]] = []  # negative similarity, row
        self._expanded: set[int] = set()
        self._live = 0

    def _is_live(self, row: int) -> bool:
        return self._excluded is None or not self._excluded[row]

    def offer(self, similarity: float, row: int) -> None:
        item = (-similarity, row)
        if self._live >= self._ef and item > self._items[-1]:
            return
        bisect.insort(self._items, item)
        if self._is_live(row):
            self._live += 1
            if self._live > self._ef:
                self._items.pop()
                self._live -= 1
                while not self._is_live(self._items[-1][1]):
                    self._items.pop()

    def next(self, most: int) -> list[int]:
        """The best rows that were not expanded, which they then are; none when none is left."""
        rows = [row for _, row in self._items if row not in self._expanded][:most]
        self._expanded.update(rows)
        return rows

    @property
    def least(self) -> float:
        """The worst similarity that was kept; minus infinity if all were."""
        return -np.inf if self._live < self._ef else -self._items[-1][0]

    def live(self) -> tuple[Rows, Similarities]:
        """The live rows and their similarities, best first."""
        kept = [(-negative, row) for negative, row in self._items if self._is_live(row)]
        similarities = np.array([similarity for similarity, _ in kept], dtype=np.float32)
        return np.array([row for _, row in kept], dtype=np.int64), similarities
