"""Looking after a library as a whole: compacting, another embedder, travelling, repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.encryption.key_record import is_encrypted
from edgerag.errors import Cancelled, StorageFull, ThreadsError
from edgerag.locations import is_there, safe_library_name
from edgerag.session.wiring import PRIVATE_FOLDER, Wiring, never
from edgerag.supplier import Supplier
from edgerag.types import (
    CancelCheck,
    Embedder,
    EmbedderIdentity,
    Finding,
    MergeProgress,
    MergeReport,
    ReembedEvent,
    ReembedPrice,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library
    from edgerag.index.package import Manifest
    from edgerag.index.repair import DatabaseRepair
    from edgerag.index.rescue import SegmentRescue


class Keeping(Wiring):
    """What changes a library and not its documents."""

    def compact_library(
        self, *, progress: Callable[[MergeProgress], None], cancelled: CancelCheck = never
    ) -> MergeReport:
        """Joins the segments of the index into as few as the free memory allows. Readers go on meanwhile.

        Raises EdgeragError.
        """
        with self._open_writer() as library:
            report = library.compact(progress=progress, cancelled=cancelled)
            with suppress(Cancelled):  # the old one stays
                try:
                    library.make_latent_space(cancelled=cancelled)
                except StorageFull as error:
                    note = f"Which words stand together was not learned anew: {error.message}"
                    report = replace(report, notes=(*report.notes, note))
            return report

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

    def verify_library(self) -> list[Finding]:
        """Checks the database, every block, and their agreement, and the conversations that are kept. Raises
        LibraryMissing, LibraryReplaced."""
        with self._browsing.use() as library:
            findings = library.verify()
        return [*findings, *self._verify_threads()]

    def _verify_threads(self) -> list[Finding]:
        """Nothing where none are kept."""
        place = self._private_place()
        file = self.locations.threads_file
        if not is_there(file if place is None else place / PRIVATE_FOLDER / file.name):
            return []
        try:
            return self._threads_now().verify()
        except (ThreadsError, StorageFull) as error:
            return [Finding("conversations", "error", error.message, error.remedy)]

    def is_encrypted(self, name: str) -> bool:
        """Whether the library called ``name`` is encrypted; asks nobody. Raises UsageError for what is no name."""
        return is_encrypted(self.locations.library_folder(name))

    def unlock_called(self, name: str) -> None:
        """Asks for the key of the library called ``name``, where it has one. Raises LibraryLocked, UsageError."""
        self._keys.of(self.locations.library_folder(name), name=name)

    def export_library(self, name: str, target: Path, *, progress: Callable[[int, int], None]) -> Manifest:
        """Writes the library called ``name``, as of now, to one new file. Raises LibraryError, StorageFull."""
        from edgerag.index.travel import leave

        folder = self.locations.library_folder(name)
        if not is_there(folder):
            raise self._missing(name)
        return self._with_key(
            folder, name, lambda key: leave(folder, target, name=folder.name, progress=progress, key=key)
        )

    def is_encrypted_package(self, source: Path) -> bool:
        """Whether importing that file asks for a key. Raises LibraryError, StorageFull."""
        from edgerag.index.travel import manifest_of

        return manifest_of(source).is_encrypted

    def import_library(self, source: Path, name: str, *, progress: Callable[[int, int], None]) -> tuple[str, Manifest]:
        """Makes a new library of such a file, called ``name``, or as it was called; the name that it has now.

        Raises LibraryError, StorageFull, UsageError for a name that is none.
        """
        from edgerag.index.travel import arrive, manifest_of

        name = name or safe_library_name(manifest_of(source).library)
        folder = self.locations.library_folder(name)
        return name, arrive(source, folder, progress=progress, unlock=partial(self._keys.of, name=name))

    def repair_library(self) -> tuple[DatabaseRepair, list[SegmentRescue]]:
        """Mends what can be of the library. Raises LibraryError where too little of it can be read, StorageFull."""
        from edgerag.index.repair import repair_database

        if not is_there(self._library_folder):
            raise self._missing(self.settings.library.name)
        self._browsing.close()
        database = self._with_own_key(
            lambda key: repair_database(self._library_folder, key=key, wanted=self._embedder_identity_or_none()),
        )
        with self._open_writer() as library:
            rescued = library.rescue()
            library.seal()
            library.keep_latent_space()
        return database, rescued
