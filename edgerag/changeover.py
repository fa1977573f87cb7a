"""Which embedder a library is searched with and which is wanted, what changing it over would take, and doing it.

A library keeps the embedder that it was made with until ``library reembed`` has made every vector anew: the settings
only say what is wanted. So a question is always embedded with what the vectors came from, and an ingest is refused
while the two differ, because it would add to what is to be replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.config import Settings
from edgerag.errors import EmbedderMismatch, ModelError, StorageFull, UsageError
from edgerag.supplier import Supplier
from edgerag.types import Embedder, EmbedderIdentity, ModelFile, ReembedPrice

if TYPE_CHECKING:
    from edgerag.encryption.keys import LibraryKey
    from edgerag.engine.bulk import BulkEmbedder
    from edgerag.engine.catalog import Catalog
    from edgerag.engine.embedder import LlamaEmbedder
    from edgerag.index.library import Library

COMMAND = "edgerag library reembed"
_SAMPLED = 32  # passages of the library to measure the speed on


class Changeover:
    """The embedders of one session's library."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog

    def wanted(self, of_library: EmbedderIdentity | None, name: str = "") -> ModelFile:
        """The model called ``name``, else that of the settings, else the library's own where it is on this machine,
        else the default. Raises ModelError."""
        chosen = name or self._settings.models.embedder
        own = None if chosen or of_library is None else self._own(of_library)
        return own or self._catalog.find("embedder", chosen)

    def searching(self, of_library: EmbedderIdentity | None) -> ModelFile:
        """The model that made the library's vectors where it is on this machine, else the wanted one. Raises
        ModelError."""
        own = None if of_library is None else self._own(of_library)
        return own or self.wanted(of_library)

    def difference(self, of_library: EmbedderIdentity) -> ModelFile | None:
        """The model that the settings want in place of the library's own; None when they want no other, or one that
        is not here."""
        if not self._settings.models.embedder:
            return None
        try:
            wanted = self.wanted(of_library)
        except ModelError:
            return None
        return None if identity_of(wanted).is_same_as(of_library) else wanted

    def note(self, library: Library) -> str:
        """What to say to one who asks while another embedder is wanted; "" when none is."""
        wanted = self.difference(library.identity)
        if wanted is None:
            return ""
        return (
            f"The library is still searched with {library.identity.name!r}, and models.embedder names {wanted.name!r}. "
            f"{self.offer(library, wanted)}"
        )

    def refusal(self, library: Library, wanted: ModelFile) -> EmbedderMismatch:
        """Of an ingest into a library that was made with another embedder than the settings want."""
        return EmbedderMismatch(
            f"Library {self._settings.library.name!r} was made with the embedder {library.identity.name!r}, "
            f"and models.embedder names {wanted.name!r}.",
            remedy=f"{self.offer(library, wanted)} Or set models.embedder to {library.identity.name!r}.",
        )

    def offer(self, library: Library, wanted: ModelFile) -> str:
        """The command that changes over, with its price as far as it can be told."""
        try:
            price = self.price(library, wanted)
        except ModelError as error:
            return f"`{COMMAND}` changes it over, but {wanted.name!r} does not work here: {error}"
        count = f"{price.chunks_total:,} {'passage' if price.chunks_total == 1 else 'passages'}"
        return (
            f"`{COMMAND}` changes it over: {count}, about {duration(price.seconds)} here; until then the old index "
            "stays in use."
        )

    def price(self, library: Library, model: ModelFile) -> ReembedPrice:
        """What changing ``library`` over to ``model`` takes; the speed is measured once on this machine. Raises
        ModelError, LibraryError."""
        from edgerag.engine.tuning.embed_speed import tokens_per_s
        from edgerag.machine.plan import plan_cores
        from edgerag.machine.topology import read_topology

        done, total = library.reembedding_counts(identity_of(model))
        seconds = 0.0
        if left := total - done:
            passages = [(each.chunk.embedding_text, each.chunk.token_count) for each in library.sample(_SAMPLED)]
            threads = len(plan_cores(read_topology(), threads=self._settings.machine.threads).prefill_cpus)
            speed = tokens_per_s(
                model,
                passages,
                open_embedder=lambda: self._open(model),
                folder=self._catalog.folder,
                threads=threads,
            )
            mean_tokens = sum(tokens for _, tokens in passages) / max(1, len(passages))
            seconds = left * mean_tokens / speed
        return ReembedPrice(
            embedder=model.name,
            chunks_left=left,
            chunks_total=total,
            seconds=seconds,
            room_bytes=library.reembedding_bytes(identity_of(model)),
            free_bytes=shutil.disk_usage(library.folder).free,
        )

    @contextmanager
    def embedder(self, model: ModelFile) -> Iterator[Supplier[Embedder]]:
        """Gives what embeds all passages with ``model``, loaded when it is first asked for."""
        opened: list[LlamaEmbedder | BulkEmbedder] = []

        def make() -> Embedder:
            from edgerag.engine.opening import open_bulk_embedder
            from edgerag.engine.tuning.embed_trial import Trials

            opened.append(base := self._open(model))
            bulk = open_bulk_embedder(
                base,
                model,
                trials=Trials(self._catalog.folder),
                machine=self._settings.machine,
                backend=self._settings.ingest.embed_with,
            )
            opened.append(bulk)
            return bulk

        try:
            yield Supplier(make)
        finally:
            for one in reversed(opened):
                one.close()

    def _open(self, model: ModelFile) -> LlamaEmbedder:
        from edgerag.engine.opening import open_embedding_model

        return open_embedding_model(model, machine=self._settings.machine)

    def _own(self, identity: EmbedderIdentity) -> ModelFile | None:
        return self._catalog.find_embedder(identity.weights_sha256)


def identity_of(model: ModelFile) -> EmbedderIdentity:
    """What the vectors of an embedder are known by."""
    return EmbedderIdentity(
        name=model.name,
        weights_sha256=model.weights_sha256,
        dimension=model.dimension,
        languages=model.languages,
    )


def refuse_same(library: Library, identity: EmbedderIdentity) -> None:
    """Raises UsageError when the library has that embedder already."""
    if library.identity.is_same_as(identity):
        raise UsageError(
            f"The library is searched with {identity.name!r} already.",
            remedy="Name another one (--embedder NAME, or models.embedder): `edgerag models list` has them.",
        )


def check_room(library: Library, identity: EmbedderIdentity) -> None:
    """Raises StorageFull when the old and the new index do not fit beside each other."""
    needed, free = library.reembedding_bytes(identity), shutil.disk_usage(library.folder).free
    if needed > free:
        raise StorageFull(
            f"Both indexes stand beside each other until the new one is complete: that takes up to "
            f"{needed / 1e6:,.0f} MB in {library.folder}, where {free / 1e6:,.0f} MB are free.",
            remedy="Make room and try again; nothing was changed.",
        )


def duration(seconds: float) -> str:
    """``1 s``, ``45 s``, ``4 min``, ``1 h 20 min``"""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def library_identity(folder: Path, *, key: LibraryKey | None = None) -> EmbedderIdentity | None:
    """The embedder of the library in ``folder``, read without opening it; None when there is none to be read. Raises
    LibraryReplaced."""
    from edgerag.errors import LibraryError
    from edgerag.index.identity import read_identity
    from edgerag.index.place import Place
    from edgerag.index.store import Store

    place = Place(folder)
    try:
        store = Store(folder, mode="read", key=key)
    except (LibraryError, StorageFull):
        place.check()
        return None  # who opens it is told why
    try:
        return read_identity(store)
    except (LibraryError, StorageFull):
        return None
    finally:
        store.close()
