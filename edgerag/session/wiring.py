"""Settings become opened parts here, and only here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

from edgerag.config import LibrarySettings, Settings
from edgerag.encryption.key_record import is_encrypted
from edgerag.errors import (
    EmbedderMismatch,
    LibraryError,
    LibraryMissing,
    LibraryOutdated,
    LibraryReplaced,
    ModelError,
    ModelWrongKind,
    StorageFull,
)
from edgerag.locations import Locations, is_there
from edgerag.machine.mounts import journal_for
from edgerag.session.readers import Reader
from edgerag.session.unlocking import AskPassphrase, Keys
from edgerag.session.upgrading import Upgrading
from edgerag.supplier import Supplier
from edgerag.telemetry.recorder import Recorder
from edgerag.types import (
    Embedder,
    EmbedderIdentity,
    Generator,
    KvChanges,
    KvSink,
    ModelFile,
    Reranker,
    Weighing,
)

if TYPE_CHECKING:
    from edgerag.changeover import Changeover
    from edgerag.encryption.keys import LibraryKey
    from edgerag.engine.catalog import Catalog, CatalogEntry
    from edgerag.engine.states.store import StateStore
    from edgerag.engine.tuning.background import BackgroundTuning
    from edgerag.engine.tuning.idle import IdleTuning
    from edgerag.forecasts import Forecasts
    from edgerag.index.hnsw.residency import Residency
    from edgerag.index.library import Library
    from edgerag.index.segments import SealSettings
    from edgerag.index.shelf import Shelf
    from edgerag.index.token_store import TokenStore
    from edgerag.telemetry.ring import TraceRing
    from edgerag.threads.store import ThreadStore

PRIVATE_FOLDER = "private"  # in the folder of an encrypted library: its conversations and traces
_STATES_FOLDER = "kv"  # in the folder of the library
_TRIES = 3  # of what another process replaced meanwhile
T = TypeVar("T")


class Wiring:
    """The parts of one session, each made when it is first needed."""

    def __init__(
        self,
        settings: Settings,
        locations: Locations,
        *,
        embedder: Callable[[], Embedder] | None = None,
        generator: Callable[[], Generator] | None = None,
        reranker: Callable[[], Reranker] | None = None,
        ask_passphrase: AskPassphrase | None = None,
    ) -> None:
        self.settings = settings
        self.locations = locations
        self._library_folder = locations.library_folder(settings.library.name)
        self._ask_passphrase = ask_passphrase
        self._keys = Keys(lambda: self.settings.library.key_file, ask_passphrase)
        self.upgrading = Upgrading()
        self._own_models = embedder is None
        self._embedder: Supplier[Embedder] = Supplier(embedder or self._open_embedder)
        self._make_generator = generator or self._open_generator
        self._generator: Supplier[Generator] = Supplier(self._make_generator)
        self._reranker: Supplier[Reranker] = Supplier(reranker or self._open_reranker)
        self._residency: Supplier[Residency] = Supplier(self._make_residency)
        self._states: Supplier[StateStore] = Supplier(self._make_states)
        self._tokens: Supplier[TokenStore] = Supplier(self._make_tokens)
        self._threads: Supplier[ThreadStore] = Supplier(self._open_threads)
        self._finding_threads = threading.Lock()
        self._recorder = Recorder(
            self._open_traces,
            lambda: self.settings,
            set_aside=self._set_traces_aside,
            place=self._traces_place,
            facts=self._facts_now,
            gauges=self._gauges_now,
        )
        self._tunes = False
        self._folder_seen: tuple[int, int] | None = None
        self._forecasts: Forecasts | None = None
        self._also = {name: locations.library_folder(name) for name in settings.library.also}
        self._also = {name: folder for name, folder in self._also.items() if folder != self._library_folder}
        self._asking: Reader[Library | Shelf] = Reader(self._open_shelf if self._also else self._open_reader)
        self._browsing: Reader[Library] = Reader(self._open_reader)
        self._viewing: Reader[Shelf] | None = Reader(self._open_shelf) if self._also else None

    def _open_threads(self) -> ThreadStore:
        from edgerag.threads.store import ThreadStore

        path, key = self._threads_belong()
        return ThreadStore(path, key=key, belongs=self._threads_belong)

    def _threads_belong(self) -> tuple[Path, LibraryKey | None]:
        """The file that conversations belong in now, and its key. Raises LibraryLocked, StorageFull."""
        place = self._private_place()
        if place is None:
            return self.locations.threads_file, None
        key = self._keys.of(place)
        return _made(place) / self.locations.threads_file.name, key

    def _threads_now(self) -> ThreadStore:
        """The store of that file. Raises ThreadsError, StorageFull, LibraryLocked."""
        with self._finding_threads:
            made = self._threads.made()
            if made is not None and made.path != self._threads_belong()[0]:
                made.close()  # who holds it is told that it is another place
                self._threads = Supplier(self._open_threads)
            return self._threads()

    def traces(self) -> TraceRing:
        """The traces that are kept, for reading. Raises TracesError, LibraryLocked, StorageFull."""
        from edgerag.telemetry.ring import TraceRing

        place = self._private_place()
        return TraceRing(self._traces_file(place), key=None if place is None else self._keys.of(place))

    def _open_traces(self) -> TraceRing:
        """For the thread that keeps them, which asks nobody."""
        from edgerag.telemetry.ring import TraceRing

        place = self._private_place()
        file = self._traces_file(place)
        key = None
        if place is not None:
            _made(place)
            key = self._keys.known(place)
        return TraceRing(file, writing=journal_for(file), key=key)

    def _set_traces_aside(self) -> Path:
        from edgerag.telemetry.ring import set_aside

        return set_aside(self._traces_file(self._private_place()))

    def _traces_place(self) -> object:
        """Another value where traces belong in another file than before."""
        place = self._private_place()
        file = self._traces_file(place)
        try:
            stat = file.stat()
        except OSError:
            return file, None
        return file, place is not None and is_encrypted(place), stat.st_dev, stat.st_ino

    def _traces_file(self, place: Path | None) -> Path:
        """In the private folder of the library in ``place``, or in the home."""
        name = self.locations.traces_file.name
        return self.locations.traces_file if place is None else place / PRIVATE_FOLDER / name

    def _private_place(self) -> Path | None:
        """The folder of the library that conversations and traces are kept in, under its key: of those that are asked
        the first that is encrypted; where none is, the first that was. None: they lie in the home."""
        folders = (self._library_folder, *self._also.values())
        encrypted = next(filter(is_encrypted, folders), None)
        return encrypted or next((each for each in folders if is_there(each / PRIVATE_FOLDER)), None)

    def unlock(self) -> None:
        """Asks for the key of the library in use before anything is opened, where it has one. Raises LibraryLocked."""
        self._own_key()

    def unlock_all(self) -> None:
        """As :meth:`unlock`, and for the keys of the libraries that are asked together with it; one that stays locked
        is left out of questions. From then on nobody is asked any more: the terminal is about to belong to a screen."""
        self.unlock()
        for name, folder in self._also.items():
            with suppress(LibraryError):  # each question says what is wrong with it
                self._keys.of(folder, name=name)
        self._keys.ask_nobody()

    def making_hint(self) -> str:
        """How the library in use is made."""
        return _making_hint(self.settings.library.name)

    def _give_generator_back(self) -> None:
        """The next question loads it. Only while nobody is answered."""
        used, self._generator = self._generator, Supplier(self._make_generator)
        used.discard()

    def _follow_library(self) -> None:
        """Lets go of all that is open of a library in whose place another folder lies: another process has encrypted
        it, or taken that away, and what is kept beside it would be written as it was before."""
        try:
            stat = self._library_folder.stat()
        except OSError:
            return  # whoever opens it is told
        seen, self._folder_seen = self._folder_seen, (stat.st_dev, stat.st_ino)
        if seen in (None, self._folder_seen):
            return
        with self._asking.held(), self._browsing.held():  # nobody is answered
            for reader in (self._asking, self._browsing, self._viewing):
                if reader is not None:
                    reader.close()
            self._give_generator_back()
            for part in (self._states.made(), self._tokens.made()):
                if part is not None:
                    part.close()
            self._states, self._tokens = Supplier(self._make_states), Supplier(self._make_tokens)

    @cached_property
    def catalog(self) -> Catalog:
        from edgerag.engine.catalog import Catalog

        return Catalog(self.locations.models, self.locations.manifest_file)

    def models(self) -> list[CatalogEntry]:
        return self.catalog.entries()

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
        self.upgrading.stop()
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

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

        return self._with_own_key(
            lambda key: library_identity(self._library_folder, key=key),
        )

    def _own_key(self) -> LibraryKey | None:
        """Of the library in use. Raises LibraryLocked."""
        return self._keys.of(self._library_folder, name=self.settings.library.name)

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

    def _make_states(self) -> StateStore:
        from edgerag.engine.states.store import StateStore

        return StateStore(
            self._library_folder / _STATES_FOLDER,
            ram_bytes=self.settings.generation.kv_memory,
            # Names and sizes of such files tell which passages are asked about, even where their bytes are encrypted.
            disk_bytes=0 if is_encrypted(self._library_folder) else self._kv_disk_bytes(),
        )

    def _make_tokens(self) -> TokenStore:
        from edgerag.index.token_store import MOST_BYTES, TokenStore

        folder, most_bytes = self._library_folder / _STATES_FOLDER, min(MOST_BYTES, self._kv_disk_bytes())
        return TokenStore(folder, most_bytes=most_bytes, key=self._own_key())

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

        def opened(key: LibraryKey | None) -> Library:
            open_it = partial(open_library, folder, residency=self._residency(), kv_sink=kv_sink, key=key)
            try:
                return open_it(mode="read")
            except LibraryOutdated:
                # Nobody should have to know that an older program wrote it: opening it for writing brings it up.
                try:
                    open_it(mode="write", seal_settings=self._seal_settings(), watch=self.upgrading).close()
                except StorageFull:  # on a disk that cannot be written
                    return open_it(mode="read", as_copy=True)
                return open_it(mode="read")

        return self._with_key(folder, name, opened)

    def _with_own_key(self, use: Callable[[LibraryKey | None], T]) -> T:
        """As :meth:`_with_key`, of the library in use."""
        return self._with_key(self._library_folder, self.settings.library.name, use)

    def _with_key(self, folder: Path, name: str, use: Callable[[LibraryKey | None], T]) -> T:
        """What ``use`` makes of the library in ``folder`` with its key. Begun anew where another process encrypted it,
        or gave it another key, between the two. Raises LibraryReplaced where that does not end."""
        from edgerag.index.place import Place

        for left in reversed(range(_TRIES)):
            place = Place(folder)
            try:
                with place.told():
                    return use(self._keys.of(folder, name=name))
            except LibraryReplaced:
                if not left:
                    raise
        raise AssertionError("the last try raises")

    def _open_writer(self) -> Library:
        """Opens a library that is there for writing."""
        from edgerag.index.library import open_library

        if not is_there(self._library_folder):
            raise self._missing(self.settings.library.name)
        return self._with_own_key(
            lambda key: open_library(
                self._library_folder,
                mode="write",
                residency=self._residency(),
                seal_settings=self._seal_settings(),
                kv_sink=self._keep_states_true,
                key=key,
                watch=self.upgrading,
            ),
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
        try:
            return self.embedder_identity()
        except ModelError:
            return None  # asking goes on by keyword and says so

    def _check_embedder_of_library(self) -> None:
        with self._browsing.use() as library:
            self._check_embedder(library.identity)


def _made(library_folder: Path) -> Path:
    """The folder of conversations and traces in that of a library. Raises StorageFull."""
    from edgerag.machine.disk import storage_error

    folder = library_folder / PRIVATE_FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error
    return folder


def never() -> bool:
    """The cancel check of a request that nobody can cancel."""
    return False


def _making_hint(name: str) -> str:
    option = "" if name == LibrarySettings().name else f"--library {name} "
    return f"Make it with `edgerag {option}ingest FOLDER`."
