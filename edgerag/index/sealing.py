"""Moves vectors into immutable segments and makes few segments of many: the writer's side of the index.

Each new segment is one step: its file is made whole on the disk, then one transaction lists it, moves its
chunks there and takes out what it replaces, then old files are deleted. A crash or a cancel between steps loses
the segment under construction and nothing else; readers go on with what was committed before. A segment that
cannot be read is left where it is, named in the report, and stops nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import Cancelled, EdgeragError
from edgerag.index import catalogue
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.construction import Built, Origin, OriginDamaged, Part, Piece, Workshop, build
from edgerag.index.hnsw import format as layout
from edgerag.index.merging import compaction, next_merge, rows_for
from edgerag.index.segments import SegmentSet, delete_unlisted
from edgerag.machine.memory import available_bytes
from edgerag.types import MergeProgress, MergeReport


class Sealer:
    """One run of sealing or compacting."""

    def __init__(self, shop: Workshop, segments: SegmentSet) -> None:
        """``segments`` lets go of files that are replaced."""
        self._shop = shop
        self._segments = segments
        # Of an encrypted library the vectors and the finished graph lie in memory too, where they lie in files else.
        free_bytes = available_bytes() // (1 if shop.store.key is None else 2)
        self._max_rows = shop.settings.max_rows or rows_for(
            free_bytes, dimension=shop.identity.dimension, m=shop.settings.m
        )
        self._made: set[int] = set()
        self._damaged: dict[int, str] = {}
        self._rows_written = 0
        self._rows_dropped = 0

    def seal(self, *, merge: bool) -> MergeReport:
        """Seals what is unsealed; with ``merge`` also joins segments that have grown alike. Raises StorageFull."""

        def plan(entries: list[SegmentEntry], fresh_count: int) -> tuple[SegmentEntry, ...]:
            if not merge:
                return ()
            return next_merge(entries, fresh_count, max_rows=self._max_rows, outdated=self._outdated(entries))

        return self._run(plan)

    def compact(self) -> MergeReport:
        """As few segments as the memory allows, without dead rows. Raises StorageFull."""

        def plan(entries: list[SegmentEntry], fresh_count: int) -> tuple[SegmentEntry, ...]:
            mine = [entry for entry in entries if entry.id not in self._made]
            return compaction(mine, fresh_count, max_rows=self._max_rows, outdated=self._outdated(mine))

        report = self._run(plan)
        left = [
            f"{entry.file} keeps {entry.dead_count} removed vectors: with the memory that is free now no segment of"
            f" {entry.live_count} can be built."
            for entry in self._entries()
            if entry.dead_count and entry.live_count > self._max_rows
        ]
        return replace(report, notes=(*report.notes, *left))

    def _run(self, plan: Callable[[list[SegmentEntry], int], tuple[SegmentEntry, ...]]) -> MergeReport:
        before = self._entries()
        cancelled = False
        try:
            self._drop_dead(before)
            while True:
                fresh_ids = self._fresh_ids()
                chosen = plan([entry for entry in self._entries() if entry.id not in self._damaged], len(fresh_ids))
                if not len(fresh_ids) and not chosen:
                    break
                self._shop.check()
                try:
                    self._rewrite(fresh_ids, chosen)
                except OriginDamaged as damage:
                    self._damaged[damage.entry.id] = damage.reason
        except Cancelled:
            cancelled = True
        after = self._entries()
        return MergeReport(
            segments_before=len(before),
            segments_after=len(after),
            bytes_before=sum(entry.size_bytes for entry in before),
            bytes_after=sum(entry.size_bytes for entry in after),
            rows_written=self._rows_written,
            rows_dropped=self._rows_dropped,
            damaged=tuple(self._damaged.values()),
            notes=(),
            cancelled=cancelled,
        )

    def _rewrite(self, fresh_ids: NDArray[np.int64], chosen: tuple[SegmentEntry, ...]) -> None:
        """Moves everything of both into new segments, as few and as even as can be; one step for each."""
        total = len(fresh_ids) + sum(entry.live_count for entry in chosen)
        size = -(-total // -(-total // self._max_rows))
        waiting = list(chosen)
        done = 0
        with contextlib.ExitStack() as stack:
            origin: Origin | None = None
            while len(fresh_ids) or waiting or origin is not None:
                fresh, fresh_ids = fresh_ids[:size], fresh_ids[size:]
                pieces: list[Piece] = []
                room = size - len(fresh)
                while room and (waiting or origin is not None):
                    if origin is None:
                        origin = self._open(waiting.pop(0))
                        stack.callback(origin.close)
                        origin.read_rows(self._shop.store)
                    pieces.append(origin.take(room))
                    room -= len(pieces[-1].rows)
                    origin = None if origin.is_finished else origin
                self._step(Part(fresh, tuple(pieces)), done=done, total=total)
                done += len(fresh) + sum(len(piece.rows) for piece in pieces)

    def _step(self, part: Part, *, done: int, total: int) -> None:
        """One new segment, from its rows to the deletion of what it replaces."""

        def told(progress: MergeProgress) -> None:
            self._shop.progress(replace(progress, done_rows=done + _work_done(progress), all_rows=total))

        store = self._shop.store
        with store.reading() as db:
            number = catalogue.next_segment_id(db)
        try:
            built = build(replace(self._shop, progress=told), part, number=number)
            self._commit(built, part)
        except BaseException:
            # Room again after a failure; what cannot be deleted now goes at the next writer's start.
            with contextlib.suppress(EdgeragError):  # the failure being raised is the one to tell
                delete_unlisted(self._shop.folder, store)
            raise
        self._rows_written += part.row_count
        store.checkpoint()
        with store.reading() as db:
            self._segments.release(db)
        for piece in part.pieces:
            if piece.origin.is_finished:
                self._rows_dropped += piece.origin.entry.dead_count
                piece.origin.close()
        delete_unlisted(self._shop.folder, store)

    def _commit(self, built: Built, part: Part) -> None:
        with self._shop.store.writing() as db:
            segment_id = catalogue.add_segment(
                db,
                file=built.file,
                size_bytes=built.header.file_bytes,
                block_count=len(built.header.block_crcs),
                chunk_ids=built.chunk_ids,
            )
            for piece in part.pieces:
                if piece.origin.is_finished:
                    catalogue.remove_segments(db, [piece.origin.entry.id])
                else:
                    catalogue.bury_rows(db, piece.origin.entry.id, piece.rows)
        self._made.add(segment_id)

    def _drop_dead(self, entries: list[SegmentEntry]) -> None:
        """Takes out the segments without a live row."""
        empty = [entry for entry in entries if not entry.live_count]
        if not empty:
            return
        with self._shop.store.writing() as db:
            catalogue.remove_segments(db, [entry.id for entry in empty])
        with self._shop.store.reading() as db:
            self._segments.release(db)
        self._rows_dropped += sum(entry.dead_count for entry in empty)
        delete_unlisted(self._shop.folder, self._shop.store)

    def _open(self, entry: SegmentEntry) -> Origin:
        return Origin(
            entry,
            self._shop.folder / entry.file,
            identity=self._shop.identity,
            residency=self._shop.residency,
            key=self._shop.store.key,
        )

    def _entries(self) -> list[SegmentEntry]:
        with self._shop.store.reading() as db:
            return catalogue.segments(db)

    def _outdated(self, entries: list[SegmentEntry]) -> set[int]:
        """Those whose files are of an older format: they are searched slowly, and rewritten when there is work."""
        old = [entry for entry in entries if entry.id not in self._made]
        return {entry.id for entry in old if layout.is_outdated(self._shop.folder / entry.file)}

    def _fresh_ids(self) -> NDArray[np.int64]:
        with self._shop.store.reading() as db:
            return catalogue.unsealed_ids(db)


def _work_done(progress: MergeProgress) -> int:
    """Rows of the segment that count as done: linking is nearly all of the work."""
    return 0 if progress.stage == "reading" else progress.done_rows
