"""A library: documents, their words and their vectors in one folder, kept consistent.

    library.sqlite          everything but sealed vectors
    segments/00000001.hnsw  sealed vectors
    reembedding/            vectors of another embedder, while they are being made
    writer.lock             held by the one process that writes

Many readers and one writer work at the same time; a reader sees what was committed before its call.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from edgerag.encryption.key_record import forget_unfinished_record
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import LibraryDamaged, LibraryMissing, StorageFull, UsageError
from edgerag.index import (
    analyze,
    catalogue,
    documents,
    evidence,
    filters,
    health,
    keywords,
    kv_keys,
    latent_rows,
    lost_paths,
    nearest,
    scan,
    twins,
)
from edgerag.index import chunks as chunk_rows
from edgerag.index import left_out as left_out_rows
from edgerag.index import tags as document_tags
from edgerag.index.construction import Workshop
from edgerag.index.documents import Failure, FailureNeeds, FileFacts, MovedFile, ReadContainer, Touched
from edgerag.index.hnsw.residency import Residency
from edgerag.index.identity import check_identity, read_identity, write_identity
from edgerag.index.keywords import TermCounts
from edgerag.index.kv_news import KvNews
from edgerag.index.latent_rows import SpaceKey
from edgerag.index.latent_space import LatentSpace
from edgerag.index.lock import WriterLock
from edgerag.index.nearest import checked_vectors, storable_vectors
from edgerag.index.place import Place
from edgerag.index.reembedding import Reembedding, begun_count, discard, forget_finished, needed_bytes
from edgerag.index.rescue import SegmentRescue, rescue_segments
from edgerag.index.rest_check import RestCheck
from edgerag.index.right_of_way import RightOfWay
from edgerag.index.scratch import ENCRYPTING_PREFIX, remove_left
from edgerag.index.sealing import Sealer
from edgerag.index.segments import (
    FOLDER_NAME,
    SealSettings,
    SegmentSet,
    delete_unlisted,
    make_folders,
)
from edgerag.index.store import Store, translated
from edgerag.index.unpacked import UnpackedParts
from edgerag.index.vectors import vectors_of
from edgerag.index.word_rules import Rules
from edgerag.machine.disk import sync_folder
from edgerag.types import (
    BringingUpWatch,
    CancelCheck,
    Chunk,
    Document,
    EmbedderIdentity,
    Filter,
    Finding,
    KeywordScan,
    KvChanges,
    KvSink,
    LatentEvidence,
    LeftOut,
    LegHit,
    LibraryStatus,
    MergeProgress,
    MergeReport,
    ParsedDocument,
    SearchWork,
    SegmentBlocks,
    StoredChunk,
    WordEvidence,
    WordQuery,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

__all__ = ["Failure", "FailureNeeds", "Library", "MovedFile", "ReadContainer", "Touched", "open_library"]

# For a mean: with so many its error is a tenth of the spread of cosines, far below what tells passages apart.
_SAMPLED_VECTORS = 128


def open_library(
    folder: Path,
    *,
    mode: Literal["read", "write"],
    residency: Residency,
    identity: EmbedderIdentity | None = None,
    seal_settings: SealSettings | None = None,
    kv_sink: KvSink | None = None,
    as_copy: bool = False,
    key: LibraryKey | None = None,
    watch: BringingUpWatch | None = None,
) -> Library:
    """Opens the library in ``folder``; write mode makes it if it is missing (``identity`` is needed then).

    ``residency`` bounds the memory of all libraries that it is given to, together. ``kv_sink`` is told
    which of the model's states are out of date: here what an earlier process left, and after each commit.

    Where it is of an older version, reading raises LibraryOutdated: to be opened for writing once, or ``as_copy`` where
    that cannot be. ``key``: of an encrypted library; a new one is encrypted by it. ``watch`` is told how far one of an
    older version is brought up, and stops that by raising something.

    Raises LibraryMissing, LibraryBusy, LibraryLocked, LibraryDamaged, LibraryVersionUnknown, EmbedderMismatch,
    StorageFull, LibraryReplaced where another process put another one in its place meanwhile, LibraryError where a new
    one would lie around a ``segments`` folder of the user's own.
    """
    place = Place(folder)
    with place.told(), contextlib.ExitStack() as stack:
        lock: WriterLock | None = None
        if mode == "write":
            exists = (folder / "library.sqlite").exists()
            if not exists and identity is None:
                raise _missing(folder)
            make_folders(folder)
            lock = WriterLock(folder)
            stack.callback(lock.close)
        store = Store(folder, mode=mode, as_copy=as_copy, key=key, watch=watch)
        stack.callback(store.close)
        stored = read_identity(store)
        if stored is None:
            if mode == "read" or identity is None:
                raise _missing(folder)
            write_identity(store, identity)
            with translated(folder):
                sync_folder(folder)
            stored = identity
        check_identity(folder, stored, identity)
        if mode == "write":
            with translated(folder):
                (folder / FOLDER_NAME).mkdir(mode=0o700, exist_ok=True)
            delete_unlisted(folder / FOLDER_NAME, store)
            forget_finished(folder, stored, key=key)
            forget_unfinished_record(folder)
        if key is not None or mode == "write":
            remove_left(folder.parent, ENCRYPTING_PREFIX)
        place.check()
        library = Library(
            folder,
            store,
            stored,
            place=place,
            lock=lock,
            residency=residency,
            seal_settings=seal_settings or SealSettings(),
            kv_news=KvNews(store, kv_sink),
        )
        stack.pop_all()
        return library


def _missing(folder: Path) -> LibraryMissing:
    return LibraryMissing(f"There is no library in {folder}.", remedy="Make one: edgerag ingest FOLDER")


class Library:
    """An open library. One thread at a time, any thread. Close it, or use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        identity: EmbedderIdentity,
        *,
        place: Place,
        lock: WriterLock | None,
        residency: Residency,
        seal_settings: SealSettings,
        kv_news: KvNews,
    ) -> None:
        self._folder = folder
        self._place = place
        self._store = store
        self._identity = identity
        self._lock = lock
        self._seal_settings = seal_settings
        self._kv_news = kv_news
        self.residency = residency
        self._segments = self._segment_set()
        self._counted: tuple[tuple[object, ...], TermCounts] | None = None
        self._own_rules: tuple[tuple[int, int], tuple[Rules, ...]] | None = None
        self._unpacked = UnpackedParts()
        self._mean: tuple[tuple[int, int], tuple[Vectors, int]] | None = None  # as of a generation
        with translated(folder):
            self._way = RightOfWay(folder) if lock is not None else None
        self._rest_check = RestCheck(folder, store.path)
        self._latent: tuple[SpaceKey | None, LatentSpace | None] | None = None
        self._closed = False

    def look_at_rest(self) -> None:
        """Begins to compare the whole database file with its checksums, once, beside what else is done."""
        self._rest_check.begin()

    def damage_note(self) -> str:
        """What that found, for people; "" where nothing is wrong or nothing is known yet."""
        return self._rest_check.note()

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
        self._rest_check.close()
        self._segments.close()
        self._kv_news.close()
        self._store.close() if self._lock is None else self._store.close_at_rest()
        if self._way is not None:
            self._way.close()
        if self._lock is not None:
            self._lock.close()

    def give_way(self) -> None:
        """Waits, for a second at most, while somebody asks this library something; see right_of_way.py."""
        if self._way is not None:
            self._way.give()

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

    def text_around(self, chunk_id: int, characters: int) -> tuple[str, str]:
        """So many characters of its document before a chunk and behind it, as far as there are; "" for a chunk that
        is not there any more."""
        with self._store.reading() as db:
            return chunk_rows.text_around(db, chunk_id, characters, unpacked=self._unpacked)

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
        tags: Sequence[str] = (),
        content_bytes: int = 0,
        seconds: float = 0.0,
        around_sha256: str = "",
        ocr: str = "",
    ) -> int:
        """Stores a document in one transaction, replacing the one of that path, or one of the same text whose path was
        lost to damage; returns its id.

        Chunks whose embedding text is unchanged keep id and vector. The text is found by keyword at
        once. ``tags`` are added to those that it has. A failure recorded for the path is forgotten.
        """
        facts = FileFacts(path, root, content_sha256, size_bytes, mtime_ns, content_bytes, seconds, around_sha256, ocr)
        with self._kv_news.writing() as db:
            lost_paths.find_again(db, parsed, path=path, root=root)
            before = kv_keys.earlier(db, path)
            document_id = documents.write_document(db, parsed, facts)
            versions = kv_keys.replace(db, path, before, title=parsed.title, chunks=chunks)
            chunk_rows.write_chunks(db, document_id, parsed, chunks, kv_versions=versions, between=self.give_way)
            catalogue.changed(db)  # its type, date and language are, and filters by those are remembered
            documents.delete_failures(db, [path])
            _add_tags(db, [document_id], tags)
        return document_id

    def analyse_again(self, language_of: Callable[[ParsedDocument], str], *, limit: int) -> int:
        """Makes the words of so many documents anew whose words an older version of this program made, and finds their
        languages; how many there were. Until then they are found by that version's rules. Vectors stay as they are.

        Each document is one durable transaction.
        """
        with self._store.reading() as db:
            ids = documents.analysed_before(db, limit=limit)
        for document_id in ids:
            with self._store.writing() as db:
                parsed = documents.parsed_document(db, document_id)
                parsed = replace(parsed, language=language_of(parsed))
                chunk_rows.analyse_again(db, document_id, parsed)
                documents.set_language(db, document_id, parsed.language)
                latent_rows.forget(db)
                catalogue.changed(db)  # filters by language are remembered
        return len(ids)

    def analysed_before_count(self) -> int:
        """Documents whose words an older version of this program made."""
        with self._store.reading() as db:
            return documents.analysed_before_count(db)

    def tag_documents(self, document_ids: Sequence[int], tags: Sequence[str]) -> None:
        """Adds tags to documents. Raises UsageError for what can be no tag."""
        if not document_ids or not tags:
            return
        with self._store.writing() as db:
            _add_tags(db, document_ids, tags)

    def untag_documents(self, document_ids: Sequence[int], tags: Sequence[str]) -> None:
        """Takes tags from documents. Raises UsageError for what can be no tag."""
        names = [document_tags.normal_tag(tag) for tag in tags]
        with self._store.writing() as db:
            if document_tags.remove_tags(db, document_ids, names):
                catalogue.changed(db)

    def tags(self) -> list[str]:
        """Every tag in use, in alphabetical order."""
        with self._store.reading() as db:
            return document_tags.known_tags(db)

    def touch_documents(self, touched: Sequence[Touched]) -> None:
        """Notes that files were looked at again and their content is the same; in one transaction."""
        if touched:
            with self._store.writing() as db:
                documents.touch_documents(db, touched)
                catalogue.changed(db)  # filters by date are remembered

    def move_files(self, files: Sequence[MovedFile]) -> None:
        """Notes that files have other paths now, in one transaction, with all that lies in them. Chunks and vectors
        stay; states are named by the path, and go.

        Raises UsageError if there is no such document, or one of such a path; then none is moved.
        """
        if not files:
            return
        moves = [move for file in files for move in file.documents]
        with self._kv_news.writing() as db:
            for move in moves:
                documents.document_by_id(db, move.document_id)
                if documents.document_by_path(db, move.path) is not None:
                    raise UsageError(f"There is a document {move.path!r} already.")
                kv_keys.remove(db, move.document_id)
                documents.move_document(db, move.document_id, path=move.path, root=move.root, unread=move.unread)
                kv_keys.restart(db, move.document_id, move.path)
            documents.delete_failures(db, [move.path for move in moves])
            for file in files:
                for failed, target in file.failures:
                    documents.move_failure(db, failed, to=target)
                documents.move_container(db, file.old, to=file.new, unread=file.unread)
            catalogue.changed(db)  # filters by path are remembered

    def remove_documents(self, document_ids: Sequence[int]) -> int:
        """Removes documents with all that belongs to them; returns how many there were."""
        removed = 0
        with self._kv_news.writing() as db:
            for document_id in document_ids:
                kv_keys.remove(db, document_id)
                chunk_rows.remove_chunks(db, chunk_rows.chunk_ids_of(db, document_id))
                removed += documents.delete_document(db, document_id)
        return removed

    def keep_container(self, path: str, container: ReadContainer) -> None:
        """Notes that all members of that archive or mail were looked at, so that it is opened again only when it
        changed, or the limit was raised that something in it was above."""
        with self._store.writing() as db:
            documents.write_container(db, path, container)

    def containers(self) -> dict[str, ReadContainer]:
        """Each archive or mail that was read to its end, as it was then, by path."""
        with self._store.reading() as db:
            return documents.all_containers(db)

    def forget_containers(self, paths: Sequence[str]) -> None:
        with self._store.writing() as db:
            documents.delete_containers(db, paths)

    def record_failure(
        self, path: str, *, reason: str, size_bytes: int, mtime_ns: int, needs: FailureNeeds = ""
    ) -> None:
        """Remembers that a file could not be read, so that it is tried again only when it changed, or when there is
        what it needs."""
        failure = Failure(path, reason, size_bytes, mtime_ns, needs)
        with self._store.writing() as db:
            documents.write_failure(db, failure)

    def failures(self) -> list[Failure]:
        with self._store.reading() as db:
            return documents.all_failures(db)

    def clear_failure(self, path: str) -> None:
        with self._store.writing() as db:
            documents.delete_failures(db, [path])

    def mounts(self) -> list[str]:
        """Folders below the ingested ones in which another file system was mounted when they were last looked at."""
        with self._store.reading() as db:
            return documents.all_mounts(db)

    def keep_mounts(self, paths: Collection[str]) -> None:
        """Notes them, in the place of those that were noted before."""
        if sorted(paths) != self.mounts():
            with self._store.writing() as db:
                documents.replace_mounts(db, sorted(paths))

    def left_out(self) -> list[LeftOut]:
        """What was found and not read, the first of it in the order of their paths."""
        with self._store.reading() as db:
            return left_out_rows.all_left_out(db)

    def keep_left_out(self, reasons: Mapping[str, str]) -> None:
        """Notes what was found and is not read, and why, in the place of what was noted before."""
        kept = dict(sorted(reasons.items())[: left_out_rows.MOST_LEFT_OUT])
        before = {found.path: found.reason for found in self.left_out()}
        if kept != before:
            with self._store.writing() as db:
                left_out_rows.replace_left_out(db, before, kept)

    # ------------------------------------------------------------ chunks

    def chunks(self, chunk_ids: Sequence[int]) -> list[StoredChunk]:
        """In the order given; ids that no longer exist are left out."""
        with self._store.reading() as db:
            return chunk_rows.read_chunks(db, chunk_ids, unpacked=self._unpacked)

    def chunks_of(self, document_id: int) -> list[StoredChunk]:
        """The chunks of a document, in its order; none where there is no such document."""
        with self._store.reading() as db:
            return chunk_rows.read_chunks(db, chunk_rows.ids_of(db, document_id), unpacked=self._unpacked)

    def chunk_count(self) -> int:
        with self._store.reading() as db:
            return chunk_rows.chunk_count(db)

    def is_empty(self) -> bool:
        """Whether there is no chunk; known at once, however many there are."""
        with self._store.reading() as db:
            return chunk_rows.is_empty(db)

    def sample(self, limit: int) -> list[StoredChunk]:
        """At most so many chunks, lying evenly through the library; the same each time for the same library."""
        with self._store.reading() as db:
            return chunk_rows.read_chunks(db, chunk_rows.sample_ids(db, limit))

    def pending_count(self) -> int:
        """Chunks that have no vector yet."""
        with self._store.reading() as db:
            return chunk_rows.pending_count(db)

    def pending_of(self, document_id: int) -> list[int]:
        """The chunks of a document that have no vector yet."""
        with self._store.reading() as db:
            return chunk_rows.pending_ids(db, document_id)

    def pending_chunks(self, limit: int) -> list[StoredChunk]:
        """The first of them, in id order."""
        with self._store.reading() as db:
            return chunk_rows.pending_chunks(db, limit)

    def kv_changes(self, since: int = 0) -> KvChanges:
        """Which of the model's states are out of date and were not settled, of the changes after number ``since``."""
        with self._store.reading() as db:
            return kv_keys.changes(db, since=since)

    # ------------------------------------------------------------ vectors

    def put_vectors(self, chunk_ids: Sequence[int], vectors: Vectors) -> None:
        """Stores the vectors of pending chunks, (n, dim) unit rows, in one durable transaction.

        Raises UsageError for a wrong shape, NaN, a vector that is not of unit length, or a chunk that
        is not pending; then none of them is stored.
        """
        checked = storable_vectors(
            vectors, rows=len(chunk_ids), identity=self._identity, vector_type=self._seal_settings.vector_type
        )
        with self._store.writing() as db:
            catalogue.put_vectors(db, chunk_ids, checked)

    def known_vectors(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]:
        """For those of the chunks whose text another chunk has with a vector: that vector, (dim,).

        Raises LibraryDamaged for a segment that cannot be read.
        """
        return twins.known_vectors(self._store, self._segments, chunk_ids, dimension=self._identity.dimension)

    def vectors_of(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]:
        """By chunk, its vector, (dim,) of unit length; chunks without one are left out.

        Raises LibraryDamaged for a segment that cannot be read.
        """
        return vectors_of(self._store, self._segments, chunk_ids, dimension=self._identity.dimension)

    def seal_is_due(self) -> bool:
        """Whether so many vectors are unsealed that comparing them one by one would soon be felt."""
        with self._store.reading() as db:
            return catalogue.unsealed_count(db) >= self._seal_settings.unsealed_rows

    def seal(
        self,
        *,
        merge: bool = True,
        progress: Callable[[MergeProgress], None] | None = None,
        cancelled: CancelCheck | None = None,
    ) -> MergeReport:
        """Moves stored vectors into immutable segments; with ``merge`` also joins small or mostly dead ones.

        Does nothing when there is nothing to do. Cancelled or stopped by StorageFull, it leaves what it had finished,
        and the other vectors where they were: found as before, and sealed next time.
        """
        return self._sealer(progress, cancelled).seal(merge=merge)

    def compact(
        self, *, progress: Callable[[MergeProgress], None] | None = None, cancelled: CancelCheck | None = None
    ) -> MergeReport:
        """Writes the segments anew, as few as the free memory allows, without the vectors of removed chunks.

        Cancelled or stopped by StorageFull, it leaves what it had finished.
        """
        return self._sealer(progress, cancelled).compact()

    def _segment_set(self) -> SegmentSet:
        return SegmentSet(
            self._folder,
            identity=self._identity,
            residency=self.residency,
            flat_rows=self._seal_settings.graph_rows,
            key=self._store.key,
            place=self._place,
        )

    def _sealer(self, progress: Callable[[MergeProgress], None] | None, cancelled: CancelCheck | None) -> Sealer:
        shop = Workshop(
            store=self._store,
            folder=self._folder / FOLDER_NAME,
            identity=self._identity,
            residency=self.residency,
            settings=self._seal_settings,
            progress=progress or _tell_nobody,
            cancelled=cancelled or _never,
        )
        return Sealer(shop, self._segments)

    # ------------------------------------------------------------ another embedder

    def is_current(self) -> bool:
        """Whether the library is still the one that was opened, and made with the same embedder; if not, open it
        again."""
        if not self._place.is_same():
            return False
        stored = read_identity(self._store)
        return stored is not None and stored.is_same_as(self._identity)

    @contextlib.contextmanager
    def reembedding(self, identity: EmbedderIdentity) -> Iterator[Reembedding]:
        """Vectors of another embedder, to be made beside those in use; goes on where an earlier run stopped. Nothing
        is written to the library meanwhile but by :meth:`switch`. Raises StorageFull."""
        with Reembedding(
            self._folder,
            self._store,
            identity=identity,
            residency=self.residency,
            settings=self._seal_settings,
        ) as begun:
            yield begun

    def switch(self, begun: Reembedding) -> None:
        """Puts the new vectors in the place of the old ones in one transaction, and deletes the old files. Raises what
        Reembedding.switch does; then the library is as it was."""
        begun.switch()
        self._identity = begun.identity
        self._segments.close()
        self._segments = self._segment_set()
        self._mean = None
        begun.discard()
        delete_unlisted(self._folder / FOLDER_NAME, self._store)

    def reembedding_counts(self, identity: EmbedderIdentity) -> tuple[int, int]:
        """(chunks that an earlier run, which was stopped, has made a vector for; all chunks)."""
        return begun_count(self._folder, identity, key=self._store.key), self.chunk_count()

    def discard_reembedding(self) -> bool:
        """Deletes what was made for another embedder and not finished; False when there is nothing."""
        return discard(self._folder)

    def reembedding_bytes(self, identity: EmbedderIdentity) -> int:
        """The room on the disk that changing over to another embedder may take, at its highest."""
        return needed_bytes(self.chunk_count(), dimension=identity.dimension, settings=self._seal_settings)

    # ------------------------------------------------------------ searching

    def check_filter(self, where: Filter) -> Filter:
        """``where`` as the searches take it. Raises UsageError for one that names what is not there, naming what is."""
        with self._store.reading() as db:
            return filters.checked_filter(db, where)

    def word_rules(self) -> tuple[Rules, ...]:
        """Those by which the words of its documents were made, and those of a query are."""
        with self._store.reading() as db:
            return self._rules(db)

    def _rules(self, db: sqlite3.Connection, given: Sequence[Rules] | None = None) -> tuple[Rules, ...]:
        """Those given, else its own, which are looked up once for each change: each step of a question needs them."""
        if given is not None:
            return tuple(given)
        state = _state(db)
        if self._own_rules is None or self._own_rules[0] != state:
            self._own_rules = (state, keywords.rules_of_library(db))
        return self._own_rules[1]

    def search_keywords(
        self, query: str, *, limit: int, where: Filter | None = None, rules: Sequence[Rules] | None = None
    ) -> list[LegHit]:
        """The best chunks by BM25 among the documents of ``where``, higher is better; equal scores by id. ``rules``:
        for this as for all below, those of several libraries together; None for its own."""
        with self._store.reading() as db:
            rules = self._rules(db, rules)
            counts = self._counts(db, query, rules)
            return keywords.search(db, query, limit=limit, where=where, rules=rules, counts=counts)

    def search_vectors(
        self,
        vector: Vectors,
        *,
        limit: int,
        ef_search: int,
        where: Filter | None = None,
        out_of_time: CancelCheck | None = None,
        work: SearchWork | None = None,
    ) -> list[LegHit]:
        """The nearest chunks by cosine among the documents of ``where``, sealed or not; equal scores by id.

        Raises UsageError for a vector that is not (dim,), finite and of unit length, LibraryDamaged naming
        file and block, TooLate once ``out_of_time()``.
        """
        (query,) = checked_vectors(vector.reshape(1, -1), rows=1, identity=self._identity)
        return nearest.search(
            self._store,
            self._segments,
            query,
            limit=limit,
            ef_search=ef_search,
            where=where,
            out_of_time=out_of_time or _never,
            work=work,
        )

    def mean_vector(self) -> tuple[Vectors, int]:
        """((dim,) the mean of vectors that lie evenly through the library, how many they were): its product with a
        question's vector is the cosine that the question has with any passage. Read once for each commit of vectors."""
        with self._store.reading() as db:
            generation = (catalogue.generation(db), chunk_rows.pending_count(db))
        if self._mean is None or self._mean[0] != generation:
            mean = nearest.mean_vector(
                self._store, self._segments, dimension=self._identity.dimension, sampled=_SAMPLED_VECTORS
            )
            self._mean = (generation, mean)
        return self._mean[1]

    def latent_evidence(self, words: WordEvidence, chunk_ids: Sequence[int]) -> LatentEvidence | None:
        """Of those chunks, all of which are among ``words``; None while there is no latent space. It is read once for
        each time that it was made."""
        try:
            with self._store.reading() as db:
                key = latent_rows.key_of(db)
                if self._latent is None or self._latent[0] != key:
                    self._latent = (key, latent_rows.read_space(db) if key is not None else None)
        except LibraryDamaged:  # as good as none; the check at rest tells it
            return None
        space = self._latent[1]
        return space.evidence(words, chunk_ids) if space is not None else None

    def latent_space_is_due(self) -> bool:
        """Whether so much has changed that the latent space is to be made anew."""
        with self._store.reading() as db:
            return latent_rows.is_due(db)

    def make_latent_space(self, *, cancelled: CancelCheck | None = None) -> None:
        """Learns which words stand together in the passages that are there. Raises Cancelled, which leaves it as it
        was, StorageFull."""
        latent_rows.make(self._store, cancelled=cancelled or _never)

    def keep_latent_space(self) -> None:
        """Makes it anew where it is time. On a full disk it stays as it is, and due: the next ingest says so."""
        if self.latent_space_is_due():
            with contextlib.suppress(StorageFull):
                self.make_latent_space()

    def term_counts(self, query: str, *, rules: Sequence[Rules] | None = None) -> TermCounts:
        """What BM25 counts here for the query."""
        with self._store.reading() as db:
            return self._counts(db, query, self._rules(db, rules))

    def _counts(self, db: sqlite3.Connection, query: str, rules: tuple[Rules, ...]) -> TermCounts:
        """Those of the last query are kept: planning and ranking ask for the same, and common words take a while."""
        key = (query, rules, *_state(db))
        if self._counted is None or self._counted[0] != key:
            self._counted = (key, keywords.term_counts(db, query, rules))
        return self._counted[1]

    def keyword_scores(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        own: TermCounts,
        together: TermCounts,
        rules: Sequence[Rules],
    ) -> dict[int, float]:
        """The BM25 of chunks as it would be in one library with all documents of several: ``together`` is what is
        counted in those, ``own`` in this one."""
        with self._store.reading() as db:
            return keywords.scores(db, query, chunk_ids, own=own, together=together, rules=rules)

    def word_evidence(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        counts: TermCounts | None = None,
        rules: Sequence[Rules] | None = None,
    ) -> WordEvidence:
        """The words of a query and of chunks as the index compares them, weighed by ``counts``; None for its own."""
        with self._store.reading() as db:
            rules = self._rules(db, rules)
            counts = counts or self._counts(db, query, rules)
            return evidence.evidence(db, query, chunk_ids, counts=counts, rules=rules)

    def query_terms(self, query: str) -> tuple[str, ...]:
        """Content words of a query as the keyword index sees them (stop words only if nothing else is left)."""
        return tuple(term.surface for term in analyze.query_terms(query))

    def term_weights(
        self, query: str, *, counts: TermCounts | None = None, rules: Sequence[Rules] | None = None
    ) -> dict[str, float]:
        """Content words of a query with their idf in the library, in order; 0.0 for one that stands nowhere."""
        with self._store.reading() as db:
            rules = self._rules(db, rules)
            counts = counts or self._counts(db, query, rules)
            return keywords.weights(db, query, counts=counts, rules=rules)

    def scan_keywords(self, words: WordQuery, *, document_limit: int, where: Filter | None = None) -> KeywordScan:
        """Counts the documents of ``where`` that ``words`` mean, and their passages; all of them for no words. Names
        ``document_limit`` documents at most, those with most passages first, then by path."""
        with self._store.reading() as db:
            return scan.scan(db, words, document_limit=document_limit, where=where)

    # ------------------------------------------------------------ state

    def status(self) -> LibraryStatus:
        opened, _ = self._segments.view(self._store, _nothing)
        return health.status(self._folder, self._store, self._identity, opened, self.residency)

    def blocks(self) -> list[SegmentBlocks]:
        """Every block of every segment file, and how it is used by this process."""
        opened, _ = self._segments.view(self._store, _nothing)
        return health.segment_blocks(opened)

    def rescue(self) -> list[SegmentRescue]:
        """Takes damaged segments out, and keeps the vectors that they still have, unsealed. Raises StorageFull."""
        self._segments.close()
        self._segments = self._segment_set()
        return rescue_segments(self._folder, self._store, identity=self._identity, residency=self.residency)

    def verify(self) -> list[Finding]:
        """Checks everything that can be checked: database, every block, agreement of both. Raises LibraryReplaced where
        that is no longer the one that was opened."""
        findings = health.verify(self._folder, self._store, self._identity, self.residency)
        self._place.check()
        return findings


def _state(db: sqlite3.Connection) -> tuple[int, int]:
    """Changes with whatever others or this connection write."""
    (version,) = db.execute("PRAGMA data_version").fetchone()
    return int(version), db.total_changes


def _nothing(_: sqlite3.Connection) -> None:
    """For a view of the segments alone."""


def _tell_nobody(_: MergeProgress) -> None:
    """Progress that nobody watches."""


def _never() -> bool:
    return False


def _add_tags(db: sqlite3.Connection, document_ids: Sequence[int], tags: Sequence[str]) -> None:
    names = [document_tags.normal_tag(tag) for tag in tags]
    if document_tags.add_tags(db, document_ids, names):
        catalogue.changed(db)  # what a filter keeps out has changed
