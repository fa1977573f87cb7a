"""Whole ingest runs over real folders and a real library; only the embedder is a stand-in."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import HashingEmbedder
from unit.ingest import craft

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.errors import StorageFull, UsageError
from edgerag.hold import Hold
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.segments import SealSettings
from edgerag.ingest.pipeline import ingest
from edgerag.types import (
    Embedder,
    FileDone,
    FilesDiscovered,
    IngestDone,
    IngestEvent,
    IngestProgress,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors


class Bench:
    """A folder of documents and a library beside it."""

    def __init__(self, folder: Path, library: Library, embedder: HashingEmbedder) -> None:
        self.folder = folder
        self.library = library
        self.embedder = embedder
        self.events: list[IngestEvent] = []

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def start(
        self,
        *paths: Path,
        settings: IngestSettings = IngestSettings(),  # noqa: B008 - frozen
        cancelled: Callable[[], bool] = lambda: False,
        embedder: Callable[[], Embedder] | None = None,
        passwords: Sequence[str] = (),
        prune: bool = False,
        ocr_again: bool = False,
        changed: Collection[str] | None = None,
        hold: Hold | None = None,
    ) -> Iterator[IngestEvent]:
        return ingest(
            paths or (self.folder,),
            library=self.library,
            embedder=embedder or (lambda: self.embedder),
            settings=settings,
            chunks=ChunkSettings(),
            passwords=passwords,
            prune=prune,
            ocr_again=ocr_again,
            changed=changed,
            cancelled=cancelled,
            hold=hold,
        )

    def run(self, *paths: Path, settings: IngestSettings = IngestSettings(), **more: object) -> IngestDone:  # noqa: B008
        self.embedder.embedded.clear()
        self.events = list(self.start(*paths, settings=settings, **more))  # type: ignore[arg-type]
        done = self.events[-1]
        assert isinstance(done, IngestDone)
        return done

    def outcomes(self, done: IngestDone) -> dict[str, str]:
        return {os.path.relpath(report.path, self.folder): report.outcome for report in done.reports}

    def found(self, query: str) -> list[str]:
        hits = self.library.search_keywords(query, limit=5)
        return [Path(chunk.path).name for chunk in self.library.chunks([hit.chunk_id for hit in hits])]

    def found_by_vector(self, query: str) -> list[str]:
        hits = self.library.search_vectors(self.embedder.embed_query(query), limit=5, ef_search=50)
        return [Path(chunk.path).name for chunk in self.library.chunks([hit.chunk_id for hit in hits])]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    embedder = HashingEmbedder()
    (tmp_path / "docs").mkdir()
    with open_library(
        tmp_path / "library", mode="write", residency=Residency(64_000_000), identity=embedder.identity
    ) as library:
        yield Bench(tmp_path / "docs", library, embedder)


def chapters(count: int, words: int = 60) -> str:
    return "\n\n".join(f"# Chapter {n}\n\n" + f"Sentence of chapter {n}. " * (words // 4) for n in range(count))


class TestWhatIsRead:
    def test_all_formats_are_found_by_word_and_by_vector(self, bench: Bench) -> None:
        bench.write("a.md", "# Badger\n\nThe badger sleeps by day.")
        bench.write("b.txt", "The walrus dives for clams.")
        bench.write("c.html", "<h1>Otter</h1><p>The otter cracks mussels.</p>")
        bench.write("d.pdf", craft.text_pdf("", "The heron stands in shallow water."))
        bench.write("sub/e.docx", craft.docx(craft.paragraph("The marten climbs at night.")))
        done = bench.run()
        assert set(bench.outcomes(done).values()) == {"ingested"}
        assert done.chunks_embedded == 5
        for query, file in (("badger", "a.md"), ("clams", "b.txt"), ("mussels", "c.html"), ("heron", "d.pdf")):
            assert bench.found(query) == [file]
            assert bench.found_by_vector(query)[0] == file
        assert bench.found("marten") == ["e.docx"]
        (hit,) = bench.library.search_keywords("heron", limit=1)
        assert bench.library.chunks([hit.chunk_id])[0].chunk.page_first == 2
        assert not bench.library.pending_count()

    def test_stored_text_and_offsets_agree(self, bench: Bench) -> None:
        bench.write("a.md", "\ufeff# Ä\r\n\r\n" + "Größe und Maß. \r\n" * 200)
        bench.run()
        (document,) = bench.library.documents()
        text = bench.library.parsed_document(document.id).text
        hits = bench.library.search_keywords("Größe", limit=50)
        assert hits
        for stored in bench.library.chunks([hit.chunk_id for hit in hits]):
            chunk = stored.chunk
            assert text[chunk.start : chunk.end] == chunk.text
            assert text.count("\n", 0, chunk.start) + 1 == chunk.line_first

    def test_one_bad_file_stops_nothing(self, bench: Bench) -> None:
        bench.write("good.md", "Good text.")
        bench.write("empty.txt", "")
        bench.write("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
        bench.write("half.pdf", craft.text_pdf("words")[:60])
        bench.write("half.docx", craft.docx(craft.paragraph("word " * 500))[:200])
        bench.write("scan.pdf", craft.text_pdf("", ""))
        bench.write("locked.pdf", craft.pdf([[(700, 12, "x")]], encrypted=True))
        bench.write("bomb.docx", craft.bomb())
        bench.write("lies.txt", craft.text_pdf("A PDF that calls itself text."))
        bench.write("nul.log", b"before the crash\x00\x00\x00after the crash")
        bench.write("mac.txt", "one\rtwo\rthree")
        bench.write("deep.html", "<div>" * 5000 + "deep")
        os.mkfifo(bench.folder / "pipe")
        done = bench.run()
        assert bench.outcomes(done) == {
            "good.md": "ingested",
            "empty.txt": "skipped",
            "picture.png": "skipped",
            "half.pdf": "failed",
            "half.docx": "failed",
            "scan.pdf": "failed",
            "locked.pdf": "failed",
            "bomb.docx": "failed",
            "lies.txt": "ingested",
            "nul.log": "ingested",
            "mac.txt": "ingested",
            "deep.html": "ingested",
            "pipe": "skipped",
        }
        assert [report.path for report in done.reports] == sorted(report.path for report in done.reports)
        assert all(report.reason for report in done.reports if report.outcome in ("failed", "skipped"))

    def test_a_line_of_five_megabytes_becomes_chunks(self, bench: Bench) -> None:
        bench.write("long.txt", "x" * 2_500_000 + " needle " + "y" * 2_500_000)
        done = bench.run(settings=IngestSettings(batch_chunks=512))
        assert done.count("ingested") == 1
        assert bench.found("needle") == ["long.txt"]

    def test_an_unsupported_file_named_by_itself_is_skipped_with_the_reason(self, bench: Bench) -> None:
        done = bench.run(bench.write("x.png", b"\x89PNG\r\n\x1a\n"))
        assert done.reports[0].outcome == "skipped"
        assert "PNG image" in done.reports[0].reason

    def test_a_file_over_the_limit_is_skipped(self, bench: Bench) -> None:
        bench.write("big.txt", "x" * 2000)
        done = bench.run(settings=IngestSettings(max_file_size=1000))
        assert done.reports[0].outcome == "skipped"
        assert "ingest.max_file_size" in done.reports[0].reason

    def test_a_path_named_twice_is_read_once(self, bench: Bench) -> None:
        file = bench.write("a.txt", "text")
        done = bench.run(file, bench.folder, file, bench.folder / ".." / "docs")
        assert len(done.reports) == 1
        assert bench.library.chunk_count() == 1

    def test_odd_names_go_through_the_library_and_back(self, bench: Bench) -> None:
        path = os.fsdecode(os.fsencode(bench.folder) + b"/caf\xe9\n.txt")
        Path(path).write_text("odd name")
        bench.run()
        assert bench.run().reports[0].outcome == "unchanged"
        (document,) = bench.library.documents()
        assert document.path == path
        assert Path(document.path).read_text() == "odd name"

    def test_an_empty_folder_has_no_reports(self, bench: Bench) -> None:
        done = bench.run()
        assert done.reports == ()
        assert not done.interrupted

    def test_a_missing_path_changes_nothing(self, bench: Bench) -> None:
        bench.write("a.txt", "text")
        with pytest.raises(UsageError, match="nowhere"):
            bench.run(bench.folder, bench.folder / "nowhere")
        assert bench.library.documents() == []

    def test_the_library_does_not_read_itself(self, bench: Bench) -> None:
        bench.write("a.txt", "text")
        done = bench.run(bench.folder.parent)
        assert bench.outcomes(done) == {"a.txt": "ingested"}


class TestAgain:
    def test_nothing_changed_nothing_embedded_and_no_model(self, bench: Bench) -> None:
        bench.write("a.md", chapters(5))
        bench.write("b.txt", "text")
        bench.write("c.png", b"\x89PNG\r\n\x1a\n")
        bench.run()

        def no_model() -> Embedder:
            raise AssertionError("the embedder is not needed")

        done = bench.run(embedder=no_model)
        assert bench.outcomes(done) == {"a.md": "unchanged", "b.txt": "unchanged", "c.png": "skipped"}
        assert done.chunks_embedded == 0
        assert {Path(r.path).name: r.chunk_count for r in done.reports}["a.md"] == 5

    def test_a_new_time_stamp_alone_is_noted_and_embeds_nothing(self, bench: Bench) -> None:
        file = bench.write("a.md", "text")
        bench.run()
        os.utime(file, ns=(1, 1))
        done = bench.run()
        assert bench.outcomes(done) == {"a.md": "unchanged"}
        assert bench.embedder.embedded == []
        assert bench.library.documents()[0].mtime_ns == 1

    def test_an_edit_embeds_its_chunks_only(self, bench: Bench) -> None:
        text = chapters(8)
        bench.write("a.md", text)
        assert bench.run().chunks_embedded == 8
        bench.write("a.md", text.replace("Sentence of chapter 3.", "Something about marmots."))
        done = bench.run()
        assert done.chunks_embedded == len(bench.embedder.embedded) == 1
        assert "marmots" in bench.embedder.embedded[0]
        assert bench.library.chunk_count() == 8
        assert len(bench.library.documents()) == 1

    def test_a_changed_file_no_longer_answers_with_its_old_text(self, bench: Bench) -> None:
        bench.write("a.md", "The badger sleeps.")
        bench.run()
        bench.write("a.md", "The walrus dives.")
        bench.run()
        assert bench.found("badger") == []
        assert bench.found("walrus") == ["a.md"]
        assert len(bench.found_by_vector("badger")) == 1

    def test_a_deleted_file_goes_when_its_folder_is_ingested(self, bench: Bench) -> None:
        bench.write("keep/a.md", "The badger sleeps.")
        gone = bench.write("go/b.md", "The walrus dives.")
        broken = bench.write("go/c.pdf", b"%PDF-1.4 broken")
        bench.run()
        gone.unlink()
        broken.unlink()
        assert bench.outcomes(bench.run(bench.folder / "keep")) == {"keep/a.md": "unchanged"}
        assert bench.found("walrus") == ["b.md"]
        done = bench.run()
        assert bench.outcomes(done) == {"keep/a.md": "unchanged", "go/b.md": "removed"}
        assert bench.found("walrus") == []
        assert bench.library.failures() == []
        assert bench.outcomes(bench.run()) == {"keep/a.md": "unchanged"}

    @pytest.mark.parametrize("left", ["nothing", "empty folders"])
    def test_a_folder_in_which_nothing_is_left_may_be_a_disk_that_is_not_mounted(self, bench: Bench, left: str) -> None:
        bench.write("a.md", "The badger sleeps.")
        bench.write("sub/b.md", "The walrus dives.")
        bench.write("broken.pdf", b"%PDF-1.4 broken")
        bench.run()
        for path in sorted(bench.folder.rglob("*"), reverse=True):
            if path.is_file():
                path.unlink()
            elif left == "nothing":
                path.rmdir()
        done = bench.run()
        assert done.reports == ()
        (note,) = done.notes
        assert f"no file in {bench.folder} any more" in note
        assert "2 documents" in note and "--prune" in note
        assert bench.found("walrus") == ["b.md"]
        assert bench.outcomes(bench.run(prune=True)) == {"a.md": "removed", "sub/b.md": "removed"}
        assert (bench.library.documents(), bench.library.failures()) == ([], [])
        assert bench.run().notes == ()

    def test_documents_of_an_emptied_folder_come_along_where_they_went(self, bench: Bench) -> None:
        path = bench.write("old/a.md", "The badger sleeps.")
        bench.run()
        (bench.folder / "new").mkdir()
        path.rename(bench.folder / "new" / "a.md")
        bench.run(bench.folder / "old", bench.folder / "new")
        assert [Path(document.path).parent.name for document in bench.library.documents()] == ["new"]

    def test_a_document_of_a_folder_that_cannot_be_entered_stays(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.write("closed/a.md", "The badger sleeps.")
        bench.run()
        real_scandir, real_lstat = os.scandir, os.lstat

        def scandir(folder: str) -> object:  # as for another user; this test may run as root
            if str(folder).endswith("closed"):
                raise PermissionError(13, "Permission denied")
            return real_scandir(folder)

        def lstat(path: str) -> os.stat_result:
            if "closed/" in str(path):
                raise PermissionError(13, "Permission denied")
            return real_lstat(path)

        monkeypatch.setattr(os, "scandir", scandir)
        monkeypatch.setattr(os, "lstat", lstat)
        assert bench.outcomes(bench.run()) == {"closed": "failed"}
        assert bench.found("badger") == ["a.md"]

    def test_a_broken_file_is_named_again_but_not_read_again_until_it_changes(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = bench.write("a.pdf", b"%PDF-1.4 broken")
        reason = bench.run().reports[0].reason
        from edgerag.ingest.parse.process import ParserProcess

        with monkeypatch.context() as patch:
            patch.setattr(ParserProcess, "_start", lambda self: pytest.fail("no parser is needed"))
            report = bench.run().reports[0]
        assert (report.outcome, report.reason) == ("failed", reason)
        file.write_bytes(craft.text_pdf("Whole now."))
        assert bench.outcomes(bench.run()) == {"a.pdf": "ingested"}
        assert bench.library.failures() == []

    def test_a_file_that_became_unreadable_is_no_longer_quoted(self, bench: Bench) -> None:
        bench.write("a.pdf", craft.text_pdf("The badger sleeps."))
        bench.run()
        bench.write("a.pdf", b"%PDF-1.4 broken")
        report = bench.run().reports[0]
        assert report.outcome == "failed"
        assert "removed from the library" in report.reason
        assert bench.found("badger") == []


class TestProgressAndEnd:
    def test_events_tell_the_truth(self, bench: Bench) -> None:
        for n in range(6):
            bench.write(f"{n}.md", chapters(4))
        bench.write("x.png", b"\x89PNG\r\n\x1a\n")
        done = bench.run(settings=IngestSettings(batch_chunks=5))
        assert bench.events[0] == FilesDiscovered(7)
        assert sum(isinstance(event, FileDone) for event in bench.events) == 7
        progress = [event for event in bench.events if isinstance(event, IngestProgress)]
        for before, after in pairwise(progress):
            assert before.files_done <= after.files_done <= after.files_total
            assert before.chunks_done <= after.chunks_done <= after.chunks_total
        for event in progress:
            assert event.seconds_left is None or event.seconds_left >= 0
            if event.seconds_left == 0:
                assert (event.files_done, event.chunks_done) == (7, 24), "not done before it is done"
        last = progress[-1]
        assert (last.files_done, last.chunks_done, last.chunks_total) == (7, 24, 24)
        assert done.chunks_embedded == 24

    def test_text_can_be_found_before_its_vectors_are_there(self, bench: Bench) -> None:
        for n in range(3):
            bench.write(f"{n}.md", f"The badger number {n}.")
        run = bench.start(settings=IngestSettings(batch_chunks=1))
        for event in run:
            if isinstance(event, FileDone):
                break
        assert len(bench.found("badger")) == 1
        assert bench.library.pending_count() == 1
        run.close()  # type: ignore[attr-defined]

    @pytest.mark.parametrize("after", [0, 1, 3, 6, 9, 14])
    def test_a_cancelled_run_keeps_what_it_did_and_the_next_goes_on(self, bench: Bench, after: int) -> None:
        for n in range(4):
            bench.write(f"{n}.md", chapters(3).replace("Sentence", f"Sentence {n}"))
        checks = 0

        def cancelled() -> bool:
            nonlocal checks
            checks += 1
            return checks > after

        first = bench.run(settings=IngestSettings(batch_chunks=2), cancelled=cancelled)
        embedded = len(bench.embedder.embedded)
        assert first.interrupted
        assert first.chunks_embedded == embedded
        second = bench.run()
        assert not second.interrupted
        assert len(bench.embedder.embedded) + embedded == 12, "nothing is embedded twice"
        assert bench.library.pending_count() == 0
        assert {f.severity for f in bench.library.verify()} <= {"ok", "info"}

    def test_a_closed_generator_leaves_no_process(self, bench: Bench) -> None:
        for n in range(40):
            bench.write(f"{n}.md", chapters(3))
        before = children()
        run = bench.start()
        for event in run:
            if isinstance(event, FileDone):
                break
        assert children() - before, "a parser is at work"
        run.close()  # type: ignore[attr-defined]
        assert children() == before
        assert bench.run().count("ingested") < 40
        assert children() == before

    def test_a_full_disk_ends_the_run_and_is_told(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        bench.write("a.md", chapters(6))

        def full(ids: Sequence[int], vectors: Vectors) -> None:
            raise StorageFull("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(bench.library, "put_vectors", full)
            with pytest.raises(StorageFull):
                bench.run()
        assert bench.library.pending_count() == 6
        assert bench.run().chunks_embedded == 6

    def test_leftovers_are_embedded_even_if_no_file_changed(self, bench: Bench) -> None:
        bench.write("a.md", chapters(6))
        (bench.folder.parent / "empty").mkdir()
        run = bench.start()
        for event in run:
            if isinstance(event, FileDone):
                break
        run.close()  # type: ignore[attr-defined]
        done = bench.run(bench.folder.parent / "empty")
        assert (done.reports, done.chunks_embedded) == ((), 6)


class TestSealing:
    """What happens to the index while files are read, with segments of a dozen vectors."""

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        embedder = HashingEmbedder()
        (tmp_path / "docs").mkdir()
        with open_library(
            tmp_path / "library",
            mode="write",
            residency=Residency(64_000_000),
            identity=embedder.identity,
            seal_settings=SealSettings(block_bytes=4096, graph_rows=10, unsealed_rows=12),
        ) as library:
            yield Bench(tmp_path / "docs", library, embedder)

    settings = IngestSettings(batch_chunks=4)

    def test_copies_of_what_is_there_are_sealed_as_they_come_too(self, bench: Bench) -> None:
        bench.write("0.md", chapters(9))
        bench.run()
        for number in range(1, 9):
            bench.write(f"{number}.md", chapters(9))
        unsealed = [
            bench.library.status().unsealed_count
            for event in bench.start(settings=self.settings)
            if isinstance(event, IngestProgress) and not event.current.startswith("sealing the index")
        ]
        assert len(bench.embedder.embedded) == 9
        assert max(unsealed) < 12

    def test_a_long_ingest_seals_as_it_goes_and_joins_at_its_end(self, bench: Bench) -> None:
        for number in range(8):  # no two alike: one whose text is known has its vectors at once, not in batches
            bench.write(f"{number}.md", chapters(9).replace("Sentence", f"Sentence{number}"))
        unsealed, segments, said = [], [], []
        for event in bench.start(settings=self.settings):
            if isinstance(event, IngestProgress):
                said.append(event.current)
                if not event.current.startswith("sealing the index: "):  # the library is at work in another thread
                    status = bench.library.status()
                    unsealed.append(status.unsealed_count)
                    segments.append(len(status.segments))
        # How chunks come together in batches depends on how fast files are parsed.
        assert 12 <= max(unsealed) < 12 + self.settings.batch_chunks
        assert max(segments) >= 72 // (12 + self.settings.batch_chunks)
        assert unsealed[-1] == 0
        assert segments[-1] < max(segments)
        assert any(re.fullmatch(r"sealing the index: linking, 1[2-5] of 1[2-5]", sentence) for sentence in said)
        assert any(sentence.startswith("sealing the index: writing, ") for sentence in said)
        hits = bench.library.search_vectors(bench.embedder.embed_query("chapter 3"), limit=100, ef_search=100)
        assert len(hits) == 72

    def test_stopped_while_sealing_nothing_is_lost_and_the_next_run_seals(self, bench: Bench) -> None:
        bench.write("a.md", chapters(10))
        stop = threading.Event()
        events = []
        for event in bench.start(settings=self.settings, cancelled=stop.is_set):
            events.append(event)
            if isinstance(event, IngestProgress) and event.current == "sealing the index":
                stop.set()
        done = events[-1]
        assert isinstance(done, IngestDone)
        assert done.interrupted
        assert (bench.library.pending_count(), bench.library.status().unsealed_count) == (0, 10)
        query = bench.embedder.embed_query("chapter 3")
        before = bench.library.search_vectors(query, limit=20, ef_search=100)
        assert len(before) == 10
        assert not bench.run().interrupted
        assert bench.library.status().unsealed_count == 0
        assert bench.library.search_vectors(query, limit=20, ef_search=100) == before

    def test_whoever_stops_listening_stops_the_sealing(self, bench: Bench) -> None:
        bench.write("a.md", chapters(10))
        run = bench.start(settings=self.settings)
        for event in run:
            if isinstance(event, IngestProgress) and event.current.startswith("sealing the index: "):
                break
        run.close()  # type: ignore[attr-defined]
        assert [thread.name for thread in threading.enumerate() if thread.name == "sealing"] == []
        assert {finding.severity for finding in bench.library.verify()} == {"ok"}

    def test_whoever_stops_listening_stops_a_sealing_that_is_held(self, bench: Bench) -> None:
        bench.write("a.md", chapters(10))
        hold = Hold()
        run = bench.start(settings=self.settings, hold=hold)
        for event in run:
            if isinstance(event, IngestProgress) and event.current.startswith("sealing the index: "):
                hold.begin()
                break
        run.close()  # type: ignore[attr-defined]
        assert [thread.name for thread in threading.enumerate() if thread.name == "sealing"] == []

    def test_a_full_disk_while_sealing_is_told(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        from edgerag.index import construction

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        bench.write("a.md", chapters(10))
        with monkeypatch.context() as context:
            context.setattr(construction, "write_segment", full)
            with pytest.raises(StorageFull, match="disk is full"):
                bench.run()
        assert bench.run().chunks_embedded == 0
        assert bench.library.status().unsealed_count == 0

    def test_a_damaged_segment_is_told_and_stops_nothing(self, bench: Bench) -> None:
        bench.write("a.md", chapters(10))
        bench.run()
        (file,) = (bench.library.folder / "segments").iterdir()
        raw = bytearray(file.read_bytes())
        section = layout.read_header(file, identity=bench.embedder.identity).section(layout.SectionKind.VECTORS)
        assert section is not None
        raw[section.offset + 3] ^= 1
        file.write_bytes(raw)
        bench.write("b.md", chapters(10, words=80))
        done = bench.run()
        assert done.count("ingested") == 1
        assert len(done.notes) == 1
        assert file.name in done.notes[0]
        assert bench.library.status().unsealed_count == 0


def children() -> set[str]:
    task = Path(f"/proc/{os.getpid()}/task")
    found: set[str] = set()
    for thread in task.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found |= set((thread / "children").read_text().split())
    return found


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from pathlib import Path
from fakes import HashingEmbedder
from edgerag.config import ChunkSettings, IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.ingest.pipeline import ingest
embedder = HashingEmbedder()
with open_library(
    Path({library!r}), mode="write", residency=Residency(64_000_000), identity=embedder.identity
) as library:
    events = ingest([Path({docs!r})], library=library, embedder=lambda: embedder,
        settings=IngestSettings(batch_chunks=2), chunks=ChunkSettings(), cancelled=lambda: False)
    for count, event in enumerate(events):
        if count == {count}:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("count", [2, 5, 9, 13])
def test_killed_at_any_moment_the_next_run_gives_what_one_run_gives(tmp_path: Path, count: int) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for n in range(4):
        (docs / f"{n}.md").write_text(chapters(3))
    here = Path(__file__).parents[1]
    code = KILLED.format(
        paths=[str(here), str(here.parent)], library=str(tmp_path / "library"), docs=str(docs), count=count
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    embedder = HashingEmbedder()
    for name in ("library", "other"):
        with open_library(
            tmp_path / name, mode="write", residency=Residency(64_000_000), identity=embedder.identity
        ) as library:
            if name == "library":
                assert {finding.severity for finding in library.verify()} <= {"ok", "info"}
            bench = Bench(docs, library, embedder)
            assert not bench.run().interrupted
            results = [
                [(c.path, c.chunk.start) for c in library.chunks([h.chunk_id for h in hits])]
                for hits in (
                    library.search_keywords("chapter 2", limit=20),
                    library.search_vectors(embedder.embed_query("chapter 2"), limit=20, ef_search=100),
                )
            ]
            assert library.pending_count() == 0
            if name == "library":
                resumed = results
    assert [set(leg) for leg in resumed] == [set(leg) for leg in results]
    assert all(len(leg) == 12 for leg in results)


GERMAN = "Die Häuser stehen am Meer, und die Entwicklungen der letzten Jahre haben sie nicht verändert."


def test_words_of_an_older_version_are_made_anew_and_nothing_is_embedded(bench: Bench) -> None:
    bench.write("a.txt", GERMAN)
    bench.write("b.txt", "The houses stand by the sea, and what was developed in the last years did not change them.")
    bench.run()
    with bench.library._store.writing() as db:
        db.execute("UPDATE documents SET language = 'unknown', analysis = 1")
    done = bench.run()
    assert set(bench.outcomes(done).values()) == {"unchanged"}
    assert (done.chunks_embedded, bench.embedder.embedded, done.interrupted) == (0, [], False)
    assert any("analysing" in event.current for event in bench.events if isinstance(event, IngestProgress))
    assert [document.language for document in bench.library.documents()] == ["de", "en"]
    assert bench.found("Haus Entwicklung")[0] == "a.txt"
    bench.run()
    assert not any("analysing" in event.current for event in bench.events if isinstance(event, IngestProgress))


def test_an_analysis_that_was_interrupted_goes_on(bench: Bench) -> None:
    for number in range(20):
        bench.write(f"{number:02}.txt", f"{GERMAN} Nummer {number}.")
    bench.run()
    with bench.library._store.writing() as db:
        db.execute("UPDATE documents SET language = 'unknown', analysis = 1")

    def cancelled() -> bool:
        return bench.library.analysed_before_count() < 20

    done = bench.run(cancelled=cancelled)
    assert done.interrupted
    assert 0 < bench.library.analysed_before_count() < 20
    assert bench.found("Nummer 7")[0] == "07.txt"
    assert not bench.run().interrupted
    assert {document.language for document in bench.library.documents()} == {"de"}


@pytest.mark.parametrize("year", [1601, 1900, 2300, 2446, 30000])
def test_a_file_whose_time_no_64_bits_hold_is_read_like_any_other(bench: Bench, year: int) -> None:
    path = bench.write("pump.txt", "The pump stands in the cellar.")
    seconds = int((year - 1970) * 365.2425 * 86_400)
    try:
        os.utime(path, (seconds, seconds))
    except (OverflowError, OSError):
        pytest.skip("this system cannot give a file such a time")
    if abs(path.stat().st_mtime - seconds) > 86_400:
        pytest.skip("this file system cannot keep such a time")
    assert [report.outcome for report in bench.run().reports] == ["ingested"]
    assert [report.outcome for report in bench.run().reports] == ["unchanged"]


class TestHeld:
    """A run that somebody holds."""

    settings = IngestSettings(batch_chunks=4)

    def held_at(
        self, bench: Bench, hold: Hold, at: Callable[[IngestEvent], bool], stop: threading.Event
    ) -> Future[list[IngestEvent]]:
        """A run that goes on in another thread, once it is held where ``at(event)``; gives all its events."""
        reached = threading.Event()

        def consume() -> list[IngestEvent]:
            events = []
            for event in bench.start(settings=self.settings, cancelled=stop.is_set, hold=hold):
                events.append(event)
                if not reached.is_set() and at(event):
                    hold.begin()
                    reached.set()
            return events

        running = ThreadPoolExecutor(1).submit(consume)
        assert reached.wait(60)
        return running

    @pytest.mark.parametrize("place", ["without reading", "reading", "embedding", "sealing"])
    def test_it_waits_and_goes_on_as_if_nothing_had_been(self, bench: Bench, place: str) -> None:
        def at(event: IngestEvent) -> bool:
            match place:
                case "without reading":
                    return isinstance(event, FilesDiscovered)
                case "reading":
                    return isinstance(event, FileDone)
                case "embedding":
                    return isinstance(event, IngestProgress) and event.chunks_done > 0
            return isinstance(event, IngestProgress) and event.current.startswith("sealing the index")

        now = [0.0]
        hold = Hold(lambda: now[0])
        for number in range(3):
            bench.write(f"{number}.md", chapters(5 + number))
        running = self.held_at(bench, hold, at, threading.Event())
        with pytest.raises(TimeoutError):
            running.result(timeout=0.5)
        now[0] += 3600
        hold.end()
        events = running.result()
        done = events[-1]
        assert isinstance(done, IngestDone) and not done.interrupted
        assert (done.count("ingested"), done.seconds) == (3, 0), "the hour in which it was held is none of its own"
        assert (bench.library.pending_count(), bench.library.status().unsealed_count) == (0, 0)
        told = [event for event in events if isinstance(event, IngestProgress)]
        assert all(event.seconds_left in (None, 0) for event in told)

    @pytest.mark.parametrize("what", [FilesDiscovered, FileDone])
    def test_it_is_stopped_though_it_is_held(self, bench: Bench, what: type[IngestEvent]) -> None:
        for number in range(3):
            bench.write(f"{number}.md", chapters(5))
        hold, stop = Hold(), threading.Event()
        running = self.held_at(bench, hold, lambda event: isinstance(event, what), stop)
        stop.set()
        done = running.result()[-1]
        assert isinstance(done, IngestDone) and done.interrupted
        assert hold.is_on, "it was not let go"
        assert bench.run().count("failed") == 0
        assert len(bench.library.documents()) == 3 and bench.library.pending_count() == 0

    def test_a_long_document_is_held_while_it_is_cut_into_chunks(self, bench: Bench) -> None:
        hold, stop, reached = Hold(), threading.Event(), threading.Event()
        counted = bench.embedder.count_tokens

        def count_tokens(text: str) -> int:
            if not reached.is_set():
                hold.begin()
                reached.set()
            time.sleep(0.001)
            return counted(text)

        bench.embedder.count_tokens = count_tokens  # type: ignore[method-assign]
        bench.write("a.md", chapters(40))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(lambda: list(bench.start(hold=hold, cancelled=stop.is_set)))
            assert reached.wait(60)
            with pytest.raises(TimeoutError):
                running.result(timeout=0.5)
            assert bench.library.documents() == []
            stop.set()
            done = running.result()[-1]
        assert isinstance(done, IngestDone) and done.interrupted and not done.reports
        assert bench.run().count("ingested") == 1, "the next run reads it"
