"""Settings become opened parts here, and only here: every user interface works through a Session.

Models are loaded when first needed and at most once; :meth:`Session.warm` starts that in the
background, so that reading the index and loading weights overlap. The library is opened twice for
reading, once for asking and once for browsing, so that a list of documents never waits for an
answer; ingest opens its own writer. All of them share one ceiling on the memory of the index.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from edgerag.config import LibrarySettings, MetricsSettings, Settings, TraceSettings
from edgerag.errors import (
    EmbedderMismatch,
    LibraryMissing,
    LibraryOutdated,
    ModelError,
    ModelWrongKind,
    StorageFull,
    UsageError,
)
from edgerag.locations import Locations, is_there, safe_library_name, user_path
from edgerag.settings.effective import RELOADING, felt_now
from edgerag.supplier import Supplier
from edgerag.telemetry.recorder import Recorder
from edgerag.types import (
    MEMBER_MARK,
    AnswerDone,
    AskEvent,
    CancelCheck,
    Document,
    Embedder,
    EmbedderIdentity,
    Filter,
    Finding,
    FoundSource,
    Generator,
    HitsFound,
    IngestDone,
    IngestEvent,
    KvChanges,
    KvSink,
    LeftOut,
    LibraryStatus,
    MergeProgress,
    MergeReport,
    ModelFile,
    ParsedDocument,
    ReembedEvent,
    ReembedPrice,
    Reranker,
    SearchResult,
    SegmentBlocks,
    Source,
    Suggestion,
    Turn,
    Unfinished,
    WatchEvent,
    Weighing,
    own_id,
)

if TYPE_CHECKING:
    from edgerag.ask.second_look import SecondLook
    from edgerag.changeover import Changeover
    from edgerag.engine.bulk import BulkEmbedder
    from edgerag.engine.catalog import Catalog, CatalogEntry
    from edgerag.engine.measured_speed import Recommendation
    from edgerag.engine.states.store import StateStore
    from edgerag.engine.tuning.background import BackgroundTuning
    from edgerag.engine.tuning.idle import IdleTuning
    from edgerag.engine.tuning.record import Measurement, Tuning
    from edgerag.forecasts import Forecasts
    from edgerag.index.hnsw.residency import Residency
    from edgerag.index.library import Failure, Library
    from edgerag.index.package import Manifest
    from edgerag.index.repair import DatabaseRepair
    from edgerag.index.rescue import SegmentRescue
    from edgerag.index.segments import SealSettings
    from edgerag.index.shelf import Shelf
    from edgerag.index.token_store import TokenStore
    from edgerag.measure.eval.stages import Subject
    from edgerag.threads.store import ThreadStore

ReadT = TypeVar("ReadT", bound="Library | Shelf")

_TRACE_WAIT_S = 2.0  # for the trace of the last answer, when it is asked whether that was kept
_STATES_FOLDER = "kv"  # in the folder of the library
_NUMBER = re.compile(r"#[0-9]{1,18}")


def never() -> bool:
    """The cancel check of a request that nobody can cancel."""
    return False


class Session:
    """One user at work with one library.

    ``embedder``, ``generator`` and ``reranker`` replace the models named in the settings (tests and embedding the
    program elsewhere); they are made at most once.
    """

    def __init__(
        self,
        settings: Settings,
        locations: Locations,
        *,
        embedder: Callable[[], Embedder] | None = None,
        generator: Callable[[], Generator] | None = None,
        reranker: Callable[[], Reranker] | None = None,
    ) -> None:
        self.settings = settings
        self.locations = locations
        self._library_folder = locations.library_folder(settings.library.name)
        self._own_models = embedder is None
        self._embedder: Supplier[Embedder] = Supplier(embedder or self._open_embedder)
        self._make_generator = generator or self._open_generator
        self._generator: Supplier[Generator] = Supplier(self._make_generator)
        self._reranker: Supplier[Reranker] = Supplier(reranker or self._open_reranker)
        self._residency: Supplier[Residency] = Supplier(self._make_residency)
        self._states: Supplier[StateStore] = Supplier(self._make_states)
        self._tokens: Supplier[TokenStore] = Supplier(self._make_tokens)
        self._threads: Supplier[ThreadStore] = Supplier(self._open_threads)
        self._recorder = Recorder(
            locations.traces_file, lambda: self.settings, facts=self._facts_now, gauges=self._gauges_now
        )
        self._tunes = False
        self._forecasts: Forecasts | None = None
        self._also = {name: locations.library_folder(name) for name in settings.library.also}
        self._also = {name: folder for name, folder in self._also.items() if folder != self._library_folder}
        self._asking: _Reader[Library | Shelf] = _Reader(self._open_shelf if self._also else self._open_reader)
        self._browsing: _Reader[Library] = _Reader(self._open_reader)
        self._viewing: _Reader[Shelf] | None = _Reader(self._open_shelf) if self._also else None

    # ------------------------------------------------------------ asking

    def ask(
        self,
        question: str,
        *,
        history: Sequence[Turn] = (),
        where: Filter | None = None,
        unfinished: Unfinished | None = None,
        cancelled: CancelCheck = never,
    ) -> Iterator[AskEvent]:
        """Answers one question from the documents of ``where``; the events come as the stages end. With ``unfinished``
        the answer to it that stopped goes on where it ended. A trace of it is kept.

        Raises EdgeragError.
        """
        began = time.perf_counter()
        from edgerag.ask.pipeline import ask
        from edgerag.ask.plan import read_question
        from edgerag.index.right_of_way import asking

        read_question(question)  # what is wrong with the question itself is said first
        if self.settings.models.chat and self._own_models and self._has_model:
            self.catalog.find("chat", self.settings.models.chat)  # one asked for by name must be there
        with self._tuning.at_work() if self._tunes else nullcontext(), self._asking.use() as library:
            self._begin(library)
            self._states().begin()
            self._tokens().begin()
            self.warm()
            forecasts, generation = self.forecasts, self.settings.generation
            retrieval, note = forecasts.within_target(self.settings.retrieval, generation)
            answering = partial(
                ask,
                question,
                library=library,
                embedder=self._embedder,
                generator=self._generator,
                retrieval=retrieval,
                generation=generation,
                history=history,
                where=where,
                second_look=None if retrieval.second_look == "off" else self._second_look(),
                unfinished=unfinished,
                cancelled=cancelled,
            )
            events = self._recorder.asked(answering, began=began)
            events = forecasts.watched(events, retrieval=retrieval, generation=generation, note=note)
            events = self._with_notes(events, library, where)
            with asking(self._library_folder):  # only until there is something to see: an answer takes long
                for event in events:
                    yield event
                    if isinstance(event, HitsFound):
                        break
            yield from events

    def check_filter(self, where: Filter) -> None:
        """Raises UsageError when no document could fit it, LibraryMissing."""
        if self._viewing is None:
            with self._browsing.use() as library:
                library.check_filter(where)
        else:
            with self._viewing.use() as shelf:
                shelf.begin()
                shelf.check_filter(where)

    def search(self, query: str, *, limit: int, where: Filter | None = None) -> SearchResult:
        """The best hits for a query among the documents of ``where``. Raises EdgeragError."""
        from edgerag.ask.pipeline import search
        from edgerag.ask.plan import read_question
        from edgerag.index.right_of_way import asking

        read_question(query)
        with self._asking.use() as library:
            self._begin(library)
            self._embedder.start()
            self._warm_second_look()
            with asking(self._library_folder):
                result = search(
                    query,
                    library=library,
                    embedder=self._embedder,
                    settings=self.settings.retrieval,
                    limit=limit,
                    where=where,
                    second_look=self._second_look(),
                )
            return replace(result, notes=(*result.notes, *self._notes(library, where)))

    def not_asked(self) -> tuple[str, ...]:
        """Of several libraries: what of them the last question could not be asked, in sentences that name them."""
        from edgerag.index.shelf import Shelf

        with self._asking.use() as library:
            return library.left_out if isinstance(library, Shelf) else ()

    def _begin(self, library: Library | Shelf) -> None:
        """Raises EmbedderMismatch if nothing in it was made with the embedder in use, LibraryError."""
        from edgerag.index.shelf import Shelf

        if isinstance(library, Shelf):
            library.begin()
        self._check_embedder(library.identity)
        library.look_at_rest()

    def warm(self) -> None:
        """Starts loading the models in the background."""
        self._recorder.serve()
        self._embedder.start()
        if self._has_model:
            self._generator.start()
        self._warm_second_look()

    # ------------------------------------------------------------ conversations

    @property
    def threads(self) -> ThreadStore:
        """The conversations that are kept. Raises ThreadsError, StorageFull."""
        return self._threads()

    def source_document(self, source: Source) -> ParsedDocument | None:
        """The document of a source as the library has it now, found by its path, or by its number if it was moved;
        None when it is not there. Raises LibraryError."""
        stored = source.hit.chunk
        try:
            with self._library_called(stored.library) as library:
                document = library.document_by_path(stored.path)
                if document is not None:
                    return library.parsed_document(document.id)
                moved = own_id(stored.document_id)
                if not any(document.id == moved for document in library.documents()):
                    return None
                parsed = library.parsed_document(moved)
                return parsed if source.quote in parsed.text else None
        except LibraryMissing:
            return None

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

    def _open_threads(self) -> ThreadStore:
        from edgerag.threads.store import ThreadStore

        return ThreadStore(self.locations.threads_file)

    # ------------------------------------------------------------ the library

    def ingest(
        self,
        paths: Sequence[Path],
        *,
        tags: Sequence[str] = (),
        passwords: Sequence[str] = (),
        changed: Collection[str] | None = None,
        withheld: Collection[str] = (),
        prune: bool = False,
        ocr_again: bool = False,
        cancelled: CancelCheck = never,
    ) -> Iterator[IngestEvent]:
        """Reads documents into the library, making it if there is none, and gives them ``tags``. The passwords are
        tried on protected files, and kept nowhere. With ``changed`` only these absolute paths under ``paths`` are
        looked at; ``withheld`` are never read. With ``prune`` a named folder in which nothing is left
        loses its documents. With ``ocr_again`` what OCR can read is read again where other settings of it held then.

        Raises EdgeragError.
        """
        from edgerag.index.tags import normal_tag
        from edgerag.ingest.pipeline import ingest

        names = [normal_tag(tag) for tag in tags]
        self._recorder.serve()
        if changed is None:
            _check_there(paths)
        self._refuse_other_embedder()
        with self.making() as (library, embedder):
            reading = partial(
                ingest,
                paths,
                library=library,
                embedder=embedder,
                settings=self.settings.ingest,
                chunks=self.settings.chunks,
                tags=names,
                passwords=passwords,
                changed=changed,
                withheld=withheld,
                prune=prune,
                ocr_again=ocr_again,
                cancelled=cancelled,
            )
            for event in self._recorder.ingested(reading):
                yield _with_trouble(event, embedder.made())

    def watch(
        self,
        paths: Sequence[Path],
        *,
        tags: Sequence[str] = (),
        passwords: Sequence[str] = (),
        withheld: Collection[str] = (),
        prune: bool = False,
        ocr_again: bool = False,
        cancelled: CancelCheck = never,
    ) -> Iterator[WatchEvent]:
        """As :meth:`ingest`, then again what changes under ``paths``, until ``cancelled()``; the library is held only
        while something is read. Each ingest ends with IngestDone.

        Raises EdgeragError.
        """
        from edgerag.ingest.ignore import Selection
        from edgerag.ingest.watch import follow

        def run(changed: Collection[str] | None) -> Iterator[IngestEvent]:
            return self.ingest(
                paths,
                tags=tags,
                passwords=passwords,
                changed=changed,
                withheld=withheld,
                prune=prune,
                ocr_again=ocr_again,
                cancelled=cancelled,
            )

        _check_there(paths)
        yield from follow(
            paths,
            run=run,
            own=self._library_folder,
            selection=Selection.of(self.settings.ingest),
            withheld=withheld,
            cancelled=cancelled,
        )

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Removes documents, named by path, by a folder above them, or as ``#12``; gives what was removed.

        Raises UsageError when a name fits no document; then nothing is removed.
        """
        with self._open_writer() as library:
            chosen = self._named(library, paths)
            library.remove_documents([document.id for document in chosen])
            # Joining what is left can take long: the next ingest does it, or `library compact`.
            library.seal(merge=False)
        return chosen

    def tag(self, paths: Sequence[str], *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> list[Document]:
        """Gives tags to documents and takes tags from them, named as for :meth:`remove`.

        Gives the documents as they are then. Raises UsageError when a name fits no document, or for what can be
        no tag; then nothing is changed.
        """
        from edgerag.index.tags import normal_tag

        added, removed = [normal_tag(tag) for tag in add], [normal_tag(tag) for tag in remove]
        with self._open_writer() as library:
            ids = [document.id for document in self._named(library, paths)]
            library.tag_documents(ids, added)
            library.untag_documents(ids, removed)
            return [library.document(document_id) for document_id in ids]

    def _named(self, library: Library, names: Sequence[str]) -> list[Document]:
        """The documents of those names, each once. Raises UsageError for a name that fits none."""
        documents = library.documents()
        chosen: dict[int, Document] = {}
        for name in names:
            found = _matching(documents, name)
            if not found:
                raise UsageError(
                    f"No document {name!r} in library {self.settings.library.name!r}.",
                    remedy="`edgerag status --files` lists them.",
                )
            chosen.update((document.id, document) for document in found)
        return list(chosen.values())

    def compact_library(
        self, *, progress: Callable[[MergeProgress], None], cancelled: CancelCheck = never
    ) -> MergeReport:
        """Joins the segments of the index into as few as the free memory allows. Readers go on meanwhile.

        Raises EdgeragError.
        """
        with self._open_writer() as library:
            return library.compact(progress=progress, cancelled=cancelled)

    def reembed_price(self, name: str = "") -> ReembedPrice:
        """What changing the library over takes, to the embedder of that name or the settings' one. Changes nothing.

        Raises EdgeragError.
        """
        from edgerag.changeover import identity_of, refuse_same

        with self._browsing.use() as library:
            model = self._changeover.wanted(library.identity, name)
            refuse_same(library, identity_of(model))
            return self._changeover.price(library, model)

    def reembed(self, name: str = "", *, cancelled: CancelCheck = never) -> Iterator[ReembedEvent]:
        """Changes the library over to the embedder of that name, or the settings' one; the last event is ReembedDone.
        Asking goes on meanwhile with the old one. Raises EdgeragError."""
        from edgerag.changeover import check_room, refuse_same
        from edgerag.ingest.reembed import reembed

        with self._open_writer() as library, self._new_embedder(library, name) as (identity, embedder):
            refuse_same(library, identity)
            check_room(library, identity)
            yield from reembed(library, identity, embedder=embedder, settings=self.settings.ingest, cancelled=cancelled)

    @contextmanager
    def _new_embedder(self, library: Library, name: str) -> Iterator[tuple[EmbedderIdentity, Supplier[Embedder]]]:
        """The embedder that the library is to have, loaded when it is first asked for."""
        from edgerag.changeover import identity_of

        if not self._own_models:
            yield self._embedder().identity, self._embedder
            return
        model = self._changeover.wanted(library.identity, name)
        self._settle_engine()
        with self._changeover.embedder(model) as embedder:
            yield identity_of(model), embedder

    def discard_reembedding(self) -> bool:
        """Deletes what an unfinished change to another embedder has made; False when there is nothing."""
        with self._open_writer() as library:
            return library.discard_reembedding()

    def making_hint(self) -> str:
        """How the library in use is made."""
        return _making_hint(self.settings.library.name)

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

    def verify_library(self) -> list[Finding]:
        """Checks the database, every block, and their agreement. Raises LibraryMissing."""
        with self._browsing.use() as library:
            return library.verify()

    # ------------------------------------------------------------ leaving, arriving, mending

    def export_library(self, name: str, target: Path, *, progress: Callable[[int, int], None]) -> Manifest:
        """Writes the library called ``name``, as of now, to one new file. Raises LibraryError, StorageFull."""
        from edgerag.index.travel import leave

        folder = self.locations.library_folder(name)
        if not is_there(folder):
            raise self._missing(name)
        return leave(folder, target, name=folder.name, progress=progress)

    def import_library(self, source: Path, name: str, *, progress: Callable[[int, int], None]) -> tuple[str, Manifest]:
        """Makes a new library of such a file, called ``name``, or as it was called; the name that it has now.

        Raises LibraryError, StorageFull, UsageError for a name that is none.
        """
        from edgerag.index.travel import arrive, manifest_of

        name = name or safe_library_name(manifest_of(source).library)
        return name, arrive(source, self.locations.library_folder(name), progress=progress)

    def repair_library(self) -> tuple[DatabaseRepair, list[SegmentRescue]]:
        """Mends what can be of the library. Raises LibraryError where too little of it can be read, StorageFull."""
        from edgerag.index.repair import repair_database

        if not is_there(self._library_folder):
            raise self._missing(self.settings.library.name)
        self._browsing.close()
        database = repair_database(self._library_folder)
        with self._open_writer() as library:
            rescued = library.rescue()
            library.seal()
        return database, rescued

    # ------------------------------------------------------------ changed settings

    def adopt(self, settings: Settings) -> None:
        """From the next question and the next ingest on these settings hold; waits until an answer that is being
        written is done. A chat model that they open otherwise is given back, and loaded when it is next needed.

        What is opened once (``Setting.holds`` is "after a restart") stays as it was opened.
        """
        with self._asking.held():
            before, self.settings = self.settings, felt_now(self.settings, settings)
            self.__dict__.pop("_changeover", None)
            names = {f"{section}.{key}" for section, key in _differences(before, self.settings)}
            if names & RELOADING:
                self._give_generator_back()
            if "models.chat" in names and self._tunes:
                self._tuning.close()  # of the other model
                self.__dict__.pop("_tuning", None)
                self._tuning.wait()

    def _give_generator_back(self) -> None:
        """The next question loads it. Only while nobody is answered."""
        used, self._generator = self._generator, Supplier(self._make_generator)
        used.discard()

    # ------------------------------------------------------------ for measuring

    def over(self, folder: Path) -> Session:
        """A session of its own over the library in ``folder``, with these settings and models."""
        return Session(
            replace(
                self.settings,
                library=replace(self.settings.library, name=str(folder)),
                trace=TraceSettings(keep=0),  # what is measured is nobody's question
                metrics=MetricsSettings(),
            ),
            self.locations,
            embedder=None if self._own_models else self._embedder,
            generator=None if self._own_models else self._generator,
            reranker=None if self._own_models else self._reranker,
        )

    @contextmanager
    def subject(self) -> Iterator[Subject]:
        """The parts of the ask flow over this library, to be looked at stage by stage. Raises EdgeragError."""
        from edgerag.measure.eval.stages import Subject

        with self._browsing.use() as library:
            self._begin(library)
            self._states().begin()
            self._tokens().begin()
            yield Subject(
                library=library,
                embedder=self._embedder,
                generator=self._generator,
                # What is found must not depend on how busy the machine is.
                retrieval=replace(self.settings.retrieval, vector_deadline_ms=0, second_look_ms=0),
                generation=self.settings.generation,
                second_look=self._second_look(),
            )

    @contextmanager
    def making(self) -> Iterator[tuple[Library, Supplier[Embedder]]]:
        """The library, made if there is none and open for writing, and what gives the embedder of many passages.

        Raises EdgeragError.
        """
        from edgerag.index.library import open_library

        with (
            open_library(
                self._library_folder,
                mode="write",
                residency=self._residency(),
                identity=self.embedder_identity(),
                seal_settings=self._seal_settings(),
                kv_sink=self._keep_states_true,
            ) as library,
            self._bulk_embedder(library.give_way) as embedder,
        ):
            yield library, embedder

    # ------------------------------------------------------------ models and machine

    @cached_property
    def catalog(self) -> Catalog:
        from edgerag.engine.catalog import Catalog

        return Catalog(self.locations.models, self.locations.manifest_file)

    def models(self) -> list[CatalogEntry]:
        return self.catalog.entries()

    def verify_models(self, names: Sequence[str] = ()) -> list[Finding]:
        """Reads every named model (all, if none is named) to its end and loads it again."""
        return self.catalog.verify(names)

    def provide_models(self, names: Sequence[str] = (), *, report: Callable[[str], None]) -> list[ModelFile]:
        """The named models of the manifest, or its defaults: the one thing that may use a network, through pip.
        ``report`` is told each step. Raises EdgeragError."""
        from edgerag.engine.pull import pull

        return pull(self.catalog, names, report=report)

    def recommend_models(self, *, report: Callable[[str], None]) -> Recommendation:
        """Which models this machine runs fast enough, by a measurement of a moment. Raises EdgeragError."""
        from edgerag.engine.measured_speed import recommend_here
        from edgerag.machine.topology import read_topology

        return recommend_here(
            self.models(),
            threads=self.settings.machine.threads or read_topology().thread_count,
            context_tokens=self.settings.generation.context_tokens,
            report=report,
        )

    def add_model(self, path: Path) -> ModelFile:
        """Takes in a GGUF file, or a sentence-transformers folder. Raises EdgeragError."""
        return self.catalog.add(path)

    def tune_model(
        self, name: str, *, cancelled: CancelCheck = never, report: Callable[[Measurement], None] = lambda _: None
    ) -> Tuning:
        """Measures what runs this chat model fastest here, for a minute at most; what is found is kept. Where the model
        in use is to run otherwise now, the next question loads it anew. Raises EdgeragError."""
        from edgerag.engine.tuning.record import Tunings
        from edgerag.engine.tuning.tune import current, tune

        model, tunings = self.catalog.find("chat", name), Tunings(self.catalog.folder)
        before = current(model, tunings)
        with self._tuning.at_work() if self._tunes else nullcontext():
            tuning = tune(
                model,
                tunings,
                context_tokens=self.settings.generation.context_tokens,
                cancelled=cancelled,
                report=report,
            )
        if name == self.chat_model_name() and (before is None or before.choice != tuning.choice):
            with self._asking.held():
                self._give_generator_back()
        return tuning

    def chat_model_name(self) -> str:
        """The chat model that answers; "" when there is none. Loads and checks nothing: cheap enough to poll."""
        if not self._has_model:
            return ""
        made = self._generator.made()
        if made is not None:
            return made.name
        wanted = self.settings.models.chat
        if os.sep in wanted:
            return Path(wanted).stem
        ready = [entry.name for entry in self.models() if entry.kind == "chat" and entry.state == "ready"]
        return next((name for name in ready if wanted in ("", name)), "")

    @property
    def forecasts(self) -> Forecasts:
        """How long answers of the chat model in use take."""
        from edgerag.forecasts import Forecasts

        name = self.chat_model_name() if self._own_models else ""
        if self._forecasts is None or self._forecasts.model != name:
            self._forecasts = Forecasts(self.locations.home, name)
        return self._forecasts

    def diagnose(self) -> list[Finding]:
        """Everything that helps or hinders on this machine, each with its remedy."""
        from edgerag import advice, doctor

        return [
            advice.load_finding(),
            *doctor.machine_findings(self.settings.machine.threads),
            advice.disk_finding(self.locations.home),
            *doctor.engine_findings(),
            *doctor.model_findings(self.catalog, self.settings.models),
            *advice.tuning_findings(self.catalog, self.settings),
            doctor.offline_finding(),
            doctor.index_finding(),
            doctor.budget_finding(self.settings.memory, self._residency().budget_bytes, self._residency().limitation),
            *doctor.library_findings(self.library_status, self._check_embedder_of_library),
        ]

    def suggestions(self) -> tuple[Suggestion, ...]:
        """Rows of the tuning guide that fit this machine and these settings."""
        from edgerag.advice import suggestions

        return suggestions(self.catalog, self.settings)

    def trace_troubles(self) -> tuple[str, ...]:
        """What kept the traces of this session from being kept, in sentences, each once; waits for the last one."""
        return self._recorder.troubles(wait_s=_TRACE_WAIT_S)

    def _facts_now(self) -> dict[str, int]:
        return {"rag.memory.resident_bytes": self.resident_bytes()}

    def _gauges_now(self) -> dict[str, float]:
        residency = self._residency.made()
        index_bytes = 0 if residency is None else residency.resident_bytes()
        return {"rag_process_resident_bytes": self.resident_bytes(), "rag_index_resident_bytes": index_bytes}

    def resident_bytes(self) -> int:
        from edgerag.machine.memory import resident_bytes

        return resident_bytes()

    def close(self) -> None:
        """Gives back models and files. A model that is still being loaded goes with the process."""
        self._recorder.close()
        if self._tunes:
            self._tuning.close()
        self._asking.close()
        self._browsing.close()
        if self._viewing is not None:
            self._viewing.close()
        makers = (self._embedder, self._reranker, self._generator, self._states, self._tokens, self._threads)
        for part in (maker.made() for maker in makers):
            close = getattr(part, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ------------------------------------------------------------ wiring

    @property
    def _has_model(self) -> bool:
        """Whether a chat model is to answer."""
        return self.settings.generation.mode == "model"

    @cached_property
    def _changeover(self) -> Changeover:
        from edgerag.changeover import Changeover

        return Changeover(self.settings, self.catalog)

    def _library_identity(self) -> EmbedderIdentity | None:
        from edgerag.changeover import library_identity

        return library_identity(self._library_folder)

    def _embedder_model(self) -> ModelFile:
        """The one that the library is searched with; for a library that is not there yet, the wanted one."""
        return self._changeover.searching(self._library_identity())

    def embedder_identity(self) -> EmbedderIdentity:
        """What a library must be made with to be searched here. Raises ModelError."""
        from edgerag.changeover import identity_of

        return identity_of(self._embedder_model()) if self._own_models else self._embedder().identity

    def _open_embedder(self) -> Embedder:
        from edgerag.engine.opening import open_embedding_model

        self._settle_engine()
        return open_embedding_model(self._embedder_model(), machine=self.settings.machine)

    def _refuse_other_embedder(self) -> None:
        """Raises EmbedderMismatch, with what changing over takes, when the settings want another embedder than the
        library has."""
        identity = self._library_identity() if self._own_models else None
        wanted = None if identity is None else self._changeover.difference(identity)
        if wanted is not None:
            with self._browsing.use() as library:
                raise self._changeover.refusal(library, wanted)

    def _other_embedder_note(self, library: Library) -> str:
        return self._changeover.note(library) if self._own_models else ""

    def _notes(self, library: Library | Shelf, where: Filter | None) -> tuple[str, ...]:
        """What to say beside an answer: what was not asked of several libraries; that another embedder is wanted; that
        documents were left out because their language was never told."""
        from edgerag.index.filters import untold_note
        from edgerag.index.shelf import Shelf

        is_by_language = where is not None and where.languages and "unknown" not in where.languages
        untold = untold_note(library.analysed_before_count()) if is_by_language else ""
        traces = self._recorder.troubles()
        if isinstance(library, Shelf):
            return (*library.left_out, *filter(None, [untold, library.damage_note()]), *traces)
        own = (self._other_embedder_note(library), untold, library.damage_note())
        return (*filter(None, own), *traces)

    def _with_notes(
        self, events: Iterator[AskEvent], library: Library | Shelf, where: Filter | None
    ) -> Iterator[AskEvent]:
        """``events``; the last one also says the notes."""
        for event in events:
            if isinstance(event, AnswerDone) and (notes := self._notes(library, where)):
                yield replace(event, answer=replace(event.answer, notes=(*event.answer.notes, *notes)))
            else:
                yield event

    @contextmanager
    def _bulk_embedder(self, between: Callable[[], None]) -> Iterator[Supplier[Embedder]]:
        """What gives the embedder of one ingest, made when it is first asked for; ``between`` two passages it waits."""
        if not self._own_models:
            yield self._embedder
            return
        supplier: Supplier[Embedder] = Supplier(lambda: self._open_bulk_embedder(between))
        try:
            yield supplier
        finally:
            if (close := getattr(supplier.made(), "close", None)) is not None:
                close()

    def _open_bulk_embedder(self, between: Callable[[], None]) -> BulkEmbedder:
        from edgerag.engine.embedder import LlamaEmbedder
        from edgerag.engine.opening import open_bulk_embedder
        from edgerag.engine.tuning.embed_trial import Trials

        base = self._embedder()
        assert isinstance(base, LlamaEmbedder), "only one that was given from outside is another"
        return open_bulk_embedder(
            base,
            self._embedder_model(),
            trials=Trials(self.catalog.folder),
            machine=self.settings.machine,
            backend=self.settings.ingest.embed_with,
            between=between,
            niceness=self.settings.ingest.nice,
        )

    def _open_generator(self) -> Generator:
        from edgerag.ask.prompt import opening_messages
        from edgerag.engine.opening import open_chat_model
        from edgerag.engine.tuning.record import Tunings

        self._settle_engine()
        kv = self.forecasts.kept_states(self.settings.retrieval, self.settings.generation)
        generator = open_chat_model(
            self.catalog.find("chat", self.settings.models.chat),
            tunings=Tunings(self.catalog.folder),
            machine=self.settings.machine,
            generation=replace(self.settings.generation, kv=kv),
            states=self._states(),
            tokens=self._tokens(),
        )
        generator.prepare(opening_messages())
        self._states().sweep()
        return generator

    def _open_reranker(self) -> Reranker:
        """Raises ModelError."""
        by = self.settings.retrieval.second_look
        if by in ("likelihood", "yes_no"):
            from edgerag.ask.chat_judges import Likelihood, YesNo

            generator = self._generator()
            if not hasattr(generator, "weigh"):
                raise ModelWrongKind(f"{generator.name} does not tell how likely a reply is.")
            return (Likelihood if by == "likelihood" else YesNo)(cast("Weighing", generator))
        from edgerag.engine.opening import open_reranking_model

        self._settle_engine()
        model = self.catalog.find("reranker", self.settings.models.reranker)
        return open_reranking_model(model, machine=self.settings.machine)

    def _second_look(self) -> SecondLook | None:
        from edgerag.ask.second_look import SecondLook
        from edgerag.engine.tuning.passage_cost import PassageCosts

        by = self.settings.retrieval.second_look
        if by == "off":
            return None
        costs = PassageCosts(self.catalog.folder, threads=self.settings.machine.threads)
        return SecondLook(by, self._reranker, costs)

    def _warm_second_look(self) -> None:
        if self.settings.retrieval.second_look != "off":
            self._reranker.start()

    def _settle_engine(self) -> None:
        """What holds for the whole process and has to be known before its first model is loaded."""
        from edgerag.engine.opening import use_tuned_waiting
        from edgerag.engine.tuning.record import Tunings

        tunings = Tunings(self.catalog.folder)
        if tunings.is_empty:  # a search or an ingest need not look at the chat model
            return
        with suppress(ModelError):  # without a chat model there is nothing that was tuned
            use_tuned_waiting(self.catalog.find("chat", self.settings.models.chat), tunings)

    def _make_tuning(self) -> BackgroundTuning | None:
        from edgerag.engine.tuning.background import BackgroundTuning

        if self.settings.machine.tune == "off" or not self._has_model:
            return None
        try:
            model = self.catalog.find("chat", self.settings.models.chat)
        except ModelError:
            return None  # who asks is told
        return BackgroundTuning(model, self.catalog.folder, context_tokens=self.settings.generation.context_tokens)

    @cached_property
    def _tuning(self) -> IdleTuning:
        from edgerag.engine.tuning.idle import IdleTuning

        return IdleTuning(self._make_tuning)

    def tune_when_idle(self) -> None:
        """From now on the chat model is tuned while nobody asks anything, until that is done or the session closes."""
        self._tunes = True
        self._tuning.wait()

    def _make_states(self) -> StateStore:
        from edgerag.engine.states.store import StateStore

        return StateStore(
            self._library_folder / _STATES_FOLDER,
            ram_bytes=self.settings.generation.kv_memory,
            disk_bytes=self._kv_disk_bytes(),
        )

    def _make_tokens(self) -> TokenStore:
        from edgerag.index.token_store import MOST_BYTES, TokenStore

        return TokenStore(self._library_folder / _STATES_FOLDER, most_bytes=min(MOST_BYTES, self._kv_disk_bytes()))

    def _kv_disk_bytes(self) -> int:
        """What may lie beside the library: where that is not there, there is no place. What is made of several
        libraries would lie in the folder of one, and stay there when another drops a document."""
        return self.settings.generation.kv_disk if is_there(self._library_folder) and not self._also else 0

    def _keep_states_true(self, changes: KvChanges) -> bool:
        """What commits did to documents is done to the states and tokens that were made of them."""
        states = self._states()
        tokens_done = self._tokens().drop(changes.deprecated, documents=changes.dropped, everything=changes.everything)
        if changes.everything:
            return states.drop_all() and tokens_done
        states.deprecate(changes.deprecated)
        return states.drop(labels=changes.dropped) and tokens_done

    def _open_reader(self) -> Library:
        return self._open_for_reading(self.settings.library.name, self._library_folder, self._keep_states_true)

    def _open_shelf(self) -> Shelf:
        """All libraries that are asked together, none of them opened yet."""
        from edgerag.index.shelf import Shelf

        openers: dict[str, Callable[[], Library]] = {self.settings.library.name: self._open_reader}
        # States of documents of the others are never on the disk, so that there is nothing to keep true.
        for name, folder in self._also.items():
            openers[name] = partial(self._open_for_reading, name, folder, None)
        return Shelf(openers, in_use=self._embedder_identity_or_none)

    def _open_for_reading(self, name: str, folder: Path, kv_sink: KvSink | None) -> Library:
        from edgerag.index.library import open_library

        if not is_there(folder):
            raise self._missing(name)
        open_it = partial(open_library, folder, residency=self._residency(), kv_sink=kv_sink)
        try:
            return open_it(mode="read")
        except LibraryOutdated:
            # Nobody should have to know that it was written by an older program: opening it for writing brings it up.
            try:
                open_it(mode="write", seal_settings=self._seal_settings()).close()
            except StorageFull:  # on a disk that cannot be written
                return open_it(mode="read", as_copy=True)
            return open_it(mode="read")

    def _open_writer(self) -> Library:
        """Opens a library that is there for writing."""
        from edgerag.index.library import open_library

        if not is_there(self._library_folder):
            raise self._missing(self.settings.library.name)
        return open_library(
            self._library_folder,
            mode="write",
            residency=self._residency(),
            seal_settings=self._seal_settings(),
            kv_sink=self._keep_states_true,
        )

    def _seal_settings(self) -> SealSettings:
        from edgerag.index.segments import SealSettings

        return SealSettings(vector_type=self.settings.library.vectors)

    def _make_residency(self) -> Residency:
        from edgerag.index.hnsw.residency import Residency

        return Residency(self.budget_bytes())

    def budget_bytes(self) -> int:
        """``memory.budget`` in bytes, as of now where it is a share of the free memory."""
        from edgerag.machine.memory import available_bytes

        return self.settings.memory.budget_bytes(available_bytes())

    def _missing(self, name: str) -> LibraryMissing:
        return LibraryMissing(f"There is no library {name!r} yet.", remedy=_making_hint(name))

    def _check_embedder(self, identity: EmbedderIdentity) -> None:
        """Raises EmbedderMismatch if the embedder that made this library is not here, and another one is."""
        loaded = self._embedder.made()
        if self._own_models and loaded is not None and not loaded.identity.is_same_as(identity):
            # Another process has changed the library over since this one loaded its embedder.
            self._embedder = Supplier(self._open_embedder)
            if (close := getattr(loaded, "close", None)) is not None:
                close()
        in_use = self._embedder_identity_or_none()
        if in_use is not None and not in_use.is_same_as(identity):
            raise EmbedderMismatch(
                f"Library {self.settings.library.name!r} was made with the embedder {identity.name!r}, "
                f"but {in_use.name!r} is in use.",
                remedy=f"Provide {identity.name!r} (edgerag models list), change the library over "
                "(edgerag library reembed), or ingest into another one (--library NAME).",
            )

    def _embedder_identity_or_none(self) -> EmbedderIdentity | None:
        from edgerag.errors import ModelError

        try:
            return self.embedder_identity()
        except ModelError:
            return None  # asking goes on by keyword and says so

    def _check_embedder_of_library(self) -> None:
        with self._browsing.use() as library:
            self._check_embedder(library.identity)


def _differences(before: Settings, after: Settings) -> Iterator[tuple[str, str]]:
    """Section and key of what is not the same in both."""
    for section in fields(Settings):
        old, new = getattr(before, section.name), getattr(after, section.name)
        yield from ((section.name, key.name) for key in fields(old) if getattr(old, key.name) != getattr(new, key.name))


def _making_hint(name: str) -> str:
    option = "" if name == LibrarySettings().name else f"--library {name} "
    return f"Make it with `edgerag {option}ingest FOLDER`."


class _Reader(Generic[ReadT]):
    """A library for reading, or several, opened on first use; one thread at a time."""

    def __init__(self, open_reader: Callable[[], ReadT]) -> None:
        self._open_reader = open_reader
        self._lock = threading.RLock()
        self._library: ReadT | None = None

    @contextmanager
    def use(self) -> Iterator[ReadT]:
        with self._lock:
            if self._library is not None and not self._library.is_current():
                self._library.close()  # it was given to another embedder
                self._library = None
            if self._library is None:
                self._library = self._open_reader()
            yield self._library

    @contextmanager
    def held(self) -> Iterator[None]:
        """While open nobody reads; waits for who does."""
        with self._lock:
            yield

    def close(self) -> None:
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None


def _check_there(paths: Sequence[Path]) -> None:
    """Raises UsageError for a path of which there is nothing."""
    for path in paths:
        if not is_there(path):
            raise UsageError(f"There is no file or folder {str(path)!r}.")


def _with_trouble(event: IngestEvent, embedder: Embedder | None) -> IngestEvent:
    """``event``; the last one also says what kept the embedder from working as it was meant to."""
    trouble = getattr(embedder, "trouble", "")
    return replace(event, notes=(*event.notes, trouble)) if isinstance(event, IngestDone) and trouble else event


def document_number(name: str) -> int | None:
    """12 for ``#12``; None for what is a path. More digits than SQLite's ids can have are no number."""
    return int(name[1:]) if _NUMBER.fullmatch(name) else None


def _matching(documents: Sequence[Document], name: str) -> list[Document]:
    number = document_number(name)
    if number is not None:
        return [document for document in documents if document.id == number]
    path = user_path(name)
    inside = f"{path}{MEMBER_MARK}"
    return [d for d in documents if Path(d.path) == path or path in Path(d.path).parents or d.path.startswith(inside)]
