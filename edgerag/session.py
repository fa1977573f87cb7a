"""Settings become opened parts here, and only here: every user interface works through a Session.

Models are loaded when first needed and at most once; :meth:`Session.warm` starts that in the
background, so that reading the index and loading weights overlap. The library is opened twice for
reading, once for asking and once for browsing, so that a list of documents never waits for an
answer; ingest opens its own writer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from edgerag.config import LibrarySettings, Settings
from edgerag.errors import EmbedderMismatch, LibraryMissing, UsageError
from edgerag.locations import Locations, is_there, user_path
from edgerag.types import (
    AskEvent,
    CancelCheck,
    Document,
    Embedder,
    EmbedderIdentity,
    Finding,
    Generator,
    IngestEvent,
    LibraryStatus,
    ModelFile,
    ParsedDocument,
    SearchResult,
    Turn,
)

if TYPE_CHECKING:
    from edgerag.engine.catalog import Catalog, CatalogEntry
    from edgerag.index.library import Library

T = TypeVar("T")


def never() -> bool:
    """The cancel check of a request that nobody can cancel."""
    return False


class Supplier(Generic[T]):
    """Makes one thing, once, in whichever thread asks first; a failure is not remembered."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._future: Future[T] | None = None

    def start(self) -> None:
        """Begins making it in a background thread, unless it is made or being made."""
        future, owned = self._claim()
        if owned:
            # A daemon: a program that wants to exit does not wait for a model to load.
            threading.Thread(target=self._run, args=(future,), name="supplier", daemon=True).start()

    def __call__(self) -> T:
        future, owned = self._claim()
        if owned:
            self._run(future)
        return future.result()

    def made(self) -> T | None:
        """The thing if it is there already; never waits."""
        future = self._future
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result()

    def _claim(self) -> tuple[Future[T], bool]:
        with self._lock:
            future = self._future
            if future is not None and not (future.done() and future.exception() is not None):
                return future, False
            future = self._future = Future()
            return future, True

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._make())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asks for the result
            future.set_exception(error)


class Session:
    """One user at work with one library.

    ``embedder`` and ``generator`` replace the models named in the settings (tests and embedding the
    program elsewhere); they are made at most once.
    """

    def __init__(
        self,
        settings: Settings,
        locations: Locations,
        *,
        embedder: Callable[[], Embedder] | None = None,
        generator: Callable[[], Generator] | None = None,
    ) -> None:
        self.settings = settings
        self.locations = locations
        self._library_folder = locations.library_folder(settings.library.name)
        self._own_models = embedder is None
        self._embedder: Supplier[Embedder] = Supplier(embedder or self._open_embedder)
        self._generator: Supplier[Generator] = Supplier(generator or self._open_generator)
        self._asking = _Reader(self._open_reader)
        self._browsing = _Reader(self._open_reader)

    # ------------------------------------------------------------ asking

    def ask(self, question: str, *, history: Sequence[Turn] = (), cancelled: CancelCheck = never) -> Iterator[AskEvent]:
        """Answers one question; the events come as the stages end. Raises EdgeragError."""
        from edgerag.ask.pipeline import ask
        from edgerag.ask.plan import read_question

        read_question(question)  # what is wrong with the question itself is said first
        if self.settings.models.chat and self._own_models:
            self.catalog.find("chat", self.settings.models.chat)  # one asked for by name must be there
        with self._asking.use() as library:
            self._check_embedder(library.identity)
            self.warm()
            yield from ask(
                question,
                library=library,
                embedder=self._embedder,
                generator=self._generator,
                retrieval=self.settings.retrieval,
                generation=self.settings.generation,
                history=history,
                cancelled=cancelled,
            )

    def search(self, query: str, *, limit: int) -> SearchResult:
        """The best hits for a query. Raises EdgeragError."""
        from edgerag.ask.pipeline import search
        from edgerag.ask.plan import read_question

        read_question(query)
        with self._asking.use() as library:
            self._check_embedder(library.identity)
            self._embedder.start()
            return search(
                query, library=library, embedder=self._embedder, settings=self.settings.retrieval, limit=limit
            )

    def warm(self) -> None:
        """Starts loading the models in the background."""
        self._embedder.start()
        self._generator.start()

    # ------------------------------------------------------------ the library

    def ingest(self, paths: Sequence[Path], *, cancelled: CancelCheck = never) -> Iterator[IngestEvent]:
        """Reads documents into the library, making it if there is none. Raises EdgeragError."""
        from edgerag.index.library import open_library
        from edgerag.ingest.pipeline import ingest

        for path in paths:
            if not is_there(path):
                raise UsageError(f"There is no file or folder {str(path)!r}.")
        with open_library(
            self._library_folder,
            mode="write",
            budget_bytes=self.settings.memory.budget,
            identity=self._embedder_identity(),
        ) as library:
            yield from ingest(
                paths,
                library=library,
                embedder=self._embedder,
                settings=self.settings.ingest,
                chunks=self.settings.chunks,
                cancelled=cancelled,
            )

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Removes documents, named by path, by a folder above them, or as ``#12``; gives what was removed.

        Raises UsageError when a name fits no document; then nothing is removed.
        """
        from edgerag.index.library import open_library

        if not is_there(self._library_folder):
            raise self._missing()
        with open_library(self._library_folder, mode="write", budget_bytes=self.settings.memory.budget) as library:
            documents = library.documents()
            chosen: dict[int, Document] = {}
            for path in paths:
                found = _matching(documents, path)
                if not found:
                    raise UsageError(
                        f"No document {path!r} in library {self.settings.library.name!r}.",
                        remedy="`edgerag status --files` lists them.",
                    )
                chosen.update((document.id, document) for document in found)
            library.remove_documents(list(chosen))
            library.seal()
        return list(chosen.values())

    def making_hint(self) -> str:
        """How the library in use is made."""
        name = self.settings.library.name
        option = "" if name == LibrarySettings().name else f"--library {name} "
        return f"Make it with `edgerag {option}ingest FOLDER`."

    def documents(self) -> list[Document]:
        """The documents of the library; none when there is no library yet."""
        try:
            with self._browsing.use() as library:
                return library.documents()
        except LibraryMissing:
            return []

    def parsed_document(self, document_id: int) -> ParsedDocument:
        with self._browsing.use() as library:
            return library.parsed_document(document_id)

    def library_status(self) -> LibraryStatus | None:
        """The library as it stands; None when there is none yet."""
        try:
            with self._browsing.use() as library:
                return library.status()
        except LibraryMissing:
            return None

    def verify_library(self) -> list[Finding]:
        with self._browsing.use() as library:
            return library.verify()

    # ------------------------------------------------------------ models and machine

    @cached_property
    def catalog(self) -> Catalog:
        from edgerag.engine.catalog import Catalog

        return Catalog(self.locations.models, self.locations.manifest_file)

    def models(self) -> list[CatalogEntry]:
        return self.catalog.entries()

    def chat_model_name(self) -> str:
        """The chat model that answers; "" when there is none. Loads and checks nothing: cheap enough to poll."""
        made = self._generator.made()
        if made is not None:
            return made.name
        wanted = self.settings.models.chat
        if os.sep in wanted:
            return Path(wanted).stem
        ready = [entry.name for entry in self.models() if entry.kind == "chat" and entry.state == "ready"]
        return next((name for name in ready if wanted in ("", name)), "")

    def diagnose(self) -> list[Finding]:
        """Everything that helps or hinders on this machine, each with its remedy."""
        from edgerag import doctor

        return [
            *doctor.machine_findings(self.settings.machine.threads),
            *doctor.engine_findings(),
            *doctor.model_findings(self.catalog, self.settings.models),
            *doctor.library_findings(self.library_status, self._check_embedder_of_library),
        ]

    def resident_bytes(self) -> int:
        from edgerag.machine.memory import resident_bytes

        return resident_bytes()

    def close(self) -> None:
        """Gives back models and files. A model that is still being loaded goes with the process."""
        self._asking.close()
        self._browsing.close()
        for part in (self._embedder.made(), self._generator.made()):
            close = getattr(part, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # ------------------------------------------------------------ wiring

    def _threads(self) -> int:
        from edgerag.machine.topology import read_topology

        return self.settings.machine.threads or read_topology().thread_count

    def _embedder_model(self) -> ModelFile:
        return self.catalog.find("embedder", self.settings.models.embedder)

    def _embedder_identity(self) -> EmbedderIdentity:
        if not self._own_models:
            return self._embedder().identity
        model = self._embedder_model()
        return EmbedderIdentity(
            name=model.name,
            weights_sha256=model.weights_sha256,
            dimension=model.dimension,
            languages=model.languages,
        )

    def _open_embedder(self) -> Embedder:
        from edgerag.engine.embedder import open_embedder

        return open_embedder(self._embedder_model(), threads=self._threads())

    def _open_generator(self) -> Generator:
        from edgerag.engine.generator import open_generator

        model = self.catalog.find("chat", self.settings.models.chat)
        return open_generator(model, context_tokens=self.settings.generation.context_tokens, threads=self._threads())

    def _open_reader(self) -> Library:
        from edgerag.index.library import open_library

        if not is_there(self._library_folder):
            raise self._missing()
        return open_library(self._library_folder, mode="read", budget_bytes=self.settings.memory.budget)

    def _missing(self) -> LibraryMissing:
        return LibraryMissing(
            f"There is no library {self.settings.library.name!r} yet.",
            remedy=self.making_hint(),
        )

    def _check_embedder(self, identity: EmbedderIdentity) -> None:
        """Raises EmbedderMismatch if the embedder in use did not make this library."""
        in_use = self._embedder_identity_or_none()
        if in_use is not None and in_use.weights_sha256 != identity.weights_sha256:
            raise EmbedderMismatch(
                f"Library {self.settings.library.name!r} was made with the embedder {identity.name!r}, "
                f"but {in_use.name!r} is in use.",
                remedy=f"Set models.embedder to {identity.name!r}, or ingest into another library (--library NAME).",
            )

    def _embedder_identity_or_none(self) -> EmbedderIdentity | None:
        from edgerag.errors import ModelError

        try:
            return self._embedder_identity()
        except ModelError:
            return None  # asking goes on by keyword and says so

    def _check_embedder_of_library(self) -> None:
        with self._browsing.use() as library:
            self._check_embedder(library.identity)


class _Reader:
    """A library for reading, opened on first use; one thread at a time."""

    def __init__(self, open_reader: Callable[[], Library]) -> None:
        self._open_reader = open_reader
        self._lock = threading.RLock()
        self._library: Library | None = None

    @contextmanager
    def use(self) -> Iterator[Library]:
        with self._lock:
            if self._library is None:
                self._library = self._open_reader()
            yield self._library

    def close(self) -> None:
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None


def _matching(documents: Sequence[Document], name: str) -> list[Document]:
    if name.startswith("#") and name[1:].isdigit():
        return [document for document in documents if document.id == int(name[1:])]
    path = user_path(name)
    return [d for d in documents if Path(d.path) == path or path in Path(d.path).parents]
