"""Reading files into the library, and taking documents out of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.errors import Cancelled, UsageError
from edgerag.hold import Hold
from edgerag.locations import is_there, user_path
from edgerag.session.wiring import Wiring, never
from edgerag.supplier import Supplier
from edgerag.types import (
    MEMBER_MARK,
    CancelCheck,
    Document,
    Embedder,
    IngestDone,
    IngestEvent,
    WatchEvent,
)

if TYPE_CHECKING:
    from edgerag.encryption.keys import LibraryKey
    from edgerag.engine.bulk import BulkEmbedder
    from edgerag.index.library import Library

_NUMBER = re.compile(r"#[0-9]{1,18}")


class Ingesting(Wiring):
    """What changes the documents of a library."""

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
        hold: Hold | None = None,
    ) -> Iterator[IngestEvent]:
        """Reads documents into the library, making it if there is none, and gives them ``tags``. The passwords are
        tried on protected files, and kept nowhere. With ``changed`` only these absolute paths under ``paths`` are
        looked at; ``withheld`` are never read. With ``prune`` a named folder in which nothing is left
        loses its documents. With ``ocr_again`` what OCR can read is read again where other settings of it held then.
        Whoever has ``hold`` can pause it; when it is over that is let go.

        Raises EdgeragError.
        """
        from edgerag.index.tags import normal_tag
        from edgerag.ingest.pipeline import ingest

        names = [normal_tag(tag) for tag in tags]
        self._recorder.serve()
        if changed is None:
            _check_there(paths)
        self._refuse_other_embedder()
        held = hold or Hold()

        def between() -> None:
            if held.wait(cancelled):
                raise Cancelled("The ingest was stopped while it was held.")

        with _let_go(held), self.making(between) as (library, embedder):
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
                hold=held,
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
            library.keep_latent_space()
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

    @contextmanager
    def making(self, between: Callable[[], None] | None = None) -> Iterator[tuple[Library, Supplier[Embedder]]]:
        """The library, made if there is none and open for writing, and what gives the embedder of many passages.
        ``between`` two of them this is called, and may wait.

        Raises EdgeragError.
        """
        from edgerag.index.library import open_library

        def opened(key: LibraryKey | None) -> Library:
            if key is None and self.settings.library.key_file:
                self._refuse_new_in_plain()
            return open_library(
                self._library_folder,
                mode="write",
                residency=self._residency(),
                identity=self.embedder_identity(),
                seal_settings=self._seal_settings(),
                kv_sink=self._keep_states_true,
                key=key,
                watch=self.upgrading,
            )

        with (
            self._with_own_key(opened) as library,
            self._bulk_embedder(_one_after_the_other(library.give_way, between)) as embedder,
        ):
            yield library, embedder

    def _refuse_new_in_plain(self) -> None:
        """Raises UsageError where there is no library yet, though a key file is named."""
        from edgerag.index.store import DATABASE_NAME

        if not is_there(self._library_folder / DATABASE_NAME):
            name = self.settings.library.name
            raise UsageError(
                f"A key file is named, and the new library {name} would not be encrypted.",
                remedy=f"Encrypt it first: edgerag library encrypt {name}. Or name no key file (library.key_file).",
            )

    def _refuse_other_embedder(self) -> None:
        """Raises EmbedderMismatch, with what changing over takes, when the settings want another embedder than the
        library has."""
        identity = self._library_identity() if self._own_models else None
        wanted = None if identity is None else self._changeover.difference(identity)
        if wanted is not None:
            with self._browsing.use() as library:
                raise self._changeover.refusal(library, wanted)

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


@contextmanager
def _let_go(hold: Hold) -> Iterator[None]:
    """At the end nothing waits any more."""
    try:
        yield
    finally:
        hold.end()


def _one_after_the_other(first: Callable[[], None], second: Callable[[], None] | None) -> Callable[[], None]:
    def both() -> None:
        first()
        if second is not None:
            second()

    return both


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
