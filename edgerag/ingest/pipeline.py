"""The ingest flow: discover, parse, chunk, embed, commit, as a generator of typed events.

Promises: each document is committed with its chunks as soon as it is read, each batch of vectors as soon
as it is embedded, so that whatever ends the run (a cancel, Ctrl-C, ``kill -9``, a full disk) leaves a
whole library and the next run goes on. Vectors are sealed whenever many have come together, and at the end.
Files that did not change cost a stat; a file that moved is moved; nothing is embedded twice, nor is a text that stands
in several documents; the embedder is only asked for when there is something to chunk or to embed. One bad file is named
in its report and stops nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.errors import (
    DocumentEncrypted,
    DocumentError,
    DocumentGone,
    DocumentScanned,
    DocumentTooLarge,
    LibraryDamaged,
)
from edgerag.index.documents import UNREAD_NS, FailureNeeds, MovedFile, ReadContainer, Touched
from edgerag.ingest.ahead import ParseAhead, ToRead, WasRead
from edgerag.ingest.chunk import chunk
from edgerag.ingest.discover import Candidate, Discovery, discover
from edgerag.ingest.emptied import emptied_mounts, keep_of_emptied, mounted_below
from edgerag.ingest.ignore import Selection
from edgerag.ingest.known import TRY_AGAIN, Known, is_gone
from edgerag.ingest.language import language_of
from edgerag.ingest.outcome import file_report, holding
from edgerag.ingest.pace import Pace
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, FileState, Parsed, Reply, Unchanged
from edgerag.ingest.progress import Progress
from edgerag.ingest.recognition import Recognition
from edgerag.ingest.same import lies_in, state_before
from edgerag.ingest.sealing import seal
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    MEMBER_MARK,
    UNKNOWN_LANGUAGE,
    CancelCheck,
    Document,
    Embedder,
    FileDone,
    FileReport,
    FilesDiscovered,
    IngestDone,
    IngestEvent,
    Outcome,
    ParsedDocument,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library
    from edgerag.types import Vectors

# Of what is gone: all of a folder in which nothing is left, such a folder where a disk was mounted, or none.
_Keeps = Literal["emptied", "unmounted", "nothing"]

# How long to wait for the parser before saying again where the run is.
_WAIT_S = 0.2
# Files that cost only a stat go by too fast to be told one by one.
_PROGRESS_EVERY_S = 0.1
_LET_PAST_EVERY_S = 0.005
_REMOVED_TOGETHER = 500  # documents in one transaction
_MOVED_TOGETHER = 1000  # moved or touched ones, which are less work
_ANALYSED_TOGETHER = 8  # documents between two looks at whether to go on


def ingest(
    paths: Sequence[Path],
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    settings: IngestSettings,
    chunks: ChunkSettings,
    tags: Sequence[str] = (),
    passwords: Sequence[str] = (),
    changed: Collection[str] | None = None,
    withheld: Collection[str] = (),
    prune: bool = False,
    ocr_again: bool = False,
    cancelled: CancelCheck,
    stopwatch: Stopwatch | None = None,
) -> Iterator[IngestEvent]:
    """Brings the library in line with the files under ``paths``; the last event is IngestDone.

    Every document found there is given ``tags``, also one that did not change. ``passwords`` are tried on what is
    protected. With ``changed`` only these absolute paths under ``paths`` are looked at; ``withheld`` are never read.
    What came from a named folder, or a mounted one below it, in which there is no file any more stays, since a disk
    may not be mounted there, unless ``prune`` says that it is meant. With ``ocr_again`` what OCR can read is read
    again, though it did not change, where another mode or other languages of it were at hand then. ``stopwatch``: where
    the times of the stages are noted.

    Raises UsageError for a path that does not exist, and what the library and the embedder raise
    (StorageFull, LibraryBusy, ModelError, ...).
    """
    stopwatch = stopwatch or Stopwatch(most_spans=0)
    with stopwatch.measure("discover") as facts:
        discovery = discover(
            paths, own=library.folder, selection=Selection.of(settings), changed=changed, withheld=withheld
        )
        facts["files"] = len(discovery.files)
    # One who asks for single paths saw them go, unless it was with the whole disk.
    keeps: _Keeps = "nothing" if prune else "emptied" if changed is None else "unmounted"
    run = _Run(library, embedder, settings, chunks, tuple(tags), tuple(passwords), keeps, ocr_again, cancelled)
    run.stopwatch = stopwatch
    return run.events(discovery)


class _Run:
    def __init__(
        self,
        library: Library,
        embedder: Callable[[], Embedder],
        settings: IngestSettings,
        chunk_settings: ChunkSettings,
        tags: tuple[str, ...],
        passwords: tuple[str, ...],
        keeps: _Keeps,
        ocr_again: bool,
        cancelled: CancelCheck,
    ) -> None:
        self._library = library
        self._embedder = embedder
        self._settings = settings
        self._chunk_settings = chunk_settings
        self._tags = tags
        self._passwords = passwords
        self._keeps = keeps
        self._recognition = Recognition(settings, again=ocr_again)
        self._cancelled = cancelled
        self._pace = Pace(settings, cancelled=cancelled)
        self.stopwatch = Stopwatch(most_spans=0)
        self._reports: dict[str, FileReport] = {}
        self._sizes: dict[str, int] = {}  # of the files that were found
        self._known: Known
        self._moved: dict[str, str] = {}  # new path to old path
        self._touched: list[Touched] = []  # to be told to the library
        self._beyond_limits: set[str] = set()  # files in which something was too large: a limit may be raised
        self._broken_off: set[str] = set()  # files that went while their members were read
        self._closed: dict[str, list[str]] = defaultdict(list)  # by file, the members that could not be read
        self._progress = Progress(files_total=0, clock=time.monotonic)
        self._told_at = float("-inf")
        self._notes: dict[str, None] = {}  # each once, in order

    def events(self, discovery: Discovery) -> Iterator[IngestEvent]:
        began_s = self.stopwatch.elapsed()
        self._progress.files_total = len(discovery.files) + len(discovery.unread)
        yield FilesDiscovered(self._progress.files_total)
        self._sizes = {candidate.path: candidate.size_bytes for candidate in discovery.files}
        self._known = Known(self._library, discovery, has=self._has, max_file_bytes=self._settings.max_file_size)
        gone = self._gone(discovery)
        self._move(discovery, gone)
        self._keep_of_emptied(discovery, gone)
        yield from self._remove_gone(list(gone))
        yield from self._remove_left_out(discovery)
        for unread in discovery.unread:
            yield self._report(unread.path, "failed" if unread.trouble else "skipped", unread.reason)
        to_read: list[ToRead] = []
        for candidate in discovery.files:
            if self._cancelled():
                break
            yield from self._without_reading(candidate, to_read)
        self._tag_unchanged()
        self.stopwatch.add("compare", began_s, self.stopwatch.elapsed(), {"to_read": len(to_read)})
        self._progress.bytes_to_read = sum(file.candidate.size_bytes for file in to_read)
        self._progress.chunks_pending = self._library.pending_count()
        interrupted = self._cancelled()
        if not interrupted and (to_read or self._progress.chunks_pending):
            interrupted = yield from self._read_and_embed(to_read)
        self._tell_touched()
        if not interrupted:
            interrupted = yield from self._analyse_again()
        if not interrupted:
            interrupted = yield from self._seal(merge=True)
        self._keep_left_out(discovery, complete=not interrupted)
        yield self._progress.event("")
        yield IngestDone(
            reports=tuple(self._reports[path] for path in sorted(self._reports)),
            chunks_embedded=self._progress.chunks_done,
            seconds=self._progress.seconds(),
            interrupted=interrupted,
            notes=tuple(self._notes),
        )

    def _analyse_again(self) -> Generator[IngestEvent, None, bool]:
        """Makes words anew that an older version of this program made; True when it was cancelled."""
        left = self._library.analysed_before_count()
        if not left:
            return False
        while left and not self._cancelled():
            yield self._progress.event(f"analysing documents of an older version again: {left:,} left")
            left -= self._library.analyse_again(language_of, limit=_ANALYSED_TOGETHER)
        for document in self._library.documents():  # their languages are known now
            report = self._reports.get(document.path)
            if report is not None and report.language == UNKNOWN_LANGUAGE:
                self._reports[document.path] = replace(report, language=document.language)
        return bool(left)

    def _seal(self, *, merge: bool) -> Generator[IngestEvent, None, bool]:
        """Seals what is embedded; True when it was cancelled, which loses nothing."""
        yield self._progress.event("sealing the index")
        with self.stopwatch.measure("seal"):
            report = yield from seal(
                self._library,
                merge=merge,
                cancelled=self._cancelled,
                event=self._progress.event,
                give_way=self._library.give_way,
            )
        for reason in report.damaged:
            self._notes[f"A part of the index was left as it is, because it cannot be read: {reason}"] = None
        return report.cancelled

    def _keep_left_out(self, discovery: Discovery, *, complete: bool) -> None:
        """Notes what was found and not read, so that the library can say why. What this run did not look at stays."""
        reasons = dict(discovery.left_out)
        reasons |= {path: report.reason for path, report in self._reports.items() if report.outcome == "skipped"}
        for known in self._library.left_out():
            outer = self._known.outer(known.path) or known.path
            around = self._reports.get(outer)
            is_in_unchanged = outer != known.path and around is not None and around.outcome == "unchanged"
            if known.path not in self._reports and (not complete or is_in_unchanged or not discovery.covers(outer)):
                reasons.setdefault(known.path, known.reason)
        self._library.keep_left_out(reasons)

    # ------------------------------------------------------------ what needs no reading

    def _tag_unchanged(self) -> None:
        """Gives the tags to what was found as it was; what is read gets them when it is stored."""
        if self._tags:
            documents = self._known.documents
            unchanged = [path for path, report in self._reports.items() if report.outcome == "unchanged"]
            self._library.tag_documents([documents[path].id for path in unchanged if path in documents], self._tags)

    def _gone(self, discovery: Discovery) -> dict[str, None]:
        """Paths that the library knows and that no longer exist; one that cannot be examined now is kept. What lies in
        an archive that is there is judged when that is read."""
        known = self._known
        gone: dict[str, None] = {}  # in order
        for path in (*known.documents, *known.failures, *known.containers):
            outer = known.outer(path) or path
            is_missing = outer not in known.present and discovery.covers(outer) and is_gone(outer)
            if is_missing and discovery.root_stands(outer):
                gone[path] = None
        return gone

    def _keep_of_emptied(self, discovery: Discovery, gone: dict[str, None]) -> None:
        """Takes out of ``gone`` what lay in a folder in which nothing is left as where a disk is not mounted, and says
        so."""
        before = frozenset(self._library.mounts())
        now = mounted_below(discovery)
        places: list[str] = []
        if self._keeps != "nothing":
            whole = self._keeps == "emptied"
            places += discovery.emptied_roots() if whole else ()
            places += emptied_mounts(discovery, sorted(before | now), looked_at_whole=whole)
        kept = keep_of_emptied(places, gone, self._known.documents)
        self._notes |= dict.fromkeys(kept.values())
        self._library.keep_mounts(now | {place for place in before if place in kept or not discovery.covers(place)})

    def _move(self, discovery: Discovery, gone: dict[str, None]) -> None:
        """Gives documents whose file moved their new path; takes them out of ``gone``."""
        roots = {candidate.path: candidate.root for candidate in discovery.files}
        moved: list[MovedFile] = []
        for new, old in self._known.moved(discovery.files, gone).items():
            # Never in the midst of an archive: one that moved by halves is not known again.
            if sum(1 + len(file.documents) + len(file.failures) for file in moved) >= _MOVED_TOGETHER:
                self._library.move_files(moved)
                moved = []
            for path in (old, *self._known.members(old)):
                gone.pop(path, None)
                self._moved[new + path.removeprefix(old)] = path
            moved.append(self._known.move(old, new, roots[new]))
        self._library.move_files(moved)

    def _has(self, need: str) -> bool:
        """Whether this run has what a file of an earlier run could not be read without."""
        return bool(self._passwords) if need == "password" else self._recognition.recogniser is not None

    def _remove_gone(self, gone: Sequence[str]) -> Iterator[IngestEvent]:
        """Removes what was found to be gone."""
        yield from self._forget(gone, "The file is gone.")

    def _remove_left_out(self, discovery: Discovery) -> Iterator[IngestEvent]:
        """Removes what a rule leaves out now, such as an ignore file."""
        known = self._known
        left_out: dict[str, list[str]] = defaultdict(list)
        if discovery.left_out:
            for path in dict.fromkeys((*known.documents, *known.failures, *known.containers)):
                outer = known.outer(path) or path
                if outer not in known.present and discovery.covers(outer):
                    document = known.documents.get(path)
                    reason = discovery.reason_against(outer, root="" if document is None else document.root)
                    if reason:
                        left_out[reason].append(path)
        for reason, paths in left_out.items():
            yield from self._forget(paths, reason)

    def _forget(self, paths: Sequence[str], reason: str) -> Iterator[IngestEvent]:
        """Removes documents, and what is known of files that were refused or held others."""
        yield from self._remove(paths, reason)
        for path in paths:
            if path in self._known.failures:
                self._library.clear_failure(path)
        self._library.forget_containers([path for path in paths if path in self._known.containers])

    def _remove(self, paths: Iterable[str], reason: str) -> Iterator[IngestEvent]:
        """Removes the documents among ``paths``."""
        documents = [self._known.documents[path] for path in paths if path in self._known.documents]
        for first in range(0, len(documents), _REMOVED_TOGETHER):
            batch = documents[first : first + _REMOVED_TOGETHER]
            self._library.remove_documents([document.id for document in batch])
            for document in batch:
                del self._known.documents[document.path]
                self._progress.files_total += 1
                yield self._report(document.path, "removed", reason, document)

    def _without_reading(self, candidate: Candidate, to_read: list[ToRead]) -> Iterator[IngestEvent]:
        """Reports a file whose stat says that nothing changed since it was read or refused; else lists it.

        A refused file that was named itself, not found in a folder, is tried again: its user asks for it.
        """
        path, stat, known = candidate.path, (candidate.size_bytes, candidate.mtime_ns), self._known
        document = known.documents.get(path)
        failure = known.failures.get(path)
        members = known.members(path)
        refused = [member for member in members if member in known.failures]
        as_it_was = known.is_unchanged(candidate) and not self._is_read_otherwise(path)
        if as_it_was and not (refused and path == candidate.root) and path not in self._moved:
            yield self._report(path, "unchanged", "", document)
            for member in members:
                self._progress.files_total += 1
                yield self._report_known(member)
            for skipped in known.skipped(path):
                self._progress.files_total += 1
                yield self._report(skipped.path, "skipped", skipped.reason)
        elif failure is not None and stat == failure[:2] and path != candidate.root and not known.is_to_try(path):
            yield self._report(path, "failed", failure[2])
        else:
            again = refused and path == candidate.root
            to_read.append(ToRead(candidate, "" if again else self._comparable_sha256(path)))
            return
        now = time.monotonic()
        if now - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = now
            yield self._progress.event(path)

    def _report_known(self, path: str) -> FileDone:
        """Of a member that is as it was."""
        if (document := self._known.documents.get(path)) is not None:
            return self._report(path, "unchanged", "", document)
        return self._report(path, "failed", self._known.failures[path][2])

    def _comparable_sha256(self, path: str) -> str:
        """The checksum with which a file need not be parsed again; "" when it has to be, whatever is in it."""
        document = self._known.documents.get(path)
        if document is None:
            return ""
        # Moved: the title may be the old name, and is part of what is embedded.
        is_unread = document.mtime_ns == UNREAD_NS
        if is_unread or self._is_read_otherwise(path) or self._known.may_hold_more(path):
            return ""
        return document.content_sha256

    def _is_read_otherwise(self, path: str) -> bool:
        """Whether OCR would now read something of it in another way than it was read, as is asked for."""
        if not self._recognition.may_read_again:
            return False
        document = self._known.documents.get(path)
        inside = self._known.holds(path)
        return any(map(self._recognition.reads_otherwise, inside if document is None else (document, *inside)))

    # ------------------------------------------------------------ reading and embedding

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
        )
        ahead = ParseAhead(to_read, parser, known_sha256=self._comparable_sha256, stopwatch=self.stopwatch)
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
        finally:
            ahead.close()

    def _store(self, result: WasRead) -> Iterator[IngestEvent]:
        candidate, path = result.candidate, result.path
        reply = self._as_known(result)
        document = self._known.documents.get(path)
        started = time.monotonic() - result.seconds
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
                seconds = time.monotonic() - started
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

    def _touch(self, document: Document, state: FileState, around_sha256: str = "") -> None:
        """Its content is the same. Many are told together: until then the next run would compare them again."""
        ocr = (
            self._recognition.manner(document.media_type)
            if self._recognition.reads_otherwise(document)
            else document.ocr
        )
        touched = Touched(document.id, state.size_bytes, state.mtime_ns, around_sha256, ocr)
        if touched != Touched(
            document.id, document.size_bytes, document.mtime_ns, document.around_sha256, document.ocr
        ):
            self._touched.append(touched)
            if len(self._touched) >= _MOVED_TOGETHER:
                self._tell_touched()

    def _tell_touched(self) -> None:
        self._library.touch_documents(self._touched)
        self._touched = []

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
                seconds=round(time.monotonic() - started, 3),
                around_sha256=result.around_sha256,
                ocr=self._recognition.manner(document.media_type),
            )
            facts |= {"what": "document", "chunks": len(pieces)}
        # At once: the text may stand in a file that is replaced or removed before this one is embedded.
        pending = self._library.pending_of(document_id)
        vectors = self._known_vectors(pending)
        if vectors:
            self._library.put_vectors(list(vectors), np.stack(list(vectors.values())))
            self._progress.chunks_known(len(vectors))
        return len(pieces), len(pending) - len(vectors)

    def _letting_past(self, count_tokens: Callable[[str], int]) -> Callable[[str], int]:
        """The same, but for waiting while somebody asks: a long document is chunked for seconds."""
        looked_at = time.monotonic()

        def counted(text: str) -> int:
            nonlocal looked_at
            if time.monotonic() - looked_at >= _LET_PAST_EVERY_S:
                self._library.give_way()
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
            started = time.monotonic()
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
                len(stored), pending=self._library.pending_count(), seconds=time.monotonic() - started
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

    def _report(
        self,
        path: str,
        outcome: Outcome,
        reason: str,
        document: Document | ParsedDocument | None = None,
        chunk_count: int = 0,
        *,
        seconds: float = 0.0,
    ) -> FileDone:
        """``document`` is what the library knows or what was read now, with its number of chunks."""
        report = file_report(
            path,
            outcome,
            reason,
            document,
            chunk_count,
            size_bytes=self._sizes.get(path, 0),
            seconds=seconds,
            moved_from=self._moved.get(path, ""),
        )
        self._reports[path] = report
        self._progress.files_done += 1
        return FileDone(report)
