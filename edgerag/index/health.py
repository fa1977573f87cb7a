"""What a library holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgerag.errors import REPAIR_LIBRARY, RESTORE_LIBRARY, EdgeragError, UsageError
from edgerag.index import at_rest, catalogue, chunks, documents, kv_keys, latent_rows
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.segments import FOLDER_NAME, OpenSegment
from edgerag.index.store import Store
from edgerag.types import EmbedderIdentity, Finding, LibraryStatus, SegmentBlocks, SegmentStatus

_BATCH = 4_096  # rows read at a time


def status(
    folder: Path, store: Store, identity: EmbedderIdentity, opened: list[OpenSegment], residency: Residency
) -> LibraryStatus:
    with store.reading() as db:
        document_count = len(documents.all_ids(db))
        chunk_count, pending_count = chunks.chunk_count(db), chunks.pending_count(db)
        unsealed_count = catalogue.unsealed_count(db)
    segments = tuple(
        SegmentStatus(
            name=each.entry.file,
            vector_count=each.entry.row_count,
            dead_count=each.entry.dead_count,
            size_bytes=each.entry.size_bytes,
            block_count=each.entry.block_count,
            resident_bytes=residency.file_resident_bytes(each.segment.blocks),
            walk=each.segment.walk_name,
        )
        for each in opened
    )
    return LibraryStatus(
        name=folder.name,
        folder=str(folder),
        embedder=identity.name,
        dimension=identity.dimension,
        document_count=document_count,
        chunk_count=chunk_count,
        pending_count=pending_count,
        size_bytes=size_bytes(folder),
        budget_bytes=residency.budget_bytes,
        resident_bytes=sum(segment.resident_bytes for segment in segments),
        segments=segments,
        unsealed_count=unsealed_count,
        limitation=residency.limitation,
        is_encrypted=store.key is not None,
    )


def segment_blocks(opened: list[OpenSegment]) -> list[SegmentBlocks]:
    return [SegmentBlocks(each.entry.file, tuple(each.segment.block_heat())) for each in opened]


def size_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # the writer deleted it meanwhile, or it is not ours to look at
    return total


def verify(folder: Path, store: Store, identity: EmbedderIdentity, residency: Residency) -> list[Finding]:
    """One finding per part, and one for each document that is touched; severity "ok" where nothing is wrong. Raises
    nothing that a damaged file causes."""
    of_file, is_whole = _verify_file(folder, store)
    touched = _verify_documents(store)
    database = _verify_database(store, identity, touched=len(touched), words_too=not is_whole)
    findings = [database, *of_file, *touched, *_verify_latent_space(store)]
    try:
        with store.reading() as db:
            entries = catalogue.segments(db)
    except EdgeragError:
        return findings  # what a damaged catalogue says about segments means nothing
    for entry in entries:
        finding = verify_segment(folder / FOLDER_NAME / entry.file, entry, store, identity, residency)
        if finding is not None:
            findings.append(finding)
    return findings


def _verify_file(folder: Path, store: Store) -> tuple[list[Finding], bool]:
    """Of the database file as a whole, where it is at rest: what is wrong, and whether every bit is as it was left."""
    try:
        faults = at_rest.damaged_blocks(folder, store.path)
    except EdgeragError as error:
        return [Finding("checksums", "error", error.message, error.remedy)], False
    except OSError as error:
        return [Finding("checksums", "error", f"{store.path} cannot be read: {error}.", RESTORE_LIBRARY)], False
    if not faults:
        return [], faults is not None
    message = f"{store.path} does not match its checksums: {at_rest.blocks_text(faults)}."
    return [Finding("checksums", "error", message, REPAIR_LIBRARY)], False


def _verify_latent_space(store: Store) -> list[Finding]:
    try:
        with store.reading() as db:
            damaged = latent_rows.is_damaged(db)
    except EdgeragError:
        return []  # the database itself is what is damaged
    message = "What was learned of the library's words is not what was stored: passages are found in another order."
    return [Finding("latent space", "error", message, REPAIR_LIBRARY)] if damaged else []


def _verify_documents(store: Store) -> list[Finding]:
    """Those whose record, text or passages are not what was stored."""
    findings = []
    try:
        with store.reading() as db:
            ids = documents.all_ids(db)
    except EdgeragError:
        return []  # the database itself is what is damaged
    for document_id in ids:
        try:
            with store.reading() as db:
                documents.parsed_document(db, document_id)
                chunks.read_chunks(db, chunks.chunk_ids_of(db, document_id))
        except UsageError:
            continue  # removed meanwhile
        except EdgeragError as error:
            name = f"document #{document_id}"
            findings.append(Finding(name, "error", f"{_path(store, document_id)}: {error.message}", REPAIR_LIBRARY))
    return findings


def _path(store: Store, document_id: int) -> str:
    """As far as it can be read."""
    try:
        with store.reading() as db:
            row = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
    except EdgeragError:
        return "a document without a readable path"
    return str(row[0]) if row else "a document that is gone"


def _verify_database(store: Store, identity: EmbedderIdentity, *, touched: int, words_too: bool) -> Finding:
    faults = store.damage()
    if not faults:
        try:
            faults = _verify_counts(store, identity)
        except EdgeragError as error:
            faults = [error.message]
    if not faults and words_too and (words := store.words_damage()):
        faults = [words]
    if touched:
        faults.insert(0, f"{touched} documents are touched")
    if faults:
        return Finding("database", "error", f"{store.path} is damaged: {'; '.join(faults[:3])}.", REPAIR_LIBRARY)
    return Finding("database", "ok", f"{store.path.name} is whole.")


def _verify_counts(store: Store, identity: EmbedderIdentity) -> list[str]:
    faults = []
    with store.reading() as db:
        if (words := chunks.word_rows(db)) != (count := chunks.chunk_count(db)):
            faults.append(f"{count} chunks but {words} rows of words")
        if stray := catalogue.stray_states(db):
            faults.append(f"{stray} chunks without the vector that they should have")
        kv_keys.check(db)  # raises LibraryDamaged for a row that nobody wrote
        catalogue.segments(db)  # raises LibraryDamaged if its rows are not what is written there
        for ids, vectors in catalogue.unsealed_vectors(db, dimension=identity.dimension):  # and so does this
            if len(bad := ids[~np.isfinite(vectors).all(axis=1)]):
                faults.append(f"the vector of chunk {bad[0]} holds what is no number")
    return faults


def database_is_sound(store: Store) -> bool:
    """Whether rows, texts, words and SQLite's own structures are what they should be, apart from vectors."""
    return not (store.damage() or store.words_damage() or _verify_documents(store))


def verify_segment(
    path: Path, entry: SegmentEntry, store: Store, identity: EmbedderIdentity, residency: Residency
) -> Finding | None:
    """None if the segment was merged away meanwhile."""
    name = f"segment {entry.file}"
    try:
        segment = Segment(path, identity=identity, residency=residency, searched=False, key=store.key)
    except FileNotFoundError:
        with store.reading() as db:
            if all(entry.id != listed.id for listed in catalogue.segments(db)):
                return None
        return Finding(name, "error", f"{path} is missing.", REPAIR_LIBRARY)
    except EdgeragError as error:
        return Finding(name, "error", error.message, error.remedy)
    except OSError as error:
        unreadable = layout.unreadable(path, error)
        return Finding(name, "error", unreadable.message, unreadable.remedy)
    try:
        faults = segment.damage() or _disagreements(segment, entry, store)
    except EdgeragError as error:
        return Finding(name, "error", error.message, error.remedy)
    finally:
        segment.close()
    if faults:
        return Finding(name, "error", f"{path} is damaged: {'; '.join(faults[:3])}.", REPAIR_LIBRARY)
    return Finding(name, "ok", f"{entry.file}: {entry.block_count} blocks, {entry.live_count} live vectors.")


def _disagreements(segment: Segment, entry: SegmentEntry, store: Store) -> list[str]:
    with store.reading() as db:
        if all(entry.id != listed.id for listed in catalogue.segments(db)):
            return []  # merged away meanwhile
        rows, chunk_ids = catalogue.placements(db, entry.id)
        dead = catalogue.dead_rows(db, entry.id)
    faults = []
    if segment.row_count != entry.row_count or segment.header.file_bytes != entry.size_bytes:
        faults.append("its size is not what the catalogue says")
    elif not np.array_equal(np.sort(np.concatenate([rows, dead])), np.arange(entry.row_count)):
        faults.append("its live and removed rows do not make up the whole")
    elif not all(
        # In batches, because labels are read together with the vectors that they stand beside.
        np.array_equal(segment.labels(rows[start : start + _BATCH]), chunk_ids[start : start + _BATCH])
        for start in range(0, len(rows), _BATCH)
    ):
        faults.append("its rows belong to other chunks than the catalogue says")
    return faults
