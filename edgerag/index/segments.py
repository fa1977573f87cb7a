"""The folder of segment files and its agreement with the catalogue.

:class:`SegmentSet` is the readers' side: it opens what the catalogue lists and follows its changes.
:func:`seal` is the writer's side, in an order that a crash at any point cannot hurt: temporary name,
fsync, rename, fsync of the folder, then one catalogue transaction, then the old files are deleted.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import EdgeragError, LibraryDamaged, LibraryError
from edgerag.index import catalogue
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import FLAT_ROWS, Segment
from edgerag.index.hnsw.write import Graph, write_segment
from edgerag.index.lock import LOCK_NAME
from edgerag.index.merging import MAX_SEGMENT_ROWS, plan_seal
from edgerag.index.store import DATABASE_NAME, Store, refuse_emptied, translated
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors

FOLDER_NAME = "segments"
_TEMPORARY = ".tmp"
# What the writer makes, and nothing else, is its to delete.
_OWN_NAME = re.compile(r"[0-9]{8}\.hnsw((\.graph)?\.tmp)?")


@dataclass(frozen=True, slots=True)
class SealSettings:
    """Sizes that tests make small."""

    block_bytes: int = layout.BLOCK_BYTES
    graph_rows: int = FLAT_ROWS  # smaller segments get no graph: they are scanned
    max_rows: int = MAX_SEGMENT_ROWS


@dataclass(frozen=True, slots=True)
class OpenSegment:
    entry: SegmentEntry
    segment: Segment
    dead: NDArray[np.bool_] | None  # (rows,) flags; None when all live


class SegmentGone(Exception):
    """A listed file is not there; never leaves this package."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class SegmentSet:
    """The open segments of a library, as of the last call of :meth:`follow`."""

    def __init__(self, folder: Path, *, identity: EmbedderIdentity, residency: Residency, flat_rows: int) -> None:
        self.folder = folder / FOLDER_NAME
        self._identity = identity
        self._residency = residency
        self._flat_rows = flat_rows
        self._open: dict[int, Segment] = {}
        self._generation = -1  # of the catalogue that ``_current`` shows
        self._current: list[OpenSegment] = []

    def follow(self, db: sqlite3.Connection) -> list[OpenSegment]:
        """The segments that the view ``db`` lists; opens what is new and closes what is gone.

        Raises SegmentGone for a file that is not there, LibraryDamaged for one that is bad.
        """
        generation = catalogue.generation(db)
        if generation == self._generation:
            return self._current
        entries = catalogue.segments(db)
        for entry in entries:
            if entry.id not in self._open:
                self._open[entry.id] = self._open_file(entry)
        listed = {entry.id for entry in entries}
        for segment_id in [segment_id for segment_id in self._open if segment_id not in listed]:
            self._open.pop(segment_id).close()
        self._current = [OpenSegment(entry, self._open[entry.id], _dead_flags(db, entry)) for entry in entries]
        self._generation = generation
        return self._current

    def _open_file(self, entry: SegmentEntry) -> Segment:
        path = self.folder / entry.file
        try:
            segment = Segment(path, identity=self._identity, residency=self._residency, flat_rows=self._flat_rows)
        except FileNotFoundError as error:
            raise SegmentGone(path) from error
        except OSError as error:
            raise layout.damaged(path, f"cannot be read: {error.strerror or error}") from error
        if segment.row_count != entry.row_count:
            segment.close()
            raise layout.damaged(path, f"has {segment.row_count} rows where the catalogue says {entry.row_count}")
        return segment

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def _dead_flags(db: sqlite3.Connection, entry: SegmentEntry) -> NDArray[np.bool_] | None:
    if not entry.dead_count:
        return None
    rows = catalogue.dead_rows(db, entry.id)
    if not 0 <= int(rows.min()) <= int(rows.max()) < entry.row_count:
        raise LibraryDamaged(f"The catalogue has removed rows that {entry.file} does not have.", remedy="Ingest again.")
    flags = np.zeros(entry.row_count, dtype=np.bool_)
    flags[rows] = True
    return flags


def seal(
    store: Store, opened: list[OpenSegment], *, folder: Path, identity: EmbedderIdentity, settings: SealSettings
) -> bool:
    """Moves all unsealed vectors into new segments, merging old ones; False if there was nothing to do.

    Afterwards the caller lets go of what the catalogue lists no more and calls :func:`delete_unlisted`.
    Raises StorageFull; then nothing changed.
    """
    with store.reading() as db:
        fresh_ids = catalogue.unsealed_ids(db)
    plan = plan_seal([each.entry for each in opened], len(fresh_ids), max_rows=settings.max_rows)
    if not len(fresh_ids) and plan.is_empty:
        return False
    sources = [each for each in opened if each.entry in plan.merged]
    ids = np.concatenate([fresh_ids, *(_live_ids(each) for each in sources)])
    ids.sort()
    segments_folder = folder / FOLDER_NAME
    with store.reading() as db:
        next_id = catalogue.next_segment_id(db)
    written: list[tuple[str, layout.Header, NDArray[np.int64]]] = []
    try:
        for number, part in enumerate(_parts(ids, settings.max_rows)):
            name = f"{next_id + number:08d}.hnsw"
            vectors = _gather(store, sources, part, dimension=identity.dimension)
            with translated(segments_folder / name):
                header = _write_file(segments_folder / name, part, vectors, identity=identity, settings=settings)
            written.append((name, header, part))
        with translated(segments_folder):
            sync_folder(segments_folder)
        retired = [*plan.merged, *plan.dropped]
        with store.writing() as db:
            for name, header, part in written:
                catalogue.add_segment(
                    db, file=name, size_bytes=header.file_bytes, block_count=len(header.block_crcs), chunk_ids=part
                )
            catalogue.remove_segments(db, [entry.id for entry in retired])
    except BaseException:
        _discard(segments_folder, store)
        raise
    store.checkpoint()
    return True


def _parts(ids: NDArray[np.int64], max_rows: int) -> Iterator[NDArray[np.int64]]:
    """Even parts of at most ``max_rows``."""
    if len(ids):
        yield from np.array_split(ids, -(-len(ids) // max_rows))


def _live_ids(opened: OpenSegment) -> NDArray[np.int64]:
    rows = np.arange(opened.entry.row_count) if opened.dead is None else np.flatnonzero(~opened.dead)
    return opened.segment.labels(rows)


def _gather(store: Store, sources: list[OpenSegment], ids: NDArray[np.int64], *, dimension: int) -> Vectors:
    """(len(ids), dim): the vectors of ``ids`` (ascending), from the table and from the segments."""
    vectors = np.zeros((len(ids), dimension), dtype=np.float32)
    filled = np.zeros(len(ids), dtype=np.bool_)
    with store.reading() as db:
        for batch_ids, batch in catalogue.unsealed_vectors(
            db, dimension=dimension, first=int(ids[0]), last=int(ids[-1])
        ):
            places = np.searchsorted(ids, batch_ids)
            vectors[places] = batch
            filled[places] = True
    for source in sources:
        rows = np.arange(source.entry.row_count) if source.dead is None else np.flatnonzero(~source.dead)
        for start in range(0, len(rows), FLAT_ROWS):
            part = rows[start : start + FLAT_ROWS]
            labels = source.segment.labels(part)
            places = np.searchsorted(ids, labels)
            here = places < len(ids)
            here[here] = ids[places[here]] == labels[here]
            if here.any():
                vectors[places[here]] = source.segment.vectors(part[here])
                filled[places[here]] = True
    if not filled.all():
        raise LibraryDamaged(
            f"Chunk {int(ids[np.argmin(filled)])} has no stored vector.", remedy="Ingest into a new library."
        )
    return vectors


def _write_file(
    path: Path, ids: NDArray[np.int64], vectors: Vectors, *, identity: EmbedderIdentity, settings: SealSettings
) -> layout.Header:
    graph: Graph | None = None
    if len(ids) >= settings.graph_rows:
        # Imported here: only a machine that builds segments of this size needs hnswlib.
        from edgerag.index.hnsw.build import GraphSettings, build_graph

        graph = build_graph(
            vectors, scratch=path.with_name(path.name + ".graph" + _TEMPORARY), settings=GraphSettings()
        )
    temporary = path.with_name(path.name + _TEMPORARY)
    header = write_segment(
        temporary, labels=ids, vectors=vectors, graph=graph, identity=identity, block_bytes=settings.block_bytes
    )
    temporary.replace(path)
    return header


def _discard(segments_folder: Path, store: Store) -> None:
    """Makes room again after a failed seal; what cannot be deleted now goes at the next writer's start."""
    with contextlib.suppress(EdgeragError):  # the failure being raised is the one to tell
        delete_unlisted(segments_folder, store)


def make_folders(folder: Path) -> None:
    """Makes the folders of a library where they are missing.

    Raises LibraryError, and makes nothing, where ``folder`` holds a ``segments`` that is no library's:
    it belongs to the user's own work. StorageFull when they cannot be made.
    """
    refuse_emptied(folder)
    with translated(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if FOLDER_NAME in names and not (folder / DATABASE_NAME).exists():
            # A writer killed at its very start leaves these two and no more.
            foreign = names - {FOLDER_NAME, LOCK_NAME}
            if foreign or not (folder / FOLDER_NAME).is_dir() or any((folder / FOLDER_NAME).iterdir()):
                raise LibraryError(
                    f"There is no library in {folder}, but a {FOLDER_NAME!r} that may be your own.",
                    remedy=f"Name another folder (--library NAME), or move {folder / FOLDER_NAME} away.",
                )
        (folder / FOLDER_NAME).mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def delete_unlisted(segments_folder: Path, store: Store) -> None:
    """Deletes our files that the catalogue does not list: of merged segments, or left by a crash. Writer only."""
    with store.reading() as db:
        listed = {entry.file for entry in catalogue.segments(db)}
    with translated(segments_folder):
        for path in sorted(segments_folder.iterdir()):
            if path.name not in listed and _OWN_NAME.fullmatch(path.name) and not path.is_dir():
                path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes renames in ``folder`` survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
