"""A session that answers from a script: real-looking documents, deltas, ingest events, failures.

The methods are those of ``edgerag.session.Session`` that the terminal UI uses. Nothing waits for a
clock; a test that wants to look at an answer half way holds it with ``hold`` and lets it ``go``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from painted_pages import PaintedPages

from edgerag.config import LibrarySettings, Settings
from edgerag.engine.catalog import CatalogEntry
from edgerag.engine.measured_speed import Recommendation
from edgerag.engine.recommend import MachineSpeed, recommend
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.record import Measurement, Tuning
from edgerag.errors import DocumentGone, DocumentUnsupported, LibraryMissing, UsageError
from edgerag.hold import Hold
from edgerag.locations import Locations
from edgerag.session.upgrading import Upgrading
from edgerag.threads.sources import find_again
from edgerag.threads.store import ThreadStore
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    AnswerSentence,
    AskEvent,
    Chunk,
    Document,
    FileDone,
    FileReport,
    FilesDiscovered,
    Filter,
    Finding,
    FoundSource,
    Heading,
    Hit,
    HitsFound,
    IngestDone,
    IngestEvent,
    IngestProgress,
    InstantAnswer,
    InstantSentence,
    LibraryStatus,
    Message,
    ModelFile,
    Page,
    ParsedDocument,
    Plan,
    PlanMade,
    Prompt,
    PromptReady,
    Scores,
    SegmentBlocks,
    Source,
    StageTime,
    StopReason,
    StoredChunk,
    Suggestion,
    ThoughtDelta,
    TokenCounts,
    Turn,
    Unfinished,
)

MANUAL = """# Kestrel P-40 diaphragm pump: operating manual

The Kestrel P-40 moves water, brine and mild acids from open tanks. It is built for unattended
sites: it starts by itself after a power cut and keeps a log of its last 200 events.

## Tightening torques

| Part | Thread | Torque |
|---|---|---|
| Lid screws | M6 | 9 Nm, crosswise, in two rounds |
| Diaphragm clamp | M8 | 14 Nm |

The lid screws of the pump are tightened to 9 Nm, crosswise and in two rounds. Replace the lid gasket
whenever the lid has been open.

## Maintenance

- Every week: look for drops under the housing, and listen for gravel.
- Every 500 hours: clean the strainer.
- Every 2,000 hours: replace the diaphragm (part KP40-117) and both valve balls (part KP40-121).

## Storage

Drain the pump before frost. Rinse it with clean water after brine or acid. A stored pump must be
turned by hand once every three months so that the diaphragm does not stick.
"""
SHEET_PAGES = (
    "Kestrel P-40 data sheet\n\nFlow 40 litres per minute at 2 bar.\nWeight 11.5 kg, without hoses.\n",
    "Spare parts\n\nKP40-117 diaphragm, EPDM\nKP40-121 valve ball, two are needed\nKP40-230 pressure sensor\n",
    "Dimensions\n\nLength 310 mm, width 220 mm, height 265 mm.\n",
)
NOTES = """备用电源说明

停电时，备用电源可以工作四小时。蓄电池每三年更换一次。更换前请先断开主开关。
"""
REPLY = (
    "The diaphragm is replaced **every 2,000 hours**, together with both valve balls [1].\n\n"
    "| Part | Number |\n|---|---|\n| Diaphragm | KP40-117 |\n| Valve ball (two) | KP40-121 |\n\n"
    "The spare parts are listed in the data sheet [2]."
)


def paged(title: str, pages: Sequence[str]) -> ParsedDocument:
    spans, start = [], 0
    for number, page in enumerate(pages, 1):
        spans.append(Page(number=number, start=start, end=start + len(page)))
        start += len(page)
    return ParsedDocument(text="".join(pages), title=title, media_type="application/pdf", pages=tuple(spans))


def plain_document(title: str, text: str, media_type: str = "text/markdown") -> ParsedDocument:
    headings = tuple(Heading(len(m[1]), m[2], m.start()) for m in re.finditer(r"^(#+) (.+)$", text, re.MULTILINE))
    return ParsedDocument(text=text, title=title, media_type=media_type, headings=headings)


DOCUMENTS: dict[str, ParsedDocument] = {
    "/docs/kestrel-p40-manual.md": plain_document("Kestrel P-40 diaphragm pump: operating manual", MANUAL),
    "/docs/kestrel-p40-datasheet.pdf": paged("Kestrel P-40 data sheet", SHEET_PAGES),
    "/docs/备用电源.md": plain_document("备用电源说明", NOTES),
}


def source(path: str, parsed: ParsedDocument, passage: str, quote: str, *, number: int, document_id: int) -> Source:
    """A source over ``passage``, which must stand in the document."""
    text = parsed.text
    start = text.index(passage)
    end = start + len(passage)
    page = next((page.number for page in parsed.pages if page.start <= start < page.end), None)
    headings = [heading for heading in parsed.headings if heading.start <= start]
    chunk = Chunk(
        ordinal=0,
        start=start,
        end=end,
        text=passage,
        heading_path=(headings[-1].title,) if headings else (),
        page_first=page,
        page_last=page,
        line_first=text.count("\n", 0, start) + 1,
        line_last=text.count("\n", 0, end) + 1,
        token_count=len(passage.split()),
    )
    stored = StoredChunk(
        id=number, document_id=document_id, path=path, title=parsed.title, media_type=parsed.media_type, chunk=chunk
    )
    scores = Scores(keyword=7.5, keyword_rank=number, vector=0.7, vector_rank=number, fused=0.03)
    return Source(
        number=number, hit=Hit(stored, scores), quote=quote, quote_start=text.index(quote, start), cited=False
    )


class ScriptedSession:
    """``reply`` is streamed word by word. Errors put into ``failures`` under a method's name are raised by it."""

    def __init__(
        self, *, documents: dict[str, ParsedDocument] | None = None, model: str = "smollm2-135m-instruct"
    ) -> None:
        self.settings = Settings(library=LibrarySettings(name="default"))
        self.locations = Locations(Path.home() / "edgerag")  # that of the test: conftest.py
        self.model = model
        self.upgrading = Upgrading()
        self.library = dict(DOCUMENTS if documents is None else documents)
        self.numbers = {path: number for number, path in enumerate(self.library, 1)}
        self.reply = REPLY
        self.stop_reason: StopReason = "end"
        self.notes: tuple[str, ...] = ()
        self.instant: tuple[InstantSentence, ...] = ()
        self.thought = ""  # in two pieces, before the reply
        self.unsupported: tuple[str, ...] = ()  # parts of the reply that stand in no source
        self.sources: tuple[Source, ...] | None = None
        self.pending = 0
        self.blocks: list[SegmentBlocks] = []
        self.catalogue: list[CatalogEntry] = [
            CatalogEntry(name, kind, "ready", size, "apache-2.0", "manifest", Path(f"/models/{name}.gguf"), "Q4_1")
            for name, kind, size in (
                ("smollm2-135m-instruct", "chat", 98_000_000),
                ("qwen3-0.6b", "chat", 480_000_000),
                ("all-minilm-l6-v2", "embedder", 46_000_000),
            )
        ]
        self.failures: dict[str, Exception] = {}
        self.histories: list[tuple[Turn, ...]] = []
        self.filters: list[Filter | None] = []
        self.kept = ThreadStore(None)
        self.removed: list[str] = []
        self.warmed = False
        self.reports: list[FileReport] = [
            FileReport("/new/intro.md", "ingested", "", 12),
            FileReport("/new/scan.pdf", "failed", "It holds no text: a scan without a text layer.", 0),
            FileReport("/new/logo.png", "skipped", "No reader for image/png.", 0),
        ]
        self.index_notes: tuple[str, ...] = ()  # of an ingest
        self.before_delta: Callable[[int], None] = lambda index: None  # in the worker's thread
        self.before_model: Callable[[], None] = lambda: None
        self.before_answer: Callable[[], None] = lambda: None
        self.while_tuning: Callable[[], None] = lambda: None
        self.before_file: Callable[[int], None] = lambda index: None
        self.before_page: Callable[[int], None] = lambda number: None  # in the thread that draws it
        self.opened_pages: list[PaintedPages] = []
        self.worker_names: set[str] = set()
        self.niceness = 0  # of the thread that asked last

    # ------------------------------------------------------------ asking

    def ask(
        self,
        question: str,
        *,
        history: Sequence[Turn] = (),
        where: Filter | None = None,
        unfinished: Unfinished | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[AskEvent]:
        self._called("ask")
        self.niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self.filters.append(where)
        if not self.library:
            raise LibraryMissing("There is no library 'default' yet.", remedy="Make it with `edgerag ingest FOLDER`.")
        self.histories.append(tuple(history))
        if unfinished is not None:
            yield from self._answer(question, unfinished.sources, str(unfinished.messages[-1].parts[0]), cancelled)
            return
        terms = tuple(question.lower().split())
        yield PlanMade(Plan(question, "latin", terms, 4, 40, 1.0, 1.0, 80))
        sources = self.sources if self.sources is not None else self._sources()
        yield HitsFound(tuple(source.hit for source in sources))
        yield InstantAnswer(self.instant, sources)
        self.before_model()
        yield PromptReady(
            Prompt(
                tokens=(1,) * 512,
                passages=(),
                messages=(),
                sources=sources,
                marks=(),
                dropped=(),
                shortened=(),
                short_of_time=False,
                reading_s=None,
                history_dropped=0,
                answer_room=256,
                question_cut=False,
            )
        )
        if self.thought:
            yield ThoughtDelta(self.thought[: len(self.thought) // 2])
            self.before_answer()
            yield ThoughtDelta(self.thought[len(self.thought) // 2 :])
        yield from self._answer(question, sources, "", cancelled)

    def _answer(
        self, question: str, sources: tuple[Source, ...], said: str, cancelled: Callable[[], bool]
    ) -> Iterator[AskEvent]:
        """The reply from where it stands."""
        stop_reason = self.stop_reason
        if said:
            yield AnswerDelta(said)
        for index, piece in enumerate(re.findall(r"\s*\S+", self.reply.removeprefix(said))):
            self.before_delta(index)
            if cancelled():
                stop_reason = "cancelled"
                break
            said += piece
            yield AnswerDelta(piece)
        if "ask_midway" in self.failures:
            raise self.failures["ask_midway"]
        cited = {int(number) for number in re.findall(r"\[(\d+)\]", said)}
        yield AnswerDone(
            Answer(
                question=question,
                text=said,
                found=bool(sources),
                sources=tuple(replace(source, cited=source.number in cited) for source in sources),
                stop_reason=stop_reason,
                timings=(
                    StageTime("embed", 0.01),
                    StageTime("first_token", 0.3),
                    StageTime("generate", 1.2),
                    StageTime("total", 1.51),
                ),
                tokens=TokenCounts(prompt=512, answer=89),
                model=self.model,
                pending_count=self.pending,
                notes=self.notes,
                instant=self.instant,
                sentences=tuple(
                    AnswerSentence(
                        said.index(part), said.index(part) + len(part), (), "unsupported", "No source has it."
                    )
                    for part in self.unsupported
                ),
                thought=self.thought,
                messages=(Message("user", (question,)), Message("assistant", (said,))),
            )
        )

    def _sources(self) -> tuple[Source, ...]:
        manual, sheet = "/docs/kestrel-p40-manual.md", "/docs/kestrel-p40-datasheet.pdf"
        maintenance = MANUAL[MANUAL.index("- Every week") : MANUAL.index("\n\n## Storage")]
        storage = MANUAL[MANUAL.index("Drain the pump") :].rstrip()
        parts = SHEET_PAGES[1].rstrip()
        made = [
            (manual, maintenance, maintenance.splitlines()[-1]),
            (sheet, parts, "KP40-117 diaphragm, EPDM"),
            (manual, storage, "Drain the pump before frost."),
        ]
        return tuple(
            source(path, self.library[path], passage, quote, number=n, document_id=self.numbers[path])
            for n, (path, passage, quote) in enumerate(made, 1)
        )

    # ------------------------------------------------------------ the library

    def ingest(
        self, paths: Sequence[Path], *, cancelled: Callable[[], bool] = lambda: False, hold: Hold | None = None
    ) -> Iterator[IngestEvent]:
        cancelled = (hold or Hold()).waiting(cancelled)
        self._called("ingest")
        yield FilesDiscovered(len(self.reports))
        reports: list[FileReport] = []
        chunks = 0
        for index, report in enumerate(self.reports):
            self.before_file(index)
            if cancelled():
                break
            reports.append(report)
            chunks += report.chunk_count
            yield FileDone(report)
            yield IngestProgress(index + 1, len(self.reports), chunks, chunks, 45.0, 80.0 - index, report.path)
            if report.outcome == "ingested":
                text = f"Introduction\n\nWhat {report.path} says.\n"
                self.library[report.path] = plain_document(Path(report.path).stem, text)
                self.numbers[report.path] = max(self.numbers.values(), default=0) + 1
        interrupted = len(reports) < len(self.reports)
        yield IngestDone(tuple(reports), chunks, 4.1, interrupted, notes=self.index_notes)

    def remove(self, paths: Sequence[str]) -> list[Document]:
        self._called("remove")
        chosen = [document for document in self.documents() if f"#{document.id}" in paths]
        if len(chosen) != len(paths):
            raise UsageError(f"No document among {paths!r}.")
        for document in chosen:
            del self.library[document.path]
            self.removed.append(document.path)
        return chosen

    def documents(self) -> list[Document]:
        self._called("documents")
        return [
            Document(
                id=self.numbers[path],
                path=path,
                root="/docs",
                title=parsed.title,
                media_type=parsed.media_type,
                content_sha256="0" * 64,
                size_bytes=len(parsed.text.encode("utf-8", "replace")),
                mtime_ns=0,
                page_count=len(parsed.pages),
                chunk_count=max(1, len(parsed.text) // 400),
                pending_count=self.pending,
                warnings=parsed.warnings,
            )
            for path, parsed in self.library.items()
        ]

    def document_chunks(self, document_id: int) -> list[StoredChunk]:
        self._called("document_chunks")
        path = next((path for path, number in self.numbers.items() if number == document_id), "")
        parsed = self.library.get(path)
        if parsed is None:
            return []
        passages = [passage for passage in parsed.text.split("\n\n") if passage.strip()]
        made = [
            source(path, parsed, passage, passage, number=number, document_id=document_id)
            for number, passage in enumerate(passages, 1)
        ]
        return [each.hit.chunk for each in made]

    def source_document(self, source: Source) -> ParsedDocument | None:
        self._called("source_document")
        return self.library.get(source.hit.chunk.path)

    def source_pages(self, source: Source) -> PaintedPages:
        self._called("source_pages")
        parsed = self.library.get(source.hit.chunk.path)
        if parsed is None:
            raise DocumentGone("The document is no longer in the library.")
        if parsed.media_type != "application/pdf":
            raise DocumentUnsupported("Only pages of a PDF can be shown as pictures.")
        self.opened_pages.append(PaintedPages(parsed, self.before_page))
        return self.opened_pages[-1]

    def find_sources(self, sources: Sequence[Source], hashes: Sequence[str]) -> list[FoundSource]:
        self._called("find_sources")
        documents = [self.source_document(source) for source in sources]
        return [
            find_again(source, known, None if document is None else document.text)
            for source, known, document in zip(sources, hashes, documents, strict=True)
        ]

    def check_filter(self, where: Filter) -> None:
        self._called("check_filter")
        for name in where.tags:
            if name != "pump":
                raise UsageError(f"There is no tag {name!r} in this library.")

    def library_status(self) -> LibraryStatus | None:
        self._called("library_status")
        if not self.library:
            return None
        chunks = sum(max(1, len(parsed.text) // 400) for parsed in self.library.values())
        return LibraryStatus(
            name="default",
            folder="/home/keeper/edgerag/indexes/default",
            embedder="all-minilm-l6-v2",
            dimension=384,
            document_count=len(self.library),
            chunk_count=chunks,
            pending_count=self.pending,
            size_bytes=1_480_000,
            budget_bytes=256_000_000,
            resident_bytes=1_100_000,
            segments=(),
        )

    def budget_bytes(self) -> int:
        return 256_000_000

    def library_blocks(self) -> list[SegmentBlocks]:
        self._called("library_blocks")
        if not self.library:
            raise LibraryMissing("There is no library 'default' yet.", remedy="Press F2 to add documents.")
        return self.blocks

    @property
    def threads(self) -> ThreadStore:
        self._called("threads")
        return self.kept

    # ------------------------------------------------------------ models and machine

    def adopt(self, settings: Settings) -> None:
        self._called("adopt")
        self.settings = settings

    def verify_models(self, names: Sequence[str] = ()) -> list[Finding]:
        self._called("verify_models")
        return [Finding(name, "ok", "98,000,000 bytes, SHA-256 0123456789ab... as recorded") for name in names]

    def provide_models(self, names: Sequence[str] = (), *, report: Callable[[str], None]) -> list[ModelFile]:
        self._called("provide_models")
        report("smollm2-135m-instruct: downloading edgerag-models through pip")
        self.model = "smollm2-135m-instruct"
        return []

    def recommend_models(self, *, report: Callable[[str], None]) -> Recommendation:
        self._called("recommend_models")
        speed = MachineSpeed(threads=2, bytes_per_s=20e9, operations_per_s=1e11, free_bytes=8_000_000_000)
        return Recommendation(speed, 4096, (), tuple(recommend(speed, context_tokens=4096)))

    def add_model(self, path: Path) -> ModelFile:
        self._called("add_model")
        raise UsageError(f"{path} is no GGUF file.", remedy="Name another.")

    def tune_model(
        self,
        name: str,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        report: Callable[[Measurement], None] = lambda _: None,
    ) -> Tuning:
        self._called("tune_model")
        choice = Choice(prefill_threads=2, decode_threads=2)
        report(Measurement("first", "", "", "", prefill_tps=210, decode_tps=41))
        self.while_tuning()
        return Tuning(choice=choice, first=choice, finished=not cancelled(), seconds=12.0)

    def models(self) -> list[CatalogEntry]:
        self._called("models")
        return list(self.catalogue)

    def diagnose(self) -> list[Finding]:
        self._called("diagnose")
        findings = [
            Finding("cpu", "ok", "x86_64 with AVX2 and FMA."),
            Finding("cores", "ok", "2 physical cores, 2 threads in use."),
            Finding("memory", "warning", "612 MB are free.", "Close other programs, or use a smaller chat model."),
        ]
        if not self.model:
            findings.append(Finding("chat model", "error", "There is none.", "Run `edgerag models pull`."))
        return findings

    def suggestions(self) -> tuple[Suggestion, ...]:
        command, effect = "edgerag models tune", "prompts are read twice as fast"
        return (Suggestion("tune", "the first words come late", "Not measured here.", "", "", command, effect, ()),)

    def warm(self) -> None:
        self._called("warm")
        self.warmed = True

    def chat_model_name(self) -> str:
        self._called("chat_model_name")
        return self.model

    def resident_bytes(self) -> int:
        return 412_000_000

    def close(self) -> None:
        pass

    def _called(self, method: str) -> None:
        self.worker_names.add(threading.current_thread().name)
        if method in self.failures:
            raise self.failures[method]
