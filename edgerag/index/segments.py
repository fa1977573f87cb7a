"""The folder of segment files and its agreement with the catalogue: the readers' side.

:class:`SegmentSet` opens what the catalogue lists and follows its changes. What writes there is sealing.py.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import REPAIR_LIBRARY, EmbedderMismatch, LibraryDamaged, LibraryError
from edgerag.index import catalogue, filters
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import FLAT_ROWS, Segment
from edgerag.index.identity import identity_in
from edgerag.index.lock import LOCK_NAME
from edgerag.index.place import Place
from edgerag.index.store import DATABASE_NAME, Store, damaged_row, refuse_emptied, translated
from edgerag.machine.disk import sync_folder
from edgerag.private_database import make_private_folders
from edgerag.types import EmbedderIdentity, Filter, VectorType

FOLDER_NAME = "segments"
# What the writer makes, and nothing else, is its to delete.
_OWN_NAME = re.compile(r"[0-9]{8}\.hnsw((\.graph|\.vectors)?\.tmp)?")
# Filters whose rows are remembered: a conversation asks under one, a screen under two or three.
_FILTERS_KEPT = 4

Flags = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SealSettings:
    """How segments are made; tests make the sizes small."""

    block_bytes: int = layout.BLOCK_BYTES
    graph_rows: int = FLAT_ROWS  # smaller segments get no graph: they are scanned
    max_rows: int | None = None  # of one segment; None follows the free memory
    # Unsealed vectors are compared one by one out of the database: so many take some 30 ms at 384 dimensions.
    unsealed_rows: int = 8_192
    m: int = 16
    ef_construction: int = 200
    vector_type: VectorType = "f16"


@dataclass(frozen=True, slots=True)
class OpenSegment:
    entry: SegmentEntry
    segment: Segment
    dead: Flags | None  # (rows,) flags; None when all live


class SegmentGone(Exception):
    """A listed file is not there; never leaves this package."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class SegmentSet:
    """The open segments of a library, as of the last call of :meth:`follow`."""

    def __init__(
        self,
        folder: Path,
        *,
        identity: EmbedderIdentity,
        residency: Residency,
        flat_rows: int,
        key: LibraryKey | None = None,
        place: Place | None = None,
    ) -> None:
        """``place``: as it was when the database was opened."""
        self.folder = folder / FOLDER_NAME
        self._place = place or Place(folder)
        self._identity = identity
        self._residency = residency
        self._flat_rows = flat_rows
        self._key = key
        self._open: dict[int, Segment] = {}
        self._generation = -1  # of the catalogue that ``_current`` shows
        self._current: list[OpenSegment] = []
        self._excluded: dict[Filter, list[Flags]] = {}  # of the same generation

    def follow(self, db: sqlite3.Connection) -> list[OpenSegment]:
        """The segments that the view ``db`` lists; opens what is new and closes what is gone.

        Raises SegmentGone for a file that is not there, LibraryDamaged for one that is bad, EmbedderMismatch when the
        library has been given to another embedder meanwhile.
        """
        generation = catalogue.generation(db)
        if generation == self._generation:
            return self._current
        now = identity_in(db, where=str(self.folder.parent))
        if now is not None and not now.is_same_as(self._identity):
            raise EmbedderMismatch(
                f"The library in {self.folder.parent} is now searched with the embedder {now.name!r},"
                f" no longer with {self._identity.name!r}.",
                remedy="Ask again.",
            )
        entries = catalogue.segments(db)
        for entry in entries:
            if entry.id not in self._open:
                self._open[entry.id] = self._open_file(entry)
        listed = {entry.id for entry in entries}
        for segment_id in [segment_id for segment_id in self._open if segment_id not in listed]:
            self._open.pop(segment_id).close()
        self._current = [OpenSegment(entry, self._open[entry.id], _dead_flags(db, entry)) for entry in entries]
        self._generation = generation
        self._excluded.clear()
        return self._current

    def view(self, store: Store, read: Callable[[sqlite3.Connection], T]) -> tuple[list[OpenSegment], T]:
        """The open segments and what ``read`` gives after they were opened, both as of the same commit.

        Raises what :meth:`follow` does for a bad file, LibraryDamaged for one that is not there, and LibraryReplaced
        where the files are those of another folder.
        """
        with self._place.told():
            while True:
                with store.reading() as db:
                    try:
                        return self.follow(db), read(db)
                    except SegmentGone as error:
                        gone = error
                # Merged away after this view began? Then a new view no longer lists it.
                with store.reading() as db:
                    if any(entry.file == gone.path.name for entry in catalogue.segments(db)):
                        raise layout.damaged(gone.path, "is missing") from gone

    def excluded(self, db: sqlite3.Connection, where: Filter) -> list[Flags]:
        """For each segment of :meth:`follow`, called before in the same view: the rows that are dead or belong to
        documents outside of ``where``.

        Remembered while the generation stays. It changes with every segment, tombstone and tag, and with the path or
        language of a document; a document that comes has no sealed row.
        """
        if where not in self._excluded:
            if len(self._excluded) >= _FILTERS_KEPT:
                self._excluded.pop(next(iter(self._excluded)))  # the oldest
            self._excluded[where] = self._read_excluded(db, where)
        return self._excluded[where]

    def _read_excluded(self, db: sqlite3.Connection, where: Filter) -> list[Flags]:
        flags = {each.entry.id: np.ones(each.entry.row_count, dtype=np.bool_) for each in self._current}
        for segment_id, rows in filters.sealed_rows(db, where):
            if segment_id not in flags:
                raise damaged_row(f"segment {segment_id} has chunks and is not listed")
            if not 0 <= int(rows.min()) <= int(rows.max()) < len(flags[segment_id]):
                raise _beyond(next(each.entry for each in self._current if each.entry.id == segment_id))
            flags[segment_id][rows] = False  # a dead row belongs to no chunk: it stays excluded
        return list(flags.values())

    def release(self, db: sqlite3.Connection) -> None:
        """Closes the files that the catalogue no longer lists; opens none."""
        listed = {entry.id for entry in catalogue.segments(db)}
        for segment_id in [segment_id for segment_id in self._open if segment_id not in listed]:
            self._open.pop(segment_id).close()
            self._generation = -1
            self._current = []

    def _open_file(self, entry: SegmentEntry) -> Segment:
        path = self.folder / entry.file
        try:
            segment = Segment(
                path, identity=self._identity, residency=self._residency, flat_rows=self._flat_rows, key=self._key
            )
        except FileNotFoundError as error:
            raise SegmentGone(path) from error
        except OSError as error:
            raise layout.unreadable(path, error) from error
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
        raise _beyond(entry)
    flags = np.zeros(entry.row_count, dtype=np.bool_)
    flags[rows] = True
    return flags


def _beyond(entry: SegmentEntry) -> LibraryDamaged:
    return LibraryDamaged(
        f"The catalogue names rows that {entry.file} does not have.",
        remedy=REPAIR_LIBRARY,
    )


def refuse_cut(segment: Segment) -> None:
    """Raises LibraryDamaged if the file was cut short after it was mapped: reading beyond its end kills a process.

    One that was deleted or replaced stays whole in the mapping: what is asked is the file that is mapped.
    """
    size_bytes = os.fstat(segment.blocks.descriptor).st_size
    if size_bytes < segment.header.file_bytes:
        raise layout.damaged(
            segment.path, f"was cut short while it was open ({size_bytes} of {segment.header.file_bytes} bytes)"
        )


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
        make_private_folders(folder / FOLDER_NAME)
        sync_folder(folder.parent)


def delete_unlisted(segments_folder: Path, store: Store) -> None:
    """Deletes our files that the catalogue does not list: of merged segments, or left by a crash. Writer only."""
    with store.reading() as db:
        listed = {entry.file for entry in catalogue.segments(db)}
    with translated(segments_folder):
        for path in sorted(segments_folder.iterdir()):
            if path.name not in listed and _OWN_NAME.fullmatch(path.name) and not path.is_dir():
                path.unlink(missing_ok=True)
