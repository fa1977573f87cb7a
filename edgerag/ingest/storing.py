"""What an ingest reads: stored, chunked, embedded."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edgerag.errors import (
    Cancelled,
    DocumentEncrypted,
    DocumentError,
    DocumentGone,
    DocumentScanned,
    DocumentTooLarge,
    LibraryDamaged,
    StorageFull,
)
from edgerag.index.documents import FailureNeeds, ReadContainer
from edgerag.ingest.ahead import ParseAhead, ToRead, WasRead
from edgerag.ingest.chunk import chunk
from edgerag.ingest.discover import Candidate
from edgerag.ingest.known import TRY_AGAIN
from edgerag.ingest.language import language_of
from edgerag.ingest.outcome import holding
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, FileState, Parsed, Reply, Unchanged
from edgerag.ingest.same import lies_in, state_before
from edgerag.ingest.sealing import seal
from edgerag.ingest.without_reading import WithoutReading
from edgerag.types import (
    MEMBER_MARK,
    Document,
    FileDone,
    IngestEvent,
    ParsedDocument,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

# How long to wait for the parser before saying again where the run is.
_WAIT_S = 0.2
_LET_PAST_EVERY_S = 0.005


class Storing(WithoutReading):
    """The second half of an ingest."""

    def _seal(self, *, merge: bool) -> Generator[IngestEvent, None, bool]:
        """Seals what is embedded; True when it was cancelled, which loses nothing."""
        yield self._progress.event("sealing the index")
        with self.stopwatch.measure("seal"):
            report = yield from seal(
                self._library,
                merge=merge,
                cancelled=self._is_to_stop,
                hold=self._hold,
                event=self._progress.event,
                give_way=self._library.give_way,
            )
        for reason in report.damaged:
            self._notes[f"A part of the index was left as it is, because it cannot be read: {reason}"] = None
        return report.cancelled

    def _learn_words(self) -> Generator[IngestEvent, None, bool]:
        """Makes the latent space anew where it is time; True when it was cancelled, which leaves it as it was."""
        if not self._library.latent_space_is_due():
            return False
        yield self._progress.event("learning which words stand together")

        def is_to_stop() -> bool:
            self._library.give_way()
            return self._cancelled()

        with self.stopwatch.measure("latent"):
            try:
                self._library.make_latent_space(cancelled=is_to_stop)
            except Cancelled:
                return True
            except StorageFull as error:
                self._notes[f"Which words stand together was not learned anew: {error.message}"] = None
        return False

    def _read_and_embed(self, to_read: list[ToRead]) -> Generator[IngestEvent, None, bool]:
        """Stores documents as they are read and embeds in between; True when it was cancelled."""
        parser = ParserProcess(
            memory_bytes=self._settings.parse_memory,
            max_file_bytes=self._settings.max_file_size,
            max_text_bytes=self._settings.max_text_size,
            deadline_s=self._settings.parse_deadline_s,
            niceness=self._settings.nice,
            passwords=self._passwords,
            recogniser=self._recognition.recogniser,
            hold=self._hold,
        )
        ahead = ParseAhead(
            to_read, parser, known_sha256=self._comparable_sha256, stopwatch=self.stopwatch, clock=self._hold.clock
        )
        try:
            while True:
                if self._cancelled():
                    return True
                # Documents first: they can be found by keyword at once, and what is left becomes known.
                with self.stopwatch.measure("wait"):
                    self._library.give_way()
                    result = ahead.take(timeout_s=0.0 if self._progress.chunks_pending else _WAIT_S)
                if isinstance(result, WasRead):
                    yield from self._store(result)
                elif self._progress.chunks_pending:
                    for reason in self._pace.wait():
                        yield self._progress.event(reason)
                    if not self._cancelled():
                        yield from self._embed_batch()
                elif result == "end":
                    return False
                else:
                    yield self._progress.event(ahead.current)
        except Cancelled:  # in the midst of a document or of a batch, where it was held
            return True
        finally:
            ahead.close()

    def _store(self, result: WasRead) -> Iterator[IngestEvent]:
        candidate, path = result.candidate, result.path
        reply = self._as_known(result)
        document = self._known.documents.get(path)
        started = self._hold.clock() - result.seconds
        to_embed = 0
        if result.member:
            self._progress.files_total += 1
            self._sizes[path] = 0 if isinstance(reply, Failed) else reply.state.content_bytes
        match reply:
            case Parsed(document=None):
                yield from self._remove([path], "It holds files now, and no text of its own.")
                report = self._report(path, "ingested", holding(reply))
            case Parsed(document=ParsedDocument() as found):
                if not self._progress.chunks_done and not self._progress.chunks_pending:
                    yield self._progress.event("loading the embedder")
                read = replace(found, language=language_of(found))
                chunk_count, to_embed = self._put(result, read, reply.state, started=started)
                seconds = self._hold.clock() - started
                report = self._report(path, "ingested", holding(reply), read, chunk_count, seconds=seconds)
                # Texts that stand in other documents bring their vectors without being embedded.
                if to_embed < chunk_count and self._library.seal_is_due():
                    yield from self._seal(merge=False)
            case Unchanged(state):
                if result.member:
                    yield from self._keep_members(self._untold_in(path), state, result.around_sha256)
                if document is not None:
                    self._touch(document, state, result.around_sha256)
                    self._library.tag_documents([document.id], self._tags)
                reason = f"It was {self._moved[path]}." if path in self._moved else ""
                if isinstance(result.reply, Failed) and not isinstance(result.reply.error, DocumentEncrypted):
                    reason = f"What was read before stays: {result.reply.error}"
                report = self._report(path, "unchanged", reason, document, seconds=result.seconds)
            case Failed():
                report = self._refuse(result, reply, document)
        if not isinstance(reply, Failed) and path in self._known.failures:
            self._library.clear_failure(path)
        if not result.member:
            yield from self._finish_container(candidate, reply)
            self._progress.file_read(candidate.size_bytes, to_embed)
        else:
            self._progress.file_read(0, to_embed)
        yield report
        yield self._progress.event(path)

    def _finish_container(self, candidate: Candidate, reply: Reply) -> Iterator[IngestEvent]:
        """Settles what is known of the members of a file that was read to its end."""
        path = candidate.path
        members = [member for member in self._known.members(path) if member not in self._reports]
        limit_bytes = self._settings.max_file_size if path in self._beyond_limits else 0
        if isinstance(reply, Unchanged):
            yield from self._keep_members(members, reply.state, reply.state.sha256)
            known = self._known.containers.get(path)
            limit_bytes = 0 if known is None else known.limit_bytes
            # Where it moved and could not be opened, what failed in it is still to be told of.
            holds = self._known.is_container(path) and not self._known.may_hold_more(path)
        elif isinstance(reply, Failed) and (
            isinstance(reply.error, DocumentGone) or not (reply.skipped or reply.lasting)
        ):
            return  # it cannot be opened now: what it said stands
        else:
            closed = tuple(f"{member}{MEMBER_MARK}" for member in self._closed.pop(path, ()))
            if isinstance(reply, Parsed) and any(self._is_of(member, reply.state) for member in members):
                # The file is the same, so what lies in those that cannot be opened now is there as before.
                closed_ones = [each for each in members if each.startswith(closed)]
                yield from self._keep_members(closed_ones, reply.state, reply.state.sha256)
                members = [member for member in members if member not in self._reports]
            yield from self._remove(members, f"It is no longer in {path}.")
            for member in members:
                if member in self._known.failures:
                    self._library.clear_failure(member)
            holds = isinstance(reply, Parsed) and bool(reply.members) and path not in self._broken_off
        if holds and not isinstance(reply, Failed):
            self._tell_touched()  # what it holds comes first: once the archive is known, nothing in it is looked at
            self._library.keep_container(path, ReadContainer(reply.state.size_bytes, reply.state.mtime_ns, limit_bytes))
        elif path in self._known.containers and not isinstance(reply, Unchanged):
            self._library.forget_containers([path])

    def _untold_in(self, member: str) -> list[str]:
        """What is known to lie in that member of an archive or mail, and was not told of."""
        inside = member + MEMBER_MARK
        known = self._known.members(self._known.outer(member))
        return [path for path in known if path.startswith(inside) and path not in self._reports]

    def _keep_members(self, members: Sequence[str], state: FileState, around_sha256: str) -> Iterator[IngestEvent]:
        """Reports what lies in a file that is as it was; the checksum is that of the file on the disk."""
        for member in members:
            if (document := self._known.documents.get(member)) is not None:
                self._touch(document, state, around_sha256)
                self._library.tag_documents([document.id], self._tags)
            self._progress.files_total += 1
            yield self._report_known(member)

    def _is_of(self, member: str, around: FileState) -> bool:
        document = self._known.documents.get(member)
        return document is not None and lies_in(document, around.sha256, size_bytes=around.size_bytes)

    def _as_known(self, result: WasRead) -> Reply:
        """What was read; of what could not be read, and is the same that was read in an earlier run, that it is
        unchanged: it needs no password twice."""
        reply, path = result.reply, result.path
        if not isinstance(reply, Failed):
            return reply
        if result.member:
            self._closed[result.candidate.path].append(path)
        outer = result.candidate.path
        known = self._known
        state = state_before(
            result,
            reply,
            known.documents.get(path),
            known.holds(path),
            is_whole=known.was_read_to_its_end(outer),
        )
        return reply if state is None else Unchanged(state)

    def _put(self, result: WasRead, document: ParsedDocument, state: FileState, *, started: float) -> tuple[int, int]:
        """Chunks and commits a document, which was begun with at ``started``; its number of chunks, and of those
        without a vector."""
        with self.stopwatch.measure("load"):
            embedder = self._embedder()
        with self.stopwatch.measure("chunk") as facts:
            pieces = chunk(
                document,
                count_tokens=self._letting_past(embedder.count_tokens),
                settings=self._chunk_settings,
                max_tokens=embedder.max_tokens,
            )
            facts |= {"characters": len(document.text), "chunks": len(pieces)}
        with self.stopwatch.measure("commit") as facts:
            document_id = self._library.put_document(
                document,
                pieces,
                path=result.path,
                root=result.candidate.root,
                content_sha256=state.sha256,
                size_bytes=state.size_bytes,
                mtime_ns=state.mtime_ns,
                tags=self._tags,
                content_bytes=state.content_bytes,
                seconds=round(self._hold.clock() - started, 3),
                around_sha256=result.around_sha256,
                ocr=self._recognition.manner(document.media_type),
            )
            facts |= {"what": "document", "chunks": len(pieces)}
        if found := self._known.found_again(document_id):
            self._moved[result.path] = found
        # At once: the text may stand in a file that is replaced or removed before this one is embedded.
        pending = self._library.pending_of(document_id)
        vectors = self._known_vectors(pending)
        if vectors:
            self._library.put_vectors(list(vectors), np.stack(list(vectors.values())))
            self._progress.chunks_known(len(vectors))
        return len(pieces), len(pending) - len(vectors)

    def _letting_past(self, count_tokens: Callable[[str], int]) -> Callable[[str], int]:
        """The same, but for waiting while somebody asks or holds the ingest: a long document is chunked for seconds.
        Raises Cancelled where it is stopped while it is held."""
        looked_at = time.monotonic()

        def counted(text: str) -> int:
            nonlocal looked_at
            if time.monotonic() - looked_at >= _LET_PAST_EVERY_S:
                self._library.give_way()
                if self._hold.wait(self._is_to_stop):
                    raise Cancelled("The ingest was stopped while it was held.")
                looked_at = time.monotonic()
            return count_tokens(text)

        return counted

    def _refuse(self, result: WasRead, failed: Failed, document: Document | None) -> FileDone:
        candidate, path, seconds = result.candidate, result.path, result.seconds
        if isinstance(failed.error, DocumentGone):  # for a moment, or with its disk: the next run finds out
            self._broken_off.add(candidate.path)
            return self._report(path, "skipped", str(failed.error), document, seconds=seconds)
        reason = str(failed.error)
        if isinstance(failed.error, DocumentTooLarge):
            self._beyond_limits.add(candidate.path)
        needs = self._needs(failed.error)
        closed = isinstance(failed.error, DocumentEncrypted | DocumentScanned)
        is_same = document is not None and failed.sha256 == document.content_sha256
        if document is not None and not is_same and (failed.skipped or failed.lasting or closed):
            # The file no longer says what the library would quote from it.
            self._library.remove_documents([document.id])
            reason += " What it said before was removed from the library."
        if not failed.skipped:
            as_it_is = (candidate.size_bytes, candidate.mtime_ns)
            size_bytes, mtime_ns = as_it_is if failed.lasting or needs else TRY_AGAIN
            self._library.record_failure(
                path, reason=str(failed.error), size_bytes=size_bytes, mtime_ns=mtime_ns, needs=needs
            )
        elif path in self._known.failures:
            self._library.clear_failure(path)
        return self._report(path, "skipped" if failed.skipped else "failed", reason, seconds=seconds)

    def _needs(self, error: DocumentError) -> FailureNeeds:
        """What may open the file in another run that this one had not. With Tesseract at hand a scan is tried again
        each time: what kept it from reading may have passed."""
        if isinstance(error, DocumentEncrypted):
            return "password"
        return "ocr" if isinstance(error, DocumentScanned) and self._recognition.recogniser is None else ""

    def _embed_batch(self) -> Iterator[IngestEvent]:
        stored = self._library.pending_chunks(self._settings.batch_chunks)
        if stored:
            started = self._hold.clock()
            vectors = self._known_vectors([item.id for item in stored])
            texts = {item.chunk.embedding_text: item.id for item in stored if item.id not in vectors}
            if texts:
                with self.stopwatch.measure("embed") as facts:
                    embedded = self._embedder().embed_passages(list(texts))
                    facts |= {"passages": len(texts), "characters": sum(map(len, texts))}
                by_text = dict(zip(texts, embedded, strict=True))
                vectors |= {item.id: by_text[item.chunk.embedding_text] for item in stored if item.id not in vectors}
            with self.stopwatch.measure("commit") as facts:
                facts |= {"what": "vectors", "chunks": len(stored)}
                self._library.put_vectors([item.id for item in stored], np.stack([vectors[item.id] for item in stored]))
            self._progress.batch_embedded(
                len(stored), pending=self._library.pending_count(), seconds=self._hold.clock() - started
            )
            yield self._progress.event(stored[-1].path)
            if self._library.seal_is_due():
                yield from self._seal(merge=False)
        else:
            self._progress.chunks_pending = 0  # counted too high: a document was replaced meanwhile

    def _known_vectors(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]:
        """Those of texts that stand in another document already."""
        try:
            return self._library.known_vectors(chunk_ids)
        except LibraryDamaged as error:
            self._notes[f"Texts that are there already were embedded again: {error}"] = None
            return {}
