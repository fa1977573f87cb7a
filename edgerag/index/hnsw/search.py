"""Opens a segment file where it lies and searches it there.

Opening reads the header and nothing else. What a walk needs (levels, links, codes) is read through the
mapping, each block verified when it is first needed; full vectors are read by ``pread``, each row verified
every time, so that they never become resident. A damaged block is named and never searched.

An encrypted file is searched in the same way where what a walk needs is decrypted in memory (decrypted.py); where the
budget is too small for that, by the reference, which decrypts each row that it looks at: the same hits, slowly. So is a
plain one of which the budget has room for much less than a walk needs.
"""

from __future__ import annotations

import contextlib
import mmap
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UnitDamaged
from edgerag.index.hnsw import codes
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.decrypted import DecryptedBlocks
from edgerag.index.hnsw.format import Header, SectionKind
from edgerag.index.hnsw.kernel import Kernel, KernelSearcher, load_kernel
from edgerag.index.hnsw.reference import ReferenceSearcher, split_rows
from edgerag.index.hnsw.residency import BlockMap, Residency
from edgerag.index.hnsw.source import UnitSource
from edgerag.index.hnsw.verify import graph_faults
from edgerag.index.hnsw.version1 import SCAN_ROWS, OldRows
from edgerag.index.hnsw.view import HOT_SECTIONS, WALK_TITLES, Effort, Found, Room, SegmentView, Similarities, Walk
from edgerag.types import BlockHeat, EmbedderIdentity, LegHit, SearchWork

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Fewer live rows than this are compared one by one: exact, and faster than walking a graph.
FLAT_ROWS = 5_000
# Where fewer than one row in so many may be found, a walk would mostly pass through others: their codes are
# compared one by one instead.
_SPARSE = 16
# Codes of one bit are less sure: so many times as many rows are kept and compared by their full vectors to
# find the same (docs/decisions/018).
_BITS_EFFORT = 1.75
_VERIFY_BYTES = 2**20  # read at a time, so that verifying takes no memory to speak of
# Blocks may be released between their admission and the walk, by other threads under another library's pressure.
_TRIES = 3


def widened(ef_search: int, row_count: int) -> int:
    """Rows to keep in a walk over a segment of ``row_count`` rows, for ``ef_search`` in one of FLAT_ROWS.

    A large graph needs a wider walk for the same recall; with the square root of its size, the one that twenty
    segments are merged into finds what they did to half a percent (bench/results/index_compact-*.json).
    """
    return int(ef_search * max(1.0, row_count / FLAT_ROWS) ** 0.5)


class Segment:
    """One mapped segment. Usable from many threads at once; results are deterministic."""

    def __init__(
        self,
        path: Path,
        *,
        identity: EmbedderIdentity,
        residency: Residency,
        flat_rows: int = FLAT_ROWS,
        searched: bool = True,
        kernel: Kernel | Literal["best"] | None = "best",
        key: LibraryKey | None = None,
    ) -> None:
        """``searched``: False for one that is only read, which then takes no part in the choice of codes.
        ``kernel``: None for the reference. ``key``: of an encrypted file. Raises what read_header raises;
        FileNotFoundError if the file is gone."""
        self.path = path
        self._flat_rows = flat_rows
        self._kernel = load_kernel() if kernel == "best" else kernel
        self._residency = residency
        self._source = layout.opened(path, key)
        try:
            self.header: Header = layout.header_of(path, self._source, identity=identity)
            if key is not None and self.header.version < layout.VERSION:
                raise layout.damaged(path, f"has the format {self.header.version}, which is never encrypted")
            self._spans = layout.block_spans(self.header)
            self.blocks = self._made_blocks()
        except BaseException:
            self._source.close()
            raise
        self._verified = np.zeros(len(self._spans), dtype=np.bool_)
        self._entered: set[Walk] = set()  # walks all of whose blocks are verified
        self._hot = {walk: self._hot_blocks(walk) for walk in WALK_TITLES}
        residency.add(self.blocks, {walk: self._hot_bytes(walk) if searched else 0 for walk in WALK_TITLES})
        view = SegmentView(
            path,
            self.header,
            self.blocks.mapping,
            self._source,
            isinstance(self._source, UnitSource),
            self.blocks.hits,
            self.blocks.absent,
        )
        self._old = OldRows(view) if self.header.version == 1 else None
        self._searcher: KernelSearcher | ReferenceSearcher | None = None
        if self._old is None:
            self._searcher = KernelSearcher(view, self._kernel) if self._kernel else ReferenceSearcher(view)
        # For an encrypted file that does not fit the budget, and a plain one that by far does not.
        self._by_rows = ReferenceSearcher(view, by_rows=True) if self._old is None else None

    def _made_blocks(self) -> BlockMap:
        levels = self.header.section(SectionKind.LEVELS)
        pinned = self.header.blocks_of(levels) if levels else range(0)
        if isinstance(self._source, UnitSource):
            return DecryptedBlocks(self._source, self._spans, pinned=pinned)
        descriptor = self._source.descriptor
        mapping = mmap.mmap(descriptor, self.header.file_bytes, access=mmap.ACCESS_READ)
        return BlockMap(mapping, self._spans, pinned=pinned, descriptor=descriptor)

    @property
    def row_count(self) -> int:
        return self.header.row_count

    @property
    def walk_name(self) -> str:
        """How most searches of this segment go, for people."""
        if not self._is_walked:
            return "exact scan"
        return WALK_TITLES[self._walk]

    @property
    def _is_walked(self) -> bool:
        return self.header.has_graph and self._old is None

    @property
    def _walk(self) -> Walk:
        return "nibbles" if self._residency.walk() == "nibbles" else "bits"

    def search(
        self,
        query: Vectors,
        *,
        limit: int,
        ef_search: int,
        excluded: NDArray[np.bool_] | None,
        work: SearchWork | None = None,
    ) -> list[LegHit]:
        """At most ``limit`` rows that are not ``excluded`` as (chunk id, cosine), best first, equal ones by id. What it
        took is added to ``work``.

        Exact where few rows are left or there is no graph. ``query`` is (dim,), finite. Raises LibraryDamaged
        naming file and block, ValueError for arrays of another shape.
        """
        excluded = self._checked_flags(excluded)
        live = self.row_count if excluded is None else self.row_count - int(np.count_nonzero(excluded))
        if limit < 1 or not live:
            return []
        query = self._checked_queries(query, (self.header.dimension,))
        before = None if work is None else self.blocks.hits.copy()
        found = self._find(query, limit=min(limit, live), ef_search=ef_search, excluded=excluded, live=live)
        if work is not None:
            work.segments += 1
            work.blocks += int(np.count_nonzero(self.blocks.hits != before))
            work.distances += found.compared
        return [
            LegHit(int(i), float(s)) for i, s in zip(found.labels.tolist(), found.similarities.tolist(), strict=True)
        ]

    def _find(
        self, query: Vectors, *, limit: int, ef_search: int, excluded: NDArray[np.bool_] | None, live: int
    ) -> Found:
        if self._searcher is None:
            return self._scan_old(query, limit=limit, excluded=excluded)
        if not self.header.has_graph:
            with self._walking("bits") as (searcher, room):
                if room is None and searcher is self._searcher:
                    found = searcher.scan(query, limit=limit, excluded=excluded)
                else:  # does not fit: the same, without the mapping
                    rows = _chosen(self.row_count, excluded)
                    found = self._searcher.score_rows(query, limit=limit, rows=rows)
            self._residency.settle()
            return found
        if live < self._flat_rows or limit >= live:
            return self._searcher.score_rows(query, limit=limit, rows=_chosen(self.row_count, excluded))
        walk = self._walk
        effort = self._effort(limit, ef_search, walk)
        sparse = _chosen(self.row_count, excluded) if live * _SPARSE <= self.row_count else None
        with self._walking(walk) as (searcher, room):
            if sparse is not None:
                found = searcher.near_rows(query, effort, walk=walk, rows=sparse, room=room)
            else:
                found = searcher.walk(query, effort, walk=walk, excluded=excluded, room=room)
        if room is not None:
            self._residency.settle()
        least = np.array([found.least], dtype=np.float32)
        if len(found.labels) < limit or not self._blurred(found.similarities[-1:], least, effort, walk)[0]:
            return found
        if sparse is not None:
            again = self._searcher.score_rows(query, limit=limit, rows=sparse)
            return replace(again, compared=found.compared + again.compared)
        full = Effort(limit, max(ef_search, limit), limit, 0.0, exact=True)
        with self._walking(walk) as (searcher, room):
            again = searcher.walk(query, full, walk=walk, excluded=excluded, room=room)
        if room is not None:
            self._residency.settle()
        return replace(again, compared=found.compared + again.compared)

    @contextlib.contextmanager
    def _walking(self, walk: Walk) -> Iterator[tuple[KernelSearcher | ReferenceSearcher, Room | None]]:
        """What walks, and the room that it has if its walk is to be made in slices. Of an encrypted file nothing that
        it reads is released meanwhile; Residency is asked nothing before the end."""
        assert self._searcher is not None
        assert self._by_rows is not None
        if not isinstance(self.blocks, DecryptedBlocks):
            room = self._enter(walk)
            if room is None or not self._residency.is_far_short:
                yield self._searcher, room
            else:
                yield self._by_rows, None
            return
        if isinstance(self._searcher, KernelSearcher):
            for _ in range(_TRIES):
                if self._enter(walk) is not None:
                    break
                with self.blocks.held(self._hot[walk]) as all_there:
                    if all_there:
                        yield self._searcher, None
                        return
        yield self._by_rows, None

    def search_many(self, queries: Vectors, *, limit: int, ef_search: int) -> tuple[NDArray[np.int64], Similarities]:
        """(q, limit) chunk ids and cosines for (q, dim) queries; ids are -1 beyond what was found.

        One call of the kernel for all of them, which other threads do not wait for. Raises as :meth:`search` does.
        """
        checked = self._checked_queries(queries, (len(queries), self.header.dimension))
        many = self._is_walked and 0 < limit < self.row_count and self.row_count >= self._flat_rows
        if many and isinstance(self._searcher, KernelSearcher):
            walk = self._walk
            effort = self._effort(limit, ef_search, walk)
            found = None
            with self._walking(walk) as (searcher, room):
                if room is None and isinstance(searcher, KernelSearcher):
                    found = searcher.walk_many(checked, effort, walk=walk)
            if found is not None:
                labels, similarities, least = found
                full = labels[:, -1] >= 0
                again = np.flatnonzero(full & self._blurred(similarities[:, -1], least, effort, walk))
                return self._fill(labels, similarities, again.tolist(), checked, ef_search)
        labels = np.full((len(checked), limit), -1, dtype=np.int64)
        similarities = np.full((len(checked), limit), -1, dtype=np.float32)
        return self._fill(labels, similarities, range(len(checked)), checked, ef_search)

    def _fill(
        self,
        labels: NDArray[np.int64],
        similarities: Similarities,
        places: Iterable[int],
        queries: Vectors,
        ef_search: int,
    ) -> tuple[NDArray[np.int64], Similarities]:
        """Searches the queries of ``places`` one by one, into their rows of both arrays."""
        limit = labels.shape[1]
        for place in places:
            hits = self.search(queries[place], limit=limit, ef_search=ef_search, excluded=None)
            labels[place, : len(hits)] = [hit.chunk_id for hit in hits]
            similarities[place, : len(hits)] = [hit.score for hit in hits]
        return labels, similarities

    def read_rows(self, rows: NDArray[np.int64]) -> tuple[Vectors, NDArray[np.int64]]:
        """((n, dim) float32, (n,) chunk ids) of rows in range, copied out of the file. Raises LibraryDamaged."""
        if self._searcher is None:
            assert self._old is not None
            self._enter("bits")
            taken = self._old.vectors(rows), self._old.labels(rows)
            self._residency.settle()
            return taken
        vectors = self.header.section(SectionKind.VECTORS)
        assert vectors is not None
        return split_rows(self._searcher.read_rows(rows), vectors.encoding)

    def labels(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The second of :meth:`read_rows`."""
        return self.read_rows(rows)[1]

    def vectors(self, rows: NDArray[np.int64]) -> Vectors:
        """The first of :meth:`read_rows`."""
        return self.read_rows(rows)[0]

    def block_heat(self) -> list[BlockHeat]:
        """How each block is used, in the order of the file."""
        heat = self._residency.heat(self.blocks)
        return [
            BlockHeat(
                number=number,
                kind=section.kind.title,
                size_bytes=self._spans[number][1] - self._spans[number][0],
                resident_bytes=int(heat.resident_bytes[number]),
                cached_bytes=int(heat.cached_bytes[number]),
                hits=int(heat.hits[number]),
                idle_s=float(heat.idle_s[number]) if np.isfinite(heat.idle_s[number]) else None,
            )
            for section in self.header.sections
            for number in self.header.blocks_of(section)
        ]

    def damage(self) -> list[str]:
        """Every block that does not match its checksum, and every link that leads nowhere; empty if whole."""
        faults = []
        for block in range(len(self._spans)):
            if fault := self._block_fault(block):
                faults.append(f"{layout.block_name(self.header, block)} {fault}")
            else:
                self._verified[block] = True
        if not faults and self.header.has_graph:
            try:
                faults = graph_faults(self.header, self._source)
            except UnitDamaged as error:  # it was whole a moment ago
                faults = [f"its links {error.what}"]
            except OSError as error:
                faults = [f"its links cannot be read: {error.strerror or error}"]
        return faults

    def close(self) -> None:
        """Unmaps the file; arrays taken from it were copies and stay good."""
        if self._source.descriptor < 0:
            return
        self._residency.remove(self.blocks)
        self._searcher = self._old = self._by_rows = None
        with contextlib.suppress(BufferError):  # still used by a frame of an error being reported; freed with it
            self.blocks.mapping.close()
        self._source.close()

    # ------------------------------------------------------------ blocks

    def _hot_blocks(self, walk: Walk) -> tuple[int, ...]:
        """What a walk reads through the mapping; without a graph, everything."""
        if not self.header.has_graph or self.header.version == 1:
            return tuple(range(len(self._spans)))
        kinds = HOT_SECTIONS[walk]
        return tuple(n for s in self.header.sections if s.kind in kinds for n in self.header.blocks_of(s))

    def _hot_bytes(self, walk: Walk) -> int:
        return sum(self._spans[number][1] - self._spans[number][0] for number in self._hot[walk])

    def _enter(self, walk: Walk) -> Room | None:
        """Verifies what a walk reads, the first time, and makes room for it; a Room if it is to be made in slices.

        What is encrypted is verified by being decrypted."""
        if walk not in self._entered and not isinstance(self.blocks, DecryptedBlocks):
            self._verify(self._hot[walk])
            self._entered.add(walk)
        try:
            first = self._residency.admit(self.blocks, self._hot[walk])
        except UnitDamaged as error:
            raise layout.damaged(self.path, error.what) from error
        except OSError as error:
            raise layout.unreadable(self.path, error) from error
        return None if first is None else Room(first, self._residency.settle)

    def _verify(self, blocks: tuple[int, ...]) -> None:
        """Verifies those of ``blocks`` that were not yet. Raises LibraryDamaged naming the first bad one."""
        for block in blocks:
            if self._verified[block]:
                continue
            if fault := self._block_fault(block):
                raise layout.damaged(self.path, f"is damaged in {layout.block_name(self.header, block)}, which {fault}")
            self._verified[block] = True

    def _block_fault(self, block: int) -> str:
        """What is wrong with a block; empty if nothing. By pread, which leaves this process's resident pages alone."""
        start, end = self._spans[block]
        buffer = np.empty(_VERIFY_BYTES, dtype=np.uint8)
        crc = 0
        while start < end:
            part = buffer[: end - start]
            try:
                got = self._source.read_into(part.data, start)
            except UnitDamaged as error:
                return error.what
            except OSError as error:  # a bad sector, a network folder that is gone
                return f"cannot be read: {error.strerror or error}"
            if got <= 0:
                return "is cut short"
            crc = self._kernel.crc32(part[:got], crc) if self._kernel else zlib.crc32(part[:got].data, crc)
            start += got
        return "" if crc == self.header.block_crcs[block] else "does not match its checksum"

    # ------------------------------------------------------------ rows

    def _checked_queries(self, queries: Vectors, shape: tuple[int, ...]) -> Vectors:
        """As the kernel reads them, which cannot tell how long they are."""
        if queries.shape != shape:
            raise ValueError(f"queries of shape {queries.shape} were given where {shape} was expected")
        return np.ascontiguousarray(queries, dtype=np.float32)

    def _checked_flags(self, excluded: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        if excluded is None:
            return None
        if excluded.shape != (self.row_count,):
            raise ValueError(f"flags of shape {excluded.shape} were given where ({self.row_count},) was expected")
        return np.ascontiguousarray(excluded, dtype=np.bool_)

    def _blurred(self, worst: Similarities, least: Similarities, effort: Effort, walk: Walk) -> NDArray[np.bool_]:
        """(n,) whether the codes did not tell near from far: even the worst estimate kept (``least``) is as good as the
        worst of what was found.

        So it is among many near-duplicates, whose vectors differ by less than the codes do: forms, logs, tables.
        Those are walked by their full vectors, ten times as slowly and rightly.
        """
        if effort.ef < 2 * effort.limit:
            return np.zeros(len(worst), dtype=np.bool_)
        error = np.float32(codes.estimate_error(walk, self.header.dimension) / 4)
        blurred: NDArray[np.bool_] = least >= worst - error
        return blurred

    def _effort(self, limit: int, ef_search: int, walk: Walk) -> Effort:
        ef = max(ef_search, limit, 1)
        if walk == "bits":
            ef = int(ef * _BITS_EFFORT)
            return Effort(limit, ef, min(ef, 10 * limit), 2 * codes.estimate_error("bits", self.header.dimension))
        margin = 3 * codes.estimate_error("nibbles", self.header.dimension)
        return Effort(limit, ef, min(ef, 2 * limit + 8), margin)

    def _scan_old(self, query: Vectors, *, limit: int, excluded: NDArray[np.bool_] | None) -> Found:
        """Compares all vectors, in pieces: the file may be larger than the budget."""
        assert self._old is not None
        parts = []
        rows = _chosen(self.row_count, excluded)
        for start in range(0, len(rows), SCAN_ROWS):
            self._enter("bits")
            parts.append(self._old.score(query, limit=limit, rows=rows[start : start + SCAN_ROWS]))
            self._residency.settle()
        labels = np.concatenate([part.labels for part in parts])
        similarities = np.concatenate([part.similarities for part in parts])
        order = np.lexsort((labels, -similarities))[:limit]
        return Found(labels[order], similarities[order], compared=len(rows))


def _chosen(row_count: int, excluded: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    return np.arange(row_count) if excluded is None else np.flatnonzero(~excluded)
