"""Damaged segments give what they still have to new ones: each row of vectors has a checksum of its own.

Graph and codes are made of the vectors when the next segment is built; a passage whose vector cannot be read waits to
be embedded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import EdgeragError
from edgerag.index import catalogue, health
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.row_sums import with_sum
from edgerag.index.segments import FOLDER_NAME, delete_unlisted
from edgerag.index.store import Store
from edgerag.types import EmbedderIdentity

_BATCH = 256


@dataclass(frozen=True, slots=True)
class SegmentRescue:
    """One segment that was taken out."""

    file: str
    reason: str
    saved: int  # vectors
    lost: int  # vectors, whose passages wait to be embedded


def rescue_segments(
    folder: Path, store: Store, *, identity: EmbedderIdentity, residency: Residency
) -> list[SegmentRescue]:
    """Takes every damaged segment out of the catalogue, its vectors into the table of those that are not sealed."""
    with store.reading() as db:
        entries = catalogue.segments(db)
    rescued = []
    for entry in entries:
        path = folder / FOLDER_NAME / entry.file
        finding = health.verify_segment(path, entry, store, identity, residency)
        if finding is None or finding.severity == "ok":
            continue
        vectors = _readable(path, entry, identity, residency, store.key)
        with store.writing() as db:
            _, chunk_ids = catalogue.placements(db, entry.id)
            saved = 0
            for chunk_id in chunk_ids.tolist():
                vector = vectors.get(chunk_id)
                db.execute(
                    "UPDATE chunks SET state = ?, segment_id = NULL, segment_row = NULL WHERE id = ?",
                    (0 if vector is None else 1, chunk_id),
                )
                if vector is not None:
                    db.execute(
                        "INSERT INTO vectors (chunk_id, vector) VALUES (?, ?)", (chunk_id, with_sum(vector, chunk_id))
                    )
                    saved += 1
            catalogue.remove_segments(db, [entry.id])
        rescued.append(SegmentRescue(entry.file, finding.message, saved, len(chunk_ids) - saved))
    delete_unlisted(folder / FOLDER_NAME, store)
    return rescued


def _readable(
    path: Path, entry: SegmentEntry, identity: EmbedderIdentity, residency: Residency, key: LibraryKey | None
) -> dict[int, bytes]:
    """By chunk, the vectors (f32, of unit length) whose rows match their checksums."""
    try:
        segment = Segment(path, identity=identity, residency=residency, searched=False, key=key)
    except (EdgeragError, OSError):
        return {}
    found: dict[int, bytes] = {}
    try:
        rows = np.arange(min(segment.row_count, entry.row_count), dtype=np.int64)
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            for part in [batch] if _reads(segment, batch) else [batch[n : n + 1] for n in range(len(batch))]:
                if len(part) > 1 or _reads(segment, part):
                    vectors, labels = segment.read_rows(part)
                    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f4")
                    found.update((int(label), row.tobytes()) for label, row in zip(labels, vectors, strict=True))
    finally:
        segment.close()
    return found


def _reads(segment: Segment, rows: np.ndarray) -> bool:
    try:
        segment.read_rows(rows)
    except (EdgeragError, OSError):
        return False
    return True
