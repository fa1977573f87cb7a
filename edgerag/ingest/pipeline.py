"""The ingest flow: discover, parse, chunk, embed, commit, as a generator of typed events.

Promises: each document is committed with its chunks as soon as it is read, each batch of vectors as soon
as it is embedded, so that whatever ends the run (a cancel, Ctrl-C, ``kill -9``, a full disk) leaves a
whole library and the next run goes on. Vectors are sealed whenever many have come together, and at the end.
Files that did not change cost a stat; nothing is embedded twice; the embedder is only asked for when there
is something to chunk or to embed. One bad file is named in its report and stops nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.ingest.ahead import ParseAhead, ToRead, WasRead
from edgerag.ingest.chunk import chunk
from edgerag.ingest.discover import Candidate, Discovery, discover
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, Parsed, Unchanged
from edgerag.ingest.progress import Progress
from edgerag.ingest.sealing import seal
from edgerag.types import (
    CancelCheck,
    Document,
    Embedder,
    FileDone,
    FileReport,
    FilesDiscovered,
    IngestDone,
    IngestEvent,
    Outcome,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library

# How long to wait for the parser before saying again where the run is.
_WAIT_S = 0.2
# Files that cost only a stat go by too fast to be told one by one.
_PROGRESS_EVERY_S = 0.1
_REMOVED_TOGETHER = 500  # documents in one transaction


def ingest(
    paths: Sequence[Path],
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    settings: IngestSettings,
    chunks: ChunkSettings,
    tags: Sequence[str] = (),
    cancelled: CancelCheck,
) -> Iterator[IngestEvent]:
    """Brings the library in line with the files under ``paths``; the last event is IngestDone.

    Every document found there is given ``tags``, also one that did not change.

    Raises UsageError for a path that does not exist, and what the library and the embedder raise
    (StorageFull, LibraryBusy, ModelError, ...).
    """
    return _Run(library, embedder, settings, chunks, tuple(tags), cancelled).events(paths)


class _Run:
    def __init__(
        self,
        library: Library,
        embedder: Callable[[], Embedder],
        settings: IngestSettings,
        chunk_settings: ChunkSettings,
        tags: tuple[str, ...],
        cancelled: CancelCheck,
    ) -> None:
        self._library = library
        self._embedder = embedder
        self._settings = settings
        self._chunk_settings = chunk_settings
        self._tags = tags
        self._cancelled = cancelled
        self._reports: dict[str, FileReport] = {}
        self._known: dict[str, Document] = {}
        self._failed_before: dict[str, tuple[int, int, str]] = {}
        self._progress = Progress(files_total=0, clock=time.monotonic)
        self._told_at = float("-inf")
        self._notes: dict[str, None] = {}  # each once, in order

    def events(self, paths: Sequence[Path]) -> Iterator[IngestEvent]:
        discovery = discover(paths, own=self._library.folder)
        self._progress.files_total = len(discovery.files) + len(discovery.unread)
        yield FilesDiscovered(self._progress.files_total)
        self._known = {document.path: document for document in self._library.documents()}
        self._failed_before = {
            failure.path: (failure.size_bytes, failure.mtime_ns, failure.reason) for failure in self._library.failures()
        }
        yield from self._remove_gone(discovery)
        for unread in discovery.unread:
            yield self._report(unread.path, "failed" if unread.trouble else "skipped", unread.reason)
        to_read: list[ToRead] = []
        for candidate in discovery.files:
            if self._cancelled():
                break
            yield from self._without_reading(candidate, to_read)
        self._tag_unchanged()
        self._progress.bytes_to_read = sum(file.candidate.size_bytes for file in to_read)
        self._progress.chunks_pending = self._library.pending_count()
        interrupted = self._cancelled()
        if not interrupted and (to_read or self._progress.chunks_pending):
            interrupted = yield from self._read_and_embed(to_read)
        if not interrupted:
            interrupted = yield from self._seal(merge=True)
        yield self._progress.event("")
        yield IngestDone(
            reports=tuple(self._reports[path] for path in sorted(self._reports)),
            chunks_embedded=self._progress.chunks_done,
            seconds=self._progress.seconds(),
            interrupted=interrupted,
            notes=tuple(self._notes),
        )

    def _seal(self, *, merge: bool) -> Generator[IngestEvent, None, bool]:
        """Seals what is embedded; True when it was cancelled, which loses nothing."""
        yield self._progress.event("sealing the index")
        report = yield from seal(self._library, merge=merge, cancelled=self._cancelled, event=self._progress.event)
        for reason in report.damaged:
            self._notes[f"A part of the index was left as it is, because it cannot be read: {reason}"] = None
        return report.cancelled

    # ------------------------------------------------------------ what needs no reading

    def _tag_unchanged(self) -> None:
        """Gives the tags to what was found as it was; what is read gets them when it is stored."""
        if self._tags:
            unchanged = [path for path, report in self._reports.items() if report.outcome == "unchanged"]
            self._library.tag_documents([self._known[path].id for path in unchanged], self._tags)

    def _remove_gone(self, discovery: Discovery) -> Iterator[IngestEvent]:
        """Removes documents whose file no longer exists; one that cannot be examined now is kept."""
        present = {candidate.path for candidate in discovery.files}
        gone = [
            document
            for path, document in self._known.items()
            if path not in present and discovery.covers(path) and _is_gone(path)
        ]
        for first in range(0, len(gone), _REMOVED_TOGETHER):
            batch = gone[first : first + _REMOVED_TOGETHER]
            self._library.remove_documents([document.id for document in batch])
            for document in batch:
                del self._known[document.path]
                self._progress.files_total += 1
                yield self._report(document.path, "removed", "The file is gone.", document.chunk_count)
        for path in [path for path in self._failed_before if path not in present and discovery.covers(path)]:
            if _is_gone(path):
                self._library.clear_failure(path)

    def _without_reading(self, candidate: Candidate, to_read: list[ToRead]) -> Iterator[IngestEvent]:
        """Reports a file whose stat says that nothing changed since it was read or refused; else lists it.

        A refused file that was named itself, not found in a folder, is tried again: its user asks for it.
        """
        stat = (candidate.size_bytes, candidate.mtime_ns)
        document = self._known.get(candidate.path)
        failure = self._failed_before.get(candidate.path)
        if document is not None and stat == (document.size_bytes, document.mtime_ns):
            yield self._report(candidate.path, "unchanged", "", document.chunk_count)
        elif failure is not None and stat == failure[:2] and candidate.path != candidate.root:
            yield self._report(candidate.path, "failed", failure[2])
        else:
            to_read.append(ToRead(candidate, document.content_sha256 if document is not None else ""))
            return
        now = time.monotonic()
        if now - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = now
            yield self._progress.event(candidate.path)

    # ------------------------------------------------------------ reading and embedding

    def _read_and_embed(self, to_read: list[ToRead]) -> Generator[IngestEvent, None, bool]:
        """Stores documents as they are read and embeds in between; True when it was cancelled."""
        parser = ParserProcess(
            memory_bytes=self._settings.parse_memory,
            max_file_bytes=self._settings.max_file_size,
            deadline_s=self._settings.parse_deadline_s,
        )
        ahead = ParseAhead(to_read, parser)
        try:
            while True:
                if self._cancelled():
                    return True
                # Documents first: they can be found by keyword at once, and what is left becomes known.
                result = ahead.take(timeout_s=0.0 if self._progress.chunks_pending else _WAIT_S)
                if isinstance(result, WasRead):
                    yield from self._store(result)
                elif self._progress.chunks_pending:
                    yield from self._embed_batch()
                elif result == "end":
                    return False
                else:
                    yield self._progress.event(ahead.current)
        finally:
            ahead.close()

    def _store(self, result: WasRead) -> Iterator[IngestEvent]:
        candidate, reply = result.candidate, result.reply
        document = self._known.get(candidate.path)
        to_embed = 0
        match reply:
            case Parsed():
                if not self._progress.chunks_done and not self._progress.chunks_pending:
                    yield self._progress.event("loading the embedder")
                chunk_count, to_embed = self._put(candidate, reply)
                report = self._report(candidate.path, "ingested", "", chunk_count)
            case Unchanged(state):
                assert document is not None, "only a known content can be found unchanged"
                self._library.touch_document(document.id, size_bytes=state.size_bytes, mtime_ns=state.mtime_ns)
                self._library.tag_documents([document.id], self._tags)
                report = self._report(candidate.path, "unchanged", "", document.chunk_count)
            case Failed():
                report = self._refuse(candidate, reply, document)
        if not isinstance(reply, Failed) and candidate.path in self._failed_before:
            self._library.clear_failure(candidate.path)
        self._progress.file_read(candidate.size_bytes, to_embed)
        yield report
        yield self._progress.event(candidate.path)

    def _put(self, candidate: Candidate, parsed: Parsed) -> tuple[int, int]:
        """Chunks and commits a document; its number of chunks, and of those without a vector."""
        embedder = self._embedder()
        pieces = chunk(
            parsed.document,
            count_tokens=embedder.count_tokens,
            settings=self._chunk_settings,
            max_tokens=embedder.max_tokens,
        )
        document_id = self._library.put_document(
            parsed.document,
            pieces,
            path=candidate.path,
            root=candidate.root,
            content_sha256=parsed.state.sha256,
            size_bytes=parsed.state.size_bytes,
            mtime_ns=parsed.state.mtime_ns,
            tags=self._tags,
        )
        return len(pieces), self._library.document(document_id).pending_count

    def _refuse(self, candidate: Candidate, failed: Failed, document: Document | None) -> FileDone:
        reason = str(failed.error)
        if document is not None and (failed.skipped or failed.lasting):
            # The file no longer says what the library would quote from it.
            self._library.remove_documents([document.id])
            reason += " What it said before was removed from the library."
        if failed.lasting:
            self._library.record_failure(
                candidate.path,
                reason=str(failed.error),
                size_bytes=candidate.size_bytes,
                mtime_ns=candidate.mtime_ns,
            )
        elif candidate.path in self._failed_before:
            self._library.clear_failure(candidate.path)
        return self._report(candidate.path, "skipped" if failed.skipped else "failed", reason)

    def _embed_batch(self) -> Iterator[IngestEvent]:
        stored = self._library.pending_chunks(self._settings.batch_chunks)
        if stored:
            embedder = self._embedder()
            started = time.monotonic()
            vectors = embedder.embed_passages([item.chunk.embedding_text for item in stored])
            self._library.put_vectors([item.id for item in stored], vectors)
            self._progress.batch_embedded(
                len(stored), pending=self._library.pending_count(), seconds=time.monotonic() - started
            )
            yield self._progress.event(stored[-1].path)
            if self._library.seal_is_due():
                yield from self._seal(merge=False)
        else:
            self._progress.chunks_pending = 0  # counted too high: a document was replaced meanwhile

    def _report(self, path: str, outcome: Outcome, reason: str, chunk_count: int = 0) -> FileDone:
        report = FileReport(path, outcome, reason, chunk_count)
        self._reports[path] = report
        self._progress.files_done += 1
        return FileDone(report)


def _is_gone(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # it may be there: a folder above it cannot be entered
    return False
