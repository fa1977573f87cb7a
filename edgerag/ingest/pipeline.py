"""The ingest flow: discover, parse, chunk, embed, commit, as a generator of typed events.

Promises: each document is committed with its chunks as soon as it is read, each batch of vectors as soon
as it is embedded, so that whatever ends the run (a cancel, Ctrl-C, ``kill -9``, a full disk) leaves a
whole library and the next run goes on. Vectors are sealed whenever many have come together, and at the end.
Files that did not change cost a stat; a file that moved is moved; nothing is embedded twice, nor is a text that stands
in several documents; the embedder is only asked for when there is something to chunk or to embed. One bad file is named
in its report and stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.hold import Hold
from edgerag.ingest.ahead import ToRead
from edgerag.ingest.discover import Discovery, discover
from edgerag.ingest.ignore import Selection
from edgerag.ingest.known import Known
from edgerag.ingest.language import language_of
from edgerag.ingest.run import Keeps
from edgerag.ingest.storing import Storing
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    UNKNOWN_LANGUAGE,
    CancelCheck,
    Embedder,
    FilesDiscovered,
    IngestDone,
    IngestEvent,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library


_NAMED = 5
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
    hold: Hold | None = None,
    stopwatch: Stopwatch | None = None,
) -> Iterator[IngestEvent]:
    """Brings the library in line with the files under ``paths``; the last event is IngestDone.

    Every document found there is given ``tags``, also one that did not change. ``passwords`` are tried on what is
    protected. With ``changed`` only these absolute paths under ``paths`` are looked at; ``withheld`` are never read.
    What came from a named folder, or a mounted one below it, in which there is no file any more stays, since a disk
    may not be mounted there, unless ``prune`` says that it is meant. With ``ocr_again`` what OCR can read is read
    again, though it did not change, where another mode or other languages of it were at hand then. While it is
    on ``hold`` nothing is done, and its times stand still. ``stopwatch``: where the times of the stages are noted.

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
    keeps: Keeps = "nothing" if prune else "emptied" if changed is None else "unmounted"
    run = _Run(
        library,
        embedder,
        settings,
        chunks,
        tuple(tags),
        tuple(passwords),
        keeps,
        ocr_again,
        cancelled,
        hold or Hold(),
    )
    run.stopwatch = stopwatch
    return run.events(discovery)


class _Run(Storing):
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
        if not interrupted:
            interrupted = yield from self._learn_words()
        self._keep_left_out(discovery, complete=not interrupted)
        if not interrupted:
            self._tell_without_path()
        yield self._progress.event("")
        yield IngestDone(
            reports=tuple(self._reports[path] for path in sorted(self._reports)),
            chunks_embedded=self._progress.chunks_done,
            seconds=self._progress.seconds(),
            interrupted=interrupted,
            notes=tuple(self._notes),
        )

    def _tell_without_path(self) -> None:
        left = self._known.without_path()
        if left:
            names = ", ".join(document.path for document in left[:_NAMED]) + (", ..." if len(left) > _NAMED else "")
            note = (
                f"Of {names} damage left the text and not the path, and no file that was read says the same: ingest the"
            )
            note += f" folder that it came from, or take it out with `edgerag remove '#{left[0].id}'`."
            self._notes[note] = None

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

    # ------------------------------------------------------------ what needs no reading

    # ------------------------------------------------------------ reading and embedding
