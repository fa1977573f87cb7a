"""One ingest at work: what it was given, what it found, what it reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.hold import Hold
from edgerag.index.documents import UNREAD_NS, Touched
from edgerag.ingest.known import Known
from edgerag.ingest.outcome import file_report
from edgerag.ingest.pace import Pace
from edgerag.ingest.parse.wire import FileState
from edgerag.ingest.progress import Progress
from edgerag.ingest.recognition import Recognition
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    CancelCheck,
    Document,
    Embedder,
    FileDone,
    FileReport,
    IngestEvent,
    Outcome,
    ParsedDocument,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library

# Of what is gone: all of a folder in which nothing is left, such a folder where a disk was mounted, or none.
Keeps = Literal["emptied", "unmounted", "nothing"]
_REMOVED_TOGETHER = 500  # documents in one transaction
MOVED_TOGETHER = 1000  # moved or touched ones, which are less work


class Run:
    """What the steps of an ingest have in common."""

    def __init__(
        self,
        library: Library,
        embedder: Callable[[], Embedder],
        settings: IngestSettings,
        chunk_settings: ChunkSettings,
        tags: tuple[str, ...],
        passwords: tuple[str, ...],
        keeps: Keeps,
        ocr_again: bool,
        cancelled: CancelCheck,
        hold: Hold,
    ) -> None:
        self._library = library
        self._embedder = embedder
        self._settings = settings
        self._chunk_settings = chunk_settings
        self._tags = tags
        self._passwords = passwords
        self._keeps = keeps
        self._recognition = Recognition(settings, again=ocr_again)
        self._hold = hold
        self._is_to_stop = cancelled
        self._cancelled = hold.waiting(cancelled)
        self._pace = Pace(settings, cancelled=self._cancelled)
        self.stopwatch = Stopwatch(most_spans=0)
        self._reports: dict[str, FileReport] = {}
        self._sizes: dict[str, int] = {}  # of the files that were found
        self._known: Known
        self._moved: dict[str, str] = {}  # new path to old path
        self._touched: list[Touched] = []  # to be told to the library
        self._beyond_limits: set[str] = set()  # files in which something was too large: a limit may be raised
        self._broken_off: set[str] = set()  # files that went while their members were read
        self._closed: dict[str, list[str]] = defaultdict(list)  # by file, the members that could not be read
        self._progress = Progress(files_total=0, clock=hold.clock)
        self._told_at = float("-inf")
        self._notes: dict[str, None] = {}  # each once, in order

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

    def _report_known(self, path: str) -> FileDone:
        """Of a member that is as it was."""
        if (document := self._known.documents.get(path)) is not None:
            return self._report(path, "unchanged", "", document)
        return self._report(path, "failed", self._known.failures[path][2])

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
            if len(self._touched) >= MOVED_TOGETHER:
                self._tell_touched()

    def _tell_touched(self) -> None:
        self._library.touch_documents(self._touched)
        self._touched = []

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
