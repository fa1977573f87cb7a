"""Changing a library over to another embedder: every chunk is embedded again beside the index in use, then that is
replaced at once.

Promises: as an ingest does, each batch is committed when it is embedded, so whatever ends the run loses nothing and
the next one goes on; memory holds one batch, and what building a segment takes. Until the last step the library is
searched as before. A text that stands in the library more than once is embedded once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np

from edgerag.config import IngestSettings
from edgerag.errors import LibraryDamaged
from edgerag.ingest.pace import Pace
from edgerag.ingest.sealing import seal
from edgerag.types import (
    CancelCheck,
    Embedder,
    EmbedderIdentity,
    ReembedDone,
    ReembedEvent,
    ReembedProgress,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library
    from edgerag.index.reembedding import Reembedding


def reembed(
    library: Library,
    identity: EmbedderIdentity,
    *,
    embedder: Callable[[], Embedder],
    settings: IngestSettings,
    cancelled: CancelCheck,
) -> Iterator[ReembedEvent]:
    """Gives ``library``, which is open for writing, the vectors of ``embedder``, whose ``identity`` is another; the
    last event is ReembedDone. Raises what the library and the embedder raise (StorageFull, ModelError, ...)."""
    with library.reembedding(identity) as begun:
        yield from _Run(library, begun, embedder, settings, cancelled).events()


class _Run:
    def __init__(
        self,
        library: Library,
        begun: Reembedding,
        embedder: Callable[[], Embedder],
        settings: IngestSettings,
        cancelled: CancelCheck,
    ) -> None:
        self._library = library
        self._begun = begun
        self._embedder = embedder
        self._settings = settings
        self._cancelled = cancelled
        self._pace = Pace(settings, cancelled=cancelled)
        self._started = time.monotonic()
        self._kept, self._total = begun.counts()  # of an earlier run
        self._done = self._kept
        self._embedding_s = 0.0

    def events(self) -> Iterator[ReembedEvent]:
        finished = yield from self._embed_all()
        finished = finished and (yield from self._seal(merge=True))
        if finished:
            yield self._progress("changing over")
            self._library.switch(self._begun)
        yield ReembedDone(
            embedder=self._begun.identity.name,
            chunks_embedded=self._done - self._kept,
            chunks_total=self._total,
            seconds=time.monotonic() - self._started,
            interrupted=not finished,
        )

    def _embed_all(self) -> Generator[ReembedEvent, None, bool]:
        """False when it was cancelled."""
        if self._done < self._total:
            yield self._progress("loading the embedder")
        while True:
            for reason in self._pace.wait():
                yield self._progress(reason)
            if self._cancelled():
                return False
            self._library.give_way()
            if not self._embed_batch():
                return True
            yield self._progress("")
            if self._begun.seal_is_due() and not (yield from self._seal(merge=False)):
                return False

    def _embed_batch(self) -> bool:
        """False when there is nothing left."""
        stored = self._begun.pending_chunks(self._settings.batch_chunks)
        if not stored:
            return False
        started = time.monotonic()
        vectors = self._begun.known_vectors([item.id for item in stored])
        texts = {item.chunk.embedding_text: item.id for item in stored if item.id not in vectors}
        if texts:
            by_text = dict(zip(texts, self._embedder().embed_passages(list(texts)), strict=True))
            vectors |= {item.id: by_text[item.chunk.embedding_text] for item in stored if item.id not in vectors}
        self._begun.put_vectors([item.id for item in stored], np.stack([vectors[item.id] for item in stored]))
        self._done += len(stored)
        self._embedding_s += time.monotonic() - started
        return True

    def _seal(self, *, merge: bool) -> Generator[ReembedEvent, None, bool]:
        """False when it was cancelled. Raises LibraryDamaged when a part that was made cannot be read."""
        report = yield from seal(
            self._begun,
            merge=merge,
            cancelled=self._cancelled,
            event=self._progress,
            give_way=self._library.give_way,
        )
        if report.damaged:
            raise LibraryDamaged(
                f"A part of the new index cannot be read: {report.damaged[0]}",
                remedy="Throw it away and begin anew: edgerag library reembed --discard, then reembed.",
            )
        return not report.cancelled

    def _progress(self, current: str) -> ReembedProgress:
        made = self._done - self._kept
        rate = made / self._embedding_s if self._embedding_s > 0 else 0.0
        return ReembedProgress(
            chunks_done=self._done,
            chunks_total=self._total,
            chunks_per_second=rate,
            seconds_left=(self._total - self._done) / rate if rate else None,
            current=current,
        )
