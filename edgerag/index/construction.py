"""One new segment file out of unsealed vectors and rows of older segments.

Memory: the vectors are streamed, a batch at a time, into a temporary file, and hnswlib reads them from its mapping;
what is held besides hnswlib's own graph is ids and row numbers. Of an encrypted library vectors and graph stay in
memory until the segment is written. Order: temporary name, synced, renamed, folder synced; the caller's transaction
comes after that. Whatever stops it leaves files that are deleted by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import REPAIR_LIBRARY, Cancelled, LibraryDamaged, LibraryError
from edgerag.index import catalogue
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.write import write_segment
from edgerag.index.segments import SealSettings
from edgerag.index.store import Store, translated
from edgerag.machine.disk import sync_folder
from edgerag.private_database import private_opener
from edgerag.types import CancelCheck, EmbedderIdentity, MergeProgress

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Vectors copied at a time: 6 MB at 384 dimensions.
_BATCH = 4_096


class OriginDamaged(Exception):
    """A segment cannot give its rows; never leaves this package. ``reason`` names file and block."""

    def __init__(self, entry: SegmentEntry, reason: str) -> None:
        super().__init__(reason)
        self.entry = entry
        self.reason = reason


class Origin:
    """A segment whose live rows go into new ones, in the order of its rows."""

    def __init__(
        self,
        entry: SegmentEntry,
        path: Path,
        *,
        identity: EmbedderIdentity,
        residency: Residency,
        key: LibraryKey | None = None,
    ) -> None:
        """Raises OriginDamaged."""
        self.entry = entry
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # not taken yet
        self._chunk_ids = self._rows
        try:
            self._segment = Segment(path, identity=identity, residency=residency, searched=False, key=key)
        except LibraryError as error:
            raise OriginDamaged(entry, error.message) from error
        except OSError as error:
            raise OriginDamaged(entry, f"{path} cannot be read: {error.strerror or error}.") from error

    def read_rows(self, store: Store) -> None:
        """Takes from the catalogue which rows live. Raises OriginDamaged."""
        with store.reading() as db:
            self._rows, self._chunk_ids = catalogue.placements(db, self.entry.id)
        if len(self._rows) != self.entry.live_count or int(self._rows.max()) >= self._segment.row_count:
            raise self._disagrees()

    def take(self, most: int) -> Piece:
        """The next rows, at most so many."""
        piece = Piece(self, self._rows[:most], self._chunk_ids[:most])
        self._rows, self._chunk_ids = self._rows[most:], self._chunk_ids[most:]
        return piece

    @property
    def is_finished(self) -> bool:
        return not len(self._rows)

    def vectors(self, rows: NDArray[np.int64], chunk_ids: NDArray[np.int64]) -> Vectors:
        """(len(rows), dim), read in the order of the file. Raises OriginDamaged, also if a row is of another chunk."""
        order = np.argsort(rows)
        vectors = np.empty((len(rows), self._segment.header.dimension), dtype="<f4")
        with self._reading():
            vectors[order], labels = self._segment.read_rows(rows[order])
        if not np.array_equal(labels, chunk_ids[order]):
            raise self._disagrees()
        return vectors

    def _disagrees(self) -> OriginDamaged:
        return OriginDamaged(self.entry, f"{self._segment.path} does not hold what the catalogue says.")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except LibraryError as error:
            raise OriginDamaged(self.entry, error.message) from error
        except OSError as error:
            raise OriginDamaged(
                self.entry, f"{self._segment.path} cannot be read: {error.strerror or error}."
            ) from error

    def close(self) -> None:
        self._segment.close()


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one older segment."""

    origin: Origin
    rows: NDArray[np.int64]
    chunk_ids: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """What goes into one new segment."""

    fresh_ids: NDArray[np.int64]  # chunks whose vector is not sealed, ascending
    pieces: tuple[Piece, ...]

    @property
    def row_count(self) -> int:
        return len(self.fresh_ids) + sum(len(piece.rows) for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Built:
    """A segment file that is on the disk and that nobody knows yet."""

    file: str
    header: layout.Header
    chunk_ids: NDArray[np.int64]  # by row


@dataclass(frozen=True, slots=True)
class Workshop:
    """What building needs besides the rows."""

    store: Store
    folder: Path  # of the segment files
    identity: EmbedderIdentity
    residency: Residency
    settings: SealSettings
    progress: Callable[[MergeProgress], None]
    cancelled: CancelCheck

    def check(self) -> None:
        """Raises Cancelled once the user has asked to stop."""
        if self.cancelled():
            raise Cancelled("Stopped before the segment was finished.")


def build(shop: Workshop, part: Part, *, number: int) -> Built:
    """Makes the file of segment ``number``. Raises StorageFull, OriginDamaged, Cancelled."""
    path = shop.folder / f"{number:08d}.hnsw"
    temporary = path.with_name(path.name + ".tmp")
    gathered = path.with_name(path.name + ".vectors.tmp")
    with translated(path):
        key = shop.store.key
        vectors: Vectors
        if key is None:
            with open(gathered, "wb", opener=private_opener) as stream:
                ids = _stream(shop, part, lambda _, batch: stream.write(batch.tobytes()))
            vectors = np.memmap(gathered, dtype="<f4", mode="r", shape=(len(ids), shop.identity.dimension))
        else:  # what is encrypted never lies in a file as it is
            vectors = np.empty((part.row_count, shop.identity.dimension), dtype="<f4")
            ids = _stream(shop, part, _into(vectors))
        graph = _graph(shop, vectors, path)
        shop.progress(MergeProgress("writing", len(ids), len(ids)))
        written = write_segment(
            temporary,
            labels=ids,
            vectors=vectors,
            graph=graph,
            identity=shop.identity,
            block_bytes=shop.settings.block_bytes,
            vector_type=shop.settings.vector_type,
            check=shop.check,
            key=key,
        )
        del vectors
        gathered.unlink(missing_ok=True)
        temporary.replace(path)
        sync_folder(shop.folder)
        if layout.read_header(path, identity=shop.identity, key=key) != written.header:
            raise layout.damaged(path, "is not what was just written")
        return Built(path.name, written.header, written.labels)


def _into(vectors: Vectors) -> Callable[[int, Vectors], object]:
    def put(start: int, batch: Vectors) -> None:
        vectors[start : start + len(batch)] = batch

    return put


def _stream(shop: Workshop, part: Part, put: Callable[[int, Vectors], object]) -> NDArray[np.int64]:
    """Gives the part's vectors to ``put`` by ascending chunk id, each batch with the number of its first; the ids in
    that order."""
    ids = np.concatenate([part.fresh_ids, *(piece.chunk_ids for piece in part.pieces)])
    rows = np.concatenate([np.zeros_like(part.fresh_ids), *(piece.rows for piece in part.pieces)])
    # The number of the piece that each row is in, from 1; 0 is the table.
    lengths = [len(part.fresh_ids), *(len(piece.rows) for piece in part.pieces)]
    numbers = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    order = np.argsort(ids, kind="stable")
    for start in range(0, len(order), _BATCH):
        shop.check()
        batch = order[start : start + _BATCH]
        vectors = np.empty((len(batch), shop.identity.dimension), dtype="<f4")
        for number in np.unique(numbers[batch]).tolist():
            here = numbers[batch] == number
            chosen = batch[here]
            if number == 0:
                vectors[here] = _unsealed(shop, ids[chosen])
            else:
                vectors[here] = part.pieces[number - 1].origin.vectors(rows[chosen], ids[chosen])
        put(start, vectors)
        shop.progress(MergeProgress("reading", start + len(batch), len(ids)))
    return ids[order]


def _unsealed(shop: Workshop, ids: NDArray[np.int64]) -> Vectors:
    """(len(ids), dim): vectors of the table; ``ids`` are ascending, and the table holds none between them."""
    with shop.store.reading() as db:
        batches = list(
            catalogue.unsealed_vectors(db, dimension=shop.identity.dimension, first=int(ids[0]), last=int(ids[-1]))
        )
    if not np.array_equal(np.concatenate([ids[:0], *(found for found, _ in batches)]), ids):
        raise LibraryDamaged("A chunk has no stored vector where it should have one.", remedy=REPAIR_LIBRARY)
    return np.concatenate([vectors for _, vectors in batches])


def _graph(shop: Workshop, vectors: Vectors, path: Path) -> Graph | None:
    if len(vectors) < shop.settings.graph_rows:
        return None
    # Imported here: only a machine that builds segments of this size needs hnswlib.
    from edgerag.index.hnsw.build import BuildCancelled, GraphSettings, build_graph

    shop.check()
    try:
        return build_graph(
            vectors,
            scratch=path.with_name(path.name + ".graph.tmp") if shop.store.key is None else None,
            settings=GraphSettings(m=shop.settings.m, ef_construction=shop.settings.ef_construction),
            progress=lambda done, rows: shop.progress(MergeProgress("linking", done, rows)),
            cancelled=shop.cancelled,
        )
    except BuildCancelled:
        raise Cancelled("Stopped before the segment was finished.") from None
