"""Looking at what is there: documents, threads, the state of the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgerag.errors import LibraryMissing, StorageFull
from edgerag.locations import is_there
from edgerag.session.wiring import Wiring
from edgerag.types import (
    Document,
    FoundSource,
    LeftOut,
    LibraryStatus,
    ParsedDocument,
    SegmentBlocks,
    Source,
    StoredChunk,
    own_id,
)

if TYPE_CHECKING:
    from edgerag.index.library import Failure, Library
    from edgerag.threads.store import ThreadStore

_TRACE_WAIT_S = 2.0  # for the trace of the last answer, when it is asked whether that was kept


class Browsing(Wiring):
    """What shows a library."""

    @property
    def threads(self) -> ThreadStore:
        """The conversations that are kept, where they belong now. Raises ThreadsError, StorageFull, LibraryLocked."""
        return self._threads_now()

    def threads_if_any(self) -> ThreadStore:
        """The same for who makes none: without any where there is no file of them and none can be made. Raises
        ThreadsError, StorageFull, LibraryLocked."""
        try:
            return self.threads
        except StorageFull:
            if is_there(self.locations.threads_file):
                raise
            from edgerag.threads.store import ThreadStore

            return ThreadStore(None)

    def source_document(self, source: Source) -> ParsedDocument | None:
        """The document of a source as the library has it now, found by its path, or by its number if it was moved;
        None when it is not there. Raises LibraryError."""
        try:
            with self._library_called(source.hit.chunk.library) as library:
                document = self._document_of(library, source)
                return None if document is None else library.parsed_document(document.id)
        except LibraryMissing:
            return None

    def _document_of(self, library: Library, source: Source) -> Document | None:
        """Found by its path, or by its number if it was moved and still says what is quoted."""
        stored = source.hit.chunk
        document = library.document_by_path(stored.path)
        if document is not None:
            return document
        moved = own_id(stored.document_id)
        found = next((document for document in library.documents() if document.id == moved), None)
        return found if found is not None and source.quote in library.parsed_document(moved).text else None

    def find_sources(self, sources: Sequence[Source], hashes: Sequence[str]) -> list[FoundSource]:
        """Kept sources, each with the hash of its passage, as they stand in the library now. Raises LibraryError."""
        from edgerag.threads.sources import find_again

        documents: dict[tuple[str, str], ParsedDocument | None] = {}
        found = []
        for source, hash_of_passage in zip(sources, hashes, strict=True):
            key = (source.hit.chunk.library, source.hit.chunk.path)
            if key not in documents:
                documents[key] = self.source_document(source)
            document = documents[key]
            found.append(find_again(source, hash_of_passage, None if document is None else document.text))
        return found

    @contextmanager
    def _library_called(self, name: str) -> Iterator[Library]:
        """One of those that are asked together, for reading; "" is the one in use."""
        folder = self._also.get(name)
        if folder is None:
            with self._browsing.use() as library:
                yield library
            return
        with self._open_for_reading(name, folder, None) as library:
            yield library

    def state_troubles(self) -> tuple[str, ...]:
        """What went wrong with the computed states of removed or edited documents, in sentences, each once."""
        states = self._states.made()
        return states.troubles() if states is not None else ()

    def documents(self) -> list[Document]:
        """The documents of the library; none when there is no library yet."""
        try:
            with self._browsing.use() as library:
                return library.documents()
        except LibraryMissing:
            return []

    def document_chunks(self, document_id: int) -> list[StoredChunk]:
        """What can be cited of a document, in its order; none where it is not there any more. Raises LibraryError."""
        try:
            with self._browsing.use() as library:
                return library.chunks_of(document_id)
        except LibraryMissing:
            return []

    def failures(self) -> list[Failure]:
        """The files that could not be read; none when there is no library yet."""
        try:
            with self._browsing.use() as library:
                return library.failures()
        except LibraryMissing:
            return []

    def left_out(self) -> list[LeftOut]:
        """What was found and not read; nothing when there is no library yet."""
        try:
            with self._browsing.use() as library:
                return library.left_out()
        except LibraryMissing:
            return []

    def parsed_document(self, document_id: int) -> ParsedDocument:
        """Of the id that a hit or a document of the library has."""
        if self._viewing is None:
            with self._browsing.use() as library:
                return library.parsed_document(document_id)
        with self._viewing.use() as shelf:
            shelf.begin()
            return shelf.parsed_document(document_id)

    def library_status(self) -> LibraryStatus | None:
        """The library as it stands; None when there is none yet."""
        try:
            with self._browsing.use() as library:
                return library.status()
        except LibraryMissing:
            return None

    def library_blocks(self) -> list[SegmentBlocks]:
        """The blocks of the index and how this process uses them. Raises LibraryMissing, LibraryDamaged."""
        with self._browsing.use() as library:
            return library.blocks()

    def trace_troubles(self) -> tuple[str, ...]:
        """What kept the traces of this session from being kept, in sentences, each once; waits for the last one."""
        return self._recorder.troubles(wait_s=_TRACE_WAIT_S)
