"""A library: documents, their words and their vectors in one folder, kept consistent.

    library.sqlite          everything but sealed vectors
    segments/00000001.hnsw  sealed vectors
    writer.lock             held by the one process that writes

Many readers and one writer work at the same time; a reader sees what was committed before its call.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import numpy as np

from edgerag.errors import EmbedderMismatch, LibraryDamaged, LibraryMissing, UsageError
from edgerag.index import analyze, catalogue, documents, health, keywords
from edgerag.index import chunks as chunk_rows
from edgerag.index.documents import Failure, FileFacts
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.kernel import exact_similarities
from edgerag.index.hnsw.residency import Residency
from edgerag.index.lock import WriterLock
from edgerag.index.segments import (
    FOLDER_NAME,
    OpenSegment,
    SealSettings,
    SegmentGone,
    SegmentSet,
    delete_unlisted,
    make_folders,
    seal,
    sync_folder,
)
from edgerag.index.store import Store, translated
from edgerag.types import (
    Chunk,
    Document,
    EmbedderIdentity,
    Finding,
    LegHit,
    LibraryStatus,
    ParsedDocument,
    StoredChunk,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

__all__ = ["Failure", "Library", "open_library"]

T = TypeVar("T")

# float32 rounding of an embedder's normalisation stays far inside this.
_UNIT_TOLERANCE = 1e-2


def open_library(
    folder: Path,
    *,
    mode: Literal["read", "write"],
    budget_bytes: int,
    identity: EmbedderIdentity | None = None,
    seal_settings: SealSettings | None = None,
) -> Library:
    """Opens the library in ``folder``; write mode makes it if it is missing (``identity`` is needed then).

    Raises LibraryMissing, LibraryBusy, LibraryDamaged, LibraryVersionUnknown, EmbedderMismatch, StorageFull,
    LibraryError where a new one would lie around a ``segments`` folder of the user's own.
    """
    with contextlib.ExitStack() as stack:
        lock: WriterLock | None = None
        if mode == "write":
            exists = (folder / "library.sqlite").exists()
            if not exists and identity is None:
                raise _missing(folder)
            make_folders(folder)
            lock = WriterLock(folder)
            stack.callback(lock.close)
        store = Store(folder, mode=mode)
        stack.callback(store.close)
        stored = _read_identity(store)
        if stored is None:
            if mode == "read" or identity is None:
                raise _missing(folder)
            _write_identity(store, identity)
            with translated(folder):
                sync_folder(folder)
            stored = identity
        _check_identity(folder, stored, identity)
        if mode == "write":
            with translated(folder):
                (folder / FOLDER_NAME).mkdir(exist_ok=True)
            delete_unlisted(folder / FOLDER_NAME, store)
        library = Library(
            folder, store, stored, lock=lock, budget_bytes=budget_bytes, seal_settings=seal_settings or SealSettings()
        )
        stack.pop_all()
        return library


def _missing(folder: Path) -> LibraryMissing:
    return LibraryMissing(f"There is no library in {folder}.", remedy="Make one: edgerag ingest FOLDER")


def _read_identity(store: Store) -> EmbedderIdentity | None:
    with store.reading() as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    if row is None:
        return None
    try:
        value = json.loads(row[0])
        return EmbedderIdentity(
            name=str(value["name"]),
            weights_sha256=str(value["weights_sha256"]),
            dimension=int(value["dimension"]),
            languages=tuple(map(str, value["languages"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LibraryDamaged(f"{store.path} does not say which embedder it was made with: {error}.") from error


def _write_identity(store: Store, identity: EmbedderIdentity) -> None:
    if identity.dimension < 1:
        raise UsageError(f"The embedder {identity.name!r} says it has {identity.dimension} dimensions.")
    value = {
        "name": identity.name,
        "weights_sha256": identity.weights_sha256,
        "dimension": identity.dimension,
        "languages": identity.languages,
    }
    with store.writing() as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('embedder', ?)", (json.dumps(value),))


def _check_identity(folder: Path, stored: EmbedderIdentity, given: EmbedderIdentity | None) -> None:
    # The weights decide: a renamed model file, or another quantisation of it, gives the same vectors.
    if given is None or (stored.weights_sha256, stored.dimension) == (given.weights_sha256, given.dimension):
        return
    raise EmbedderMismatch(
        f"The library in {folder} was made with the embedder {stored.name!r} ({stored.dimension} dimensions),"
        f" not with {given.name!r} ({given.dimension} dimensions).",
        remedy=f"Use {stored.name!r}, or ingest into another library (--library NAME).",
    )


class Library:
    """An open library. One thread at a time, any thread. Close it, or use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        identity: EmbedderIdentity,
        *,
        lock: WriterLock | None,
        budget_bytes: int,
        seal_settings: SealSettings,
    ) -> None:
        self._folder = folder
        self._store = store
        self._identity = identity
        self._lock = lock
        self._seal_settings = seal_settings
        self.residency = Residency(budget_bytes)
        self._segments = SegmentSet(
            folder, identity=identity, residency=self.residency, flat_rows=seal_settings.graph_rows
        )
        self._closed = False

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    @property
    def folder(self) -> Path:
        return self._folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of files and lock; closing twice is nothing."""
        if self._closed:
            return
        self._closed = True
        self._segments.close()
        self._store.close()
        if self._lock is not None:
            self._lock.close()

    # ------------------------------------------------------------ documents

    def documents(self) -> list[Document]:
        """All documents, by path."""
        with self._store.reading() as db:
            return documents.all_documents(db)

    def document(self, document_id: int) -> Document:
        """Raises UsageError if there is none of that id."""
        with self._store.reading() as db:
            return documents.document_by_id(db, document_id)

    def document_by_path(self, path: str) -> Document | None:
        with self._store.reading() as db:
            return documents.document_by_path(db, path)

    def parsed_document(self, document_id: int) -> ParsedDocument:
        """Text and structure as they were ingested. Raises UsageError if there is no such document."""
        with self._store.reading() as db:
            return documents.parsed_document(db, document_id)

    def put_document(
        self,
        parsed: ParsedDocument,
        chunks: Sequence[Chunk],
        *,
        path: str,
        root: str,
        content_sha256: str,
        size_bytes: int,
        mtime_ns: int,
    ) -> int:
        """Stores a document in one transaction, replacing the one of that path; returns its id.

        Chunks whose embedding text is unchanged keep id and vector. The text is found by keyword at
        once. A failure recorded for the path is forgotten.
        """
        facts = FileFacts(path, root, content_sha256, size_bytes, mtime_ns)
        with self._store.writing() as db:
            document_id = documents.write_document(db, parsed, facts)
            chunk_rows.write_chunks(db, document_id, parsed, chunks)
            documents.delete_failures(db, [path])
        return document_id

    def touch_document(self, document_id: int, *, size_bytes: int, mtime_ns: int) -> None:
        """Notes that the file was looked at again and its content is the same."""
        with self._store.writing() as db:
            documents.touch_document(db, document_id, size_bytes=size_bytes, mtime_ns=mtime_ns)

    def remove_documents(self, document_ids: Sequence[int]) -> int:
        """Removes documents with all that belongs to them; returns how many there were."""
        removed = 0
        with self._store.writing() as db:
            for document_id in document_ids:
                chunk_rows.remove_chunks(db, chunk_rows.chunk_ids_of(db, document_id))
                removed += documents.delete_document(db, document_id)
        return removed

    def record_failure(self, path: str, *, root: str, reason: str, size_bytes: int, mtime_ns: int) -> None:
        """Remembers that a file could not be read, so that it is tried again only when it changed."""
        with self._store.writing() as db:
            documents.write_failure(db, path, root=root, reason=reason, size_bytes=size_bytes, mtime_ns=mtime_ns)

    def failures(self) -> list[Failure]:
        with self._store.reading() as db:
            return documents.all_failures(db)

    def clear_failure(self, path: str) -> None:
        with self._store.writing() as db:
            documents.delete_failures(db, [path])

    # ------------------------------------------------------------ chunks

    def chunks(self, chunk_ids: Sequence[int]) -> list[StoredChunk]:
        """In the order given; ids that no longer exist are left out."""
        with self._store.reading() as db:
            return chunk_rows.read_chunks(db, chunk_ids)

    def chunk_count(self) -> int:
        with self._store.reading() as db:
            return chunk_rows.chunk_count(db)

    def pending_count(self) -> int:
        """Chunks that have no vector yet."""
        with self._store.reading() as db:
            return chunk_rows.pending_count(db)

    def pending_chunks(self, limit: int) -> list[StoredChunk]:
        """The first of them, in id order."""
        with self._store.reading() as db:
            return chunk_rows.pending_chunks(db, limit)

    # ------------------------------------------------------------ vectors

    def put_vectors(self, chunk_ids: Sequence[int], vectors: Vectors) -> None:
        """Stores the vectors of pending chunks, (n, dim) unit rows, in one durable transaction.

        Raises UsageError for a wrong shape, NaN, a vector that is not of unit length, or a chunk that
        is not pending; then none of them is stored.
        """
        checked = self._checked(vectors, rows=len(chunk_ids))
        with self._store.writing() as db:
            catalogue.put_vectors(db, chunk_ids, checked)

    def seal(self) -> None:
        """Moves stored vectors into immutable segments and merges small or mostly dead ones.

        Does nothing when there is nothing to do. Raises StorageFull; then the library is as before.
        """
        opened, _ = self._view(_nothing)
        changed = seal(self._store, opened, folder=self._folder, identity=self._identity, settings=self._seal_settings)
        if changed:
            self._view(_nothing)  # lets go of the files that were merged
            delete_unlisted(self._folder / FOLDER_NAME, self._store)

    def _view(self, read: Callable[[sqlite3.Connection], T]) -> tuple[list[OpenSegment], T]:
        """The open segments and what ``read`` gives, both as of the same commit."""
        while True:
            with self._store.reading() as db:
                try:
                    return self._segments.follow(db), read(db)
                except SegmentGone as error:
                    gone = error
            # Merged away after this view began? Then a new view no longer lists it.
            with self._store.reading() as db:
                if any(entry.file == gone.path.name for entry in catalogue.segments(db)):
                    raise layout.damaged(gone.path, "is missing") from gone

    def _checked(self, vectors: Vectors, *, rows: int) -> Vectors:
        """(rows, dim) float32, contiguous. Raises UsageError naming what is wrong."""
        dimension = self._identity.dimension
        if vectors.shape != (rows, dimension):
            raise UsageError(
                f"Vectors of shape {vectors.shape} were given where ({rows}, {dimension}) was expected.",
                remedy=f"The library was made with {self._identity.name!r}, which gives {dimension} dimensions.",
            )
        checked = np.ascontiguousarray(vectors, dtype="<f4")
        lengths = np.sqrt(np.einsum("ij,ij->i", checked, checked, dtype=np.float64))
        wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE))  # true for NaN too
        if len(wrong):
            raise UsageError(
                f"Vector {int(wrong[0])} of {rows} has length {float(lengths[wrong[0]]):g}; vectors must have length 1."
            )
        return checked

    # ------------------------------------------------------------ searching

    def search_keywords(self, query: str, *, limit: int) -> list[LegHit]:
        """The best chunks by BM25, higher is better; equal scores by id."""
        with self._store.reading() as db:
            return keywords.search(db, query, limit=limit)

    def search_vectors(self, vector: Vectors, *, limit: int, ef_search: int) -> list[LegHit]:
        """The nearest chunks by cosine, sealed or not; equal scores by id.

        Raises UsageError for a vector that is not (dim,), finite and of unit length, LibraryDamaged naming
        file and block.
        """
        query = self._checked(vector.reshape(1, -1), rows=1)[0]
        if limit < 1:
            return []
        opened, hits = self._view(lambda db: self._search_unsealed(db, query, limit=limit))
        for each in opened:
            hits += each.segment.search(query, limit=limit, ef_search=ef_search, dead=each.dead)
        hits.sort(key=lambda hit: (-hit.score, hit.chunk_id))
        return hits[:limit]

    def _search_unsealed(self, db: sqlite3.Connection, query: Vectors, *, limit: int) -> list[LegHit]:
        hits: list[LegHit] = []
        for ids, stored in catalogue.unsealed_vectors(db, dimension=self._identity.dimension):
            scores = exact_similarities(stored, query)
            hits += [LegHit(int(ids[i]), float(scores[i])) for i in np.lexsort((ids, -scores))[:limit]]
        return hits

    def keyword_coverage(self, query: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """For each chunk the share (0..1) of the query's content terms that stand in it, by rarity."""
        with self._store.reading() as db:
            return keywords.coverage(db, query, chunk_ids)

    def query_terms(self, query: str) -> tuple[str, ...]:
        """Content words of a query as the keyword index sees them (stop words only if nothing else is left)."""
        return tuple(term.surface for term in analyze.query_terms(query))

    # ------------------------------------------------------------ state

    def status(self) -> LibraryStatus:
        opened, _ = self._view(_nothing)
        return health.status(self._folder, self._store, self._identity, opened, self.residency)

    def verify(self) -> list[Finding]:
        """Checks everything that can be checked: database, every block, agreement of both."""
        return health.verify(self._folder, self._store, self._identity, self.residency)


def _nothing(_: sqlite3.Connection) -> None:
    """For a view of the segments alone."""
