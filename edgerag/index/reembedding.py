"""Vectors of another embedder, made beside those in use, and put in their place at once when they are all there.

    reembedding/library.sqlite   the chunks, which of them have a new vector, and those that are not sealed yet
    reembedding/segments/        sealed new vectors

Until then the library does not change: it is searched with its own embedder. Whatever stops the work, what was
committed stays, and the next run goes on there; a chunk that came or went in between is noticed. The change is one
transaction of the library's database: before it every reader sees the old vectors, after it the new ones. Text, words
and ids are untouched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UnitDamaged, copy_units
from edgerag.errors import LibraryDamaged, LibraryLocked, LibraryMissing, LibraryVersionUnknown, StorageFull
from edgerag.index import catalogue, twins
from edgerag.index import chunks as chunk_rows
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.construction import Workshop
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.source import role_of
from edgerag.index.identity import read_identity, replace_identity, write_identity
from edgerag.index.nearest import storable_vectors
from edgerag.index.sealing import Sealer
from edgerag.index.segments import FOLDER_NAME as SEGMENTS
from edgerag.index.segments import SealSettings, SegmentSet, delete_unlisted
from edgerag.index.store import Store, translated
from edgerag.machine.disk import sync_folder
from edgerag.private_database import make_private_folders, private_opener
from edgerag.types import CancelCheck, EmbedderIdentity, MergeProgress, MergeReport, StoredChunk

if TYPE_CHECKING:
    from edgerag.types import Vectors

FOLDER_NAME = "reembedding"

# The tables of the library that have to do with vectors; "chunks" has of each what finding its vector needs.
_STEP_1 = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL UNIQUE,
    row_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    block_count INTEGER NOT NULL
);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    embedding_key BLOB NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    segment_id INTEGER REFERENCES segments (id),
    segment_row INTEGER,
    CHECK ((state = 2) = (segment_id IS NOT NULL) AND (state = 2) = (segment_row IS NOT NULL))
);
CREATE INDEX chunks_pending ON chunks (id) WHERE state = 0;
CREATE INDEX chunks_unsealed ON chunks (id) WHERE state = 1;
CREATE INDEX chunks_of_segment ON chunks (segment_id) WHERE segment_id IS NOT NULL;
CREATE INDEX chunks_by_key ON chunks (embedding_key) WHERE state > 0;

CREATE TABLE vectors (
    chunk_id INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);

CREATE TABLE tombstones (
    segment_id INTEGER NOT NULL REFERENCES segments (id) ON DELETE CASCADE,
    segment_row INTEGER NOT NULL,
    PRIMARY KEY (segment_id, segment_row)
) WITHOUT ROWID;
"""
_STEPS = (_STEP_1,)
_BATCH = 10_000  # chunks noted in one transaction
# Of the library's database a row is rewritten when the change is made, and stands in its journal until that is folded.
_JOURNAL_BYTES = 600
# Of the new database: SQLite folds its journal when it has 1,000 pages of 4 KiB, and a row of chunks has its key twice.
_NEW_JOURNAL_BYTES = 4_500_000
_NEW_ROW_BYTES = 200


class Reembedding:
    """The new vectors of a library that is open for writing. One thread at a time. Use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        identity: EmbedderIdentity,
        residency: Residency,
        settings: SealSettings,
    ) -> None:
        """``folder`` and ``store`` are the library's, ``identity`` is the new embedder. Goes on where an earlier run
        for the same embedder stopped; what one for another left goes. Raises StorageFull, LibraryDamaged."""
        self.identity = identity
        self._library_folder = folder
        self._library_store = store
        self._folder = folder / FOLDER_NAME
        self._residency = residency
        self._settings = settings
        self._store = self._opened()
        try:
            delete_unlisted(self._folder / SEGMENTS, self._store)
            self._segments = SegmentSet(
                self._folder,
                identity=identity,
                residency=residency,
                flat_rows=settings.graph_rows,
                key=store.key,
            )
            self._note_chunks()
        except BaseException:
            self._store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the files; what was made stays."""
        self._segments.close()
        self._store.close()

    # ------------------------------------------------------------ making the vectors

    def counts(self) -> tuple[int, int]:
        """(chunks that have a new vector, all chunks)."""
        with self._store.reading() as db:
            return chunk_rows.chunk_count(db) - chunk_rows.pending_count(db), chunk_rows.chunk_count(db)

    def pending_chunks(self, limit: int) -> list[StoredChunk]:
        """The first chunks without a new vector, in id order."""
        with self._store.reading() as db:
            rows = db.execute("SELECT id FROM chunks WHERE state = 0 ORDER BY id LIMIT ?", (max(0, limit),)).fetchall()
        with self._library_store.reading() as db:
            return chunk_rows.read_chunks(db, [row[0] for row in rows])

    def known_vectors(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]:
        """For those of the chunks whose text another chunk has with a new vector: that vector, (dim,)."""
        return twins.known_vectors(self._store, self._segments, chunk_ids, dimension=self.identity.dimension)

    def put_vectors(self, chunk_ids: Sequence[int], vectors: Vectors) -> None:
        """Stores the new vectors of pending chunks, (n, dim) unit rows, in one durable transaction. Raises UsageError
        as Library.put_vectors does."""
        checked = storable_vectors(
            vectors, rows=len(chunk_ids), identity=self.identity, vector_type=self._settings.vector_type
        )
        with self._store.writing() as db:
            catalogue.put_vectors(db, chunk_ids, checked)

    def seal_is_due(self) -> bool:
        with self._store.reading() as db:
            return catalogue.unsealed_count(db) >= self._settings.unsealed_rows

    def seal(
        self,
        *,
        merge: bool = True,
        progress: Callable[[MergeProgress], None],
        cancelled: CancelCheck,
    ) -> MergeReport:
        """As Library.seal, of the new vectors."""
        shop = Workshop(
            store=self._store,
            folder=self._folder / SEGMENTS,
            identity=self.identity,
            residency=self._residency,
            settings=self._settings,
            progress=progress,
            cancelled=cancelled,
        )
        return Sealer(shop, self._segments).seal(merge=merge)

    # ------------------------------------------------------------ the change

    def switch(self) -> None:
        """Puts the new vectors in the place of the old ones; they must all be sealed. Readers that have the old ones
        open keep them until they look again. Raises LibraryDamaged when they are not whole, StorageFull; then the
        library is as it was."""
        entries = self._sealed()
        segments = self._library_folder / SEGMENTS
        with self._library_store.reading() as db:
            number = catalogue.next_segment_id(db)
        try:
            given = [self._give(entry, segments / f"{number + n:08d}.hnsw") for n, entry in enumerate(entries)]
            with translated(segments):
                sync_folder(segments)
            with self._library_store.writing() as db:
                old = [entry.id for entry in catalogue.segments(db)]
                for entry, path in zip(entries, given, strict=True):
                    rows, chunk_ids, dead = self._rows(entry)
                    catalogue.adopt_segment(db, entry, file=path.name, rows=rows, chunk_ids=chunk_ids, dead_rows=dead)
                catalogue.forget_vectors(db, segments=old)
                replace_identity(db, self.identity)
        except BaseException:
            # Room again; what cannot be deleted now goes at the next writer's start.
            with contextlib.suppress(StorageFull):  # the failure being raised is the one to tell
                delete_unlisted(segments, self._library_store)
            raise
        self._library_store.checkpoint()

    def discard(self) -> None:
        """Deletes what was made; closes it."""
        self.close()
        discard(self._library_folder)

    def _sealed(self) -> list[SegmentEntry]:
        with self._store.reading() as db:
            waiting = chunk_rows.pending_count(db) + catalogue.unsealed_count(db)
            entries = catalogue.segments(db)
        if waiting:
            raise LibraryDamaged(
                f"{waiting} passages have no new vector in a segment.", remedy="Run `edgerag library reembed` again."
            )
        return entries

    def _give(self, entry: SegmentEntry, target: Path) -> Path:
        """The file under a name of the library's, beside its own one: a link, or a copy where there are none."""
        source = self._folder / SEGMENTS / entry.file
        with translated(target):
            target.unlink(missing_ok=True)  # of an earlier try
            if self._library_store.key is not None:
                return self._encrypted_anew(source, target, self._library_store.key)
            try:
                os.link(source, target)
            except FileNotFoundError as error:
                raise LibraryDamaged(f"{source} is missing.", remedy=START_ANEW) from error
            except OSError:  # FAT has no links, some network file systems neither
                with source.open("rb") as original, open(target, "wb", opener=private_opener) as copy:
                    shutil.copyfileobj(original, copy)
                    copy.flush()
                    os.fsync(copy.fileno())
        return target

    def _encrypted_anew(self, source: Path, target: Path, key: LibraryKey) -> Path:
        """An encrypted file says which one it is, so that under another name it would not open."""
        try:
            copy_units(source, role_of(source), target, role_of(target), source_key=key, target_key=key)
        except FileNotFoundError as error:
            raise LibraryDamaged(f"{source} is missing.", remedy=START_ANEW) from error
        except UnitDamaged as error:
            raise LibraryDamaged(f"{source} {error.what}.", remedy=START_ANEW) from error
        return target

    def _rows(self, entry: SegmentEntry) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        with self._store.reading() as db:
            return *catalogue.placements(db, entry.id), catalogue.dead_rows(db, entry.id)

    # ------------------------------------------------------------ opening

    def _opened(self) -> Store:
        try:
            store = self._store_of(self.identity)
        except (LibraryDamaged, LibraryVersionUnknown):
            store = None
        if store is None:  # nothing in it is worth more than the time that it took
            discard(self._library_folder)
            store = self._store_of(self.identity)
            assert store is not None, "a new one is for the embedder that it was made for"
        return store

    def _store_of(self, identity: EmbedderIdentity) -> Store | None:
        """None for one that was made for another embedder."""
        with translated(self._folder):
            make_private_folders(self._folder / SEGMENTS)
        store = Store(self._folder, mode="write", steps=_STEPS, key=self._library_store.key)
        try:
            made_for = read_identity(store)
            if made_for is None:
                write_identity(store, identity)
            elif not made_for.is_same_as(identity):
                store.close()
                return None
        except BaseException:
            store.close()
            raise
        return store

    def _note_chunks(self) -> None:
        """Takes in the chunks that came since the last run, and lets go of those that went."""
        with self._library_store.reading() as db:
            wanted = _ids(db)
        with self._store.reading() as db:
            noted = _ids(db)
        for gone in _batches(np.setdiff1d(noted, wanted, assume_unique=True)):
            with self._store.writing() as db:
                catalogue.bury(db, gone)
                ids = [(chunk_id,) for chunk_id in gone]
                db.executemany("DELETE FROM vectors WHERE chunk_id = ?", ids)
                db.executemany("DELETE FROM chunks WHERE id = ?", ids)
        for new in _batches(np.setdiff1d(wanted, noted, assume_unique=True)):
            with self._library_store.reading() as db:
                rows = db.execute(
                    "SELECT id, embedding_key FROM chunks WHERE id BETWEEN ? AND ?", (new[0], new[-1])
                ).fetchall()
            with self._store.writing() as db:
                # Those between that were noted before are as they were: a chunk's text never changes.
                db.executemany("INSERT OR IGNORE INTO chunks (id, embedding_key, state) VALUES (?, ?, 0)", rows)


START_ANEW = "Begin anew: edgerag library reembed --discard, then reembed."


def needed_bytes(rows: int, *, dimension: int, settings: SealSettings) -> int:
    """The room on the disk that making so many new vectors may take beside the old ones, at its highest: segments,
    those that they are merged from, what is written while one is built, and the journal of the change."""
    vector = dimension * (2 if settings.vector_type == "f16" else 4)
    has_graph = rows >= settings.graph_rows
    segment_row = vector + 24 + (dimension // 2 + dimension // 8 + 4 * settings.m + 60 if has_graph else 0)
    # The gathered vectors, and hnswlib's file with its own copy of them.
    building_row = 4 * dimension + (4 * dimension + 8 * settings.m + 30 if has_graph else 0)
    # Whole vectors wait in the new database until they are sealed; its pages are half empty at worst.
    waiting = min(rows, settings.unsealed_rows) * 2 * 4 * dimension
    new_database = rows * _NEW_ROW_BYTES + waiting + _NEW_JOURNAL_BYTES
    return rows * (2 * segment_row + building_row + _JOURNAL_BYTES) + new_database


def begun_count(folder: Path, identity: EmbedderIdentity, *, key: LibraryKey | None = None) -> int:
    """Vectors of that embedder that were made beside those of the library in ``folder``."""
    with _begun(folder, key) as store:
        made_for = None if store is None else read_identity(store)
        if store is None or made_for is None or not made_for.is_same_as(identity):
            return 0
        with store.reading() as db:
            return chunk_rows.chunk_count(db) - chunk_rows.pending_count(db)


@contextlib.contextmanager
def _begun(folder: Path, key: LibraryKey | None) -> Iterator[Store | None]:
    """What was begun, for reading; None when there is nothing that can be read."""
    try:
        store = Store(folder / FOLDER_NAME, mode="read", steps=_STEPS, key=key)
    except (LibraryMissing, LibraryDamaged, LibraryVersionUnknown, LibraryLocked, StorageFull):
        store = None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def discard(folder: Path) -> bool:
    """Deletes what was begun beside the library in ``folder``; False when there was nothing. Writer only."""
    begun = folder / FOLDER_NAME
    with translated(begun):
        if not begun.exists():
            return False
        # The database first: segments without one are nothing, a database without them would be damaged.
        for path in sorted(begun.glob("library.sqlite*")):
            path.unlink(missing_ok=True)
        shutil.rmtree(begun)
        return True


def forget_finished(folder: Path, identity: EmbedderIdentity, *, key: LibraryKey | None = None) -> None:
    """Deletes what a run left that was stopped after the change was made. Writer only."""
    if not (folder / FOLDER_NAME).exists():
        return
    with _begun(folder, key) as store:
        made_for = None if store is None else read_identity(store)
    if made_for is not None and made_for.is_same_as(identity):
        discard(folder)


def _ids(db: sqlite3.Connection) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in db.execute("SELECT id FROM chunks ORDER BY id")), dtype=np.int64)


def _batches(ids: NDArray[np.int64]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH].tolist()
