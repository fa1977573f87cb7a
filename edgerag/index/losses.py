"""Rows that were copied out of a damaged database, made consistent; what is missing is named, document by document.

Promises: every passage of every document that the database knew is there afterwards, or its document is named and the
next ingest reads it again. Which passages a document had, its text tells: each character of it that is not white space
lies in exactly one, and they are numbered from 0.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import EdgeragError, LibraryDamaged
from edgerag.index import catalogue, chunks, documents, kv_keys, lost_paths
from edgerag.index.documents import UNREAD_NS
from edgerag.index.lost_identity import settle_identity
from edgerag.index.readable_rows import Copied
from edgerag.index.recut import recut
from edgerag.index.reinstated import reinstate
from edgerag.index.row_sums import FACTS, PLACE, STRUCTURE, row_sum, stored_vectors, sum_document
from edgerag.index.segments import FOLDER_NAME
from edgerag.index.store import translated
from edgerag.types import MEMBER_MARK, UNKNOWN_LANGUAGE, EmbedderIdentity, ParsedDocument

_LEAST_ROW_BYTES = 8  # of a segment: each row has the number of a chunk
_WITHOUT = "its record cannot be read: ingest its folder again"
_AGAIN = "its record or its text cannot be read. It was taken out: ingest its folder again"


@dataclass(frozen=True, slots=True)
class Loss:
    """A document of which something is gone."""

    path: str
    what: str


_VECTORS_GONE = "which embedder made them is not known any more. The next ingest makes them anew with"
# Of what no row of another table tells: by table, what is said where some of its rows could not be read.
_LOST_ROWS = {
    "documents": Loss("documents", "the records of some may be gone: ingest their folders again"),
    "document_tags": Loss("tags", "some could not be read: give them again with `edgerag tag`"),
    "containers": Loss("archives and mails", "some are not known as read any more: the next ingest opens them again"),
    "failures": Loss("files that failed", "some are not known any more: the next ingest tries them again"),
    "left_out": Loss("files that were left out", "some are not known any more: the next ingest finds them again"),
    "mounts": Loss(
        "mounted folders", "some are not known any more: ingest them while they are mounted, or their documents may go"
    ),
}


def put_in_order(
    db: sqlite3.Connection,
    database: Path,
    copied: Copied,
    *,
    key: LibraryKey | None = None,
    wanted: EmbedderIdentity | None = None,
) -> list[Loss]:
    """To be called in a transaction, foreign keys off. ``wanted``: the embedder that it gets where nothing says any
    more which one it had. Raises LibraryDamaged where there is none either."""
    segments = database.parent / FOLDER_NAME
    _drop_impossible_values(db, segments)
    losses = []
    if not settle_identity(db, database, segments, key=key, wanted=wanted):
        assert wanted is not None, "else it is refused"
        losses.append(Loss("vectors", f"{_VECTORS_GONE} {wanted.name!r}: until then passages are found by their words"))
    losses += _name_documents(db, copied.documents)
    for document_id in documents.all_ids(db):
        losses += _looked_at(db, document_id, database)
    _place_vectors(db)
    losses += [_LOST_ROWS[table] for table in sorted(copied.unreadable) if table in _LOST_ROWS]
    # Versions have no checksums: of a wrong one, a state that the model made of an older text could be taken for that
    # of a newer one.
    kv_keys.forget_everything(db)
    return losses


def _drop_impossible_values(db: sqlite3.Connection, segments: Path) -> None:
    """SQLite keeps any value in any column; what no checksum covers may be anything."""
    for document_id, stored, *facts in db.execute(f"SELECT id, facts_sum, {FACTS} FROM documents").fetchall():  # noqa: S608
        if stored != row_sum(facts):
            db.execute("DELETE FROM documents WHERE id = ?", (document_id,))
    db.execute(
        "UPDATE documents SET mtime_ns = ?, size_bytes = iif(typeof(size_bytes) = 'integer', size_bytes, 0),"
        " content_bytes = iif(typeof(content_bytes) = 'integer', content_bytes, 0), seconds = 0"
        " WHERE typeof(mtime_ns) <> 'integer' OR typeof(size_bytes) <> 'integer'"
        " OR typeof(content_bytes) <> 'integer' OR typeof(seconds) NOT IN ('real', 'integer')",
        (UNREAD_NS,),
    )
    db.execute("UPDATE documents SET around_sha256 = '' WHERE typeof(around_sha256) <> 'text'")
    db.execute("UPDATE documents SET ocr = '' WHERE typeof(ocr) <> 'text'")
    db.execute(
        "UPDATE documents SET language = ? WHERE typeof(language) <> 'text' OR language GLOB '*[^a-zA-Z-]*'",
        (UNKNOWN_LANGUAGE,),
    )
    db.execute("UPDATE documents SET analysis = 1 WHERE typeof(analysis) <> 'integer'")
    # Their words and where their vectors are depend on these.
    wrong = [
        chunk_id
        for chunk_id, stored, is_possible, *place in db.execute(
            # iif: what is no JSON has no type.
            "SELECT id, sum, typeof(document_id) = 'integer' AND typeof(ordinal) = 'integer' AND ordinal >= 0"  # noqa: S608
            " AND typeof(start) = 'integer' AND typeof(\"end\") = 'integer' AND start >= 0 AND start < \"end\""
            " AND iif(json_valid(heading_path), json_type(heading_path), '') = 'array'"
            " AND iif(json_valid(context), json_type(context), '') = 'text',"
            f" {PLACE} FROM chunks"
        )
        if stored != row_sum(place) or not is_possible
    ]
    db.executemany("DELETE FROM chunks WHERE id = ?", ((chunk_id,) for chunk_id in wrong))
    db.execute("UPDATE chunks SET kv_version = 1 WHERE typeof(kv_version) <> 'integer' OR kv_version < 1")
    db.execute(
        "UPDATE chunks SET state = 0, segment_id = NULL, segment_row = NULL WHERE state = 2"
        " AND (typeof(segment_row) <> 'integer' OR segment_row < 0 OR segment_id NOT IN (SELECT id FROM segments))"
    )
    db.execute("DELETE FROM kv_retired WHERE typeof(document) <> 'text' OR typeof(version) <> 'integer' OR version < 1")
    db.execute("DELETE FROM meta WHERE key IN ('generation', 'kv_floor') AND value GLOB '*[^0-9]*'")
    _drop_impossible_segments(db, segments)


def _drop_impossible_segments(db: sqlite3.Connection, folder: Path) -> None:
    """What the file itself does not say of it is found when it is compared with that; here it must be a size."""
    for segment_id, file, *numbers in db.execute(
        "SELECT id, file, row_count, size_bytes, block_count FROM segments"
    ).fetchall():
        if not catalogue.is_file_name(file):
            db.execute(
                "UPDATE chunks SET state = 0, segment_id = NULL, segment_row = NULL WHERE segment_id = ?", (segment_id,)
            )
            db.execute("DELETE FROM segments WHERE id = ?", (segment_id,))
            continue
        path = folder / file
        most = path.stat().st_size // _LEAST_ROW_BYTES if path.is_file() else 0
        row_count, size_bytes, block_count = (each if isinstance(each, int) and each >= 0 else 0 for each in numbers)
        (last,) = db.execute("SELECT max(segment_row) FROM chunks WHERE segment_id = ?", (segment_id,)).fetchone()
        if row_count > most:
            row_count = 0 if last is None else last + 1
        db.execute(
            "UPDATE segments SET row_count = ?, size_bytes = ?, block_count = ? WHERE id = ?",
            (row_count, size_bytes, block_count, segment_id),
        )


# ------------------------------------------------------------ documents and their passages


def _name_documents(db: sqlite3.Connection, known: Mapping[int, str]) -> list[Loss]:
    """Those whose record is not there: they get another one, or what is left of them goes."""
    there = set(documents.all_ids(db))
    paths = {row[0] for row in db.execute("SELECT path FROM documents")}
    strays = "SELECT document_id FROM chunks UNION SELECT document_id FROM document_texts"
    gone = {row[0] for row in db.execute(strays)} - there
    # An index that is damaged itself may say something of documents that are there.
    named = {number: path for number, path in known.items() if number not in there and path not in paths}
    losses = []
    if any(document_id not in named for document_id in gone):
        # Nobody knows which archive or mail such a one may have lain in.
        documents.delete_containers(db, list(documents.all_containers(db)))
    for document_id in sorted(gone, key=str):
        path = named.pop(document_id, lost_paths.path_of(document_id))
        if isinstance(document_id, int) and document_id > 0 and reinstate(db, document_id, path):
            losses.append(
                Loss(path, "its record cannot be read: its title and pages are gone until it is ingested again")
            )
        else:
            losses.append(Loss(path, _WITHOUT))
            _remove_content(db, document_id)
        _open_again(db, path)
    for path in named.values():
        losses.append(Loss(path, _WITHOUT))
        _open_again(db, path)
    db.execute("DELETE FROM document_tags WHERE document_id NOT IN (SELECT id FROM documents)")
    return losses


def _looked_at(db: sqlite3.Connection, document_id: int, database: Path) -> list[Loss]:
    """What is missing of a document that has a record."""
    (path,) = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
    parsed = _whole_document(db, document_id, database)
    if parsed is None:
        _remove_content(db, document_id)
        documents.delete_document(db, document_id)
        db.execute("DELETE FROM document_tags WHERE document_id = ?", (document_id,))
        return [Loss(path, _AGAIN)]
    length = len(parsed.text)
    db.execute('DELETE FROM chunks WHERE document_id = ? AND "end" > ?', (document_id, length))
    count, last, end = db.execute(
        'SELECT count(DISTINCT ordinal), max(ordinal), max("end") FROM chunks WHERE document_id = ?', (document_id,)
    ).fetchone()
    missing = 0 if last is None else last + 1 - count
    ends_early = bool(parsed.text[end or 0 :].strip())
    if not missing and not ends_early:
        return []
    known = [stored.chunk for stored in chunks.read_chunks(db, chunks.chunk_ids_of(db, document_id))]
    whole = recut(parsed, known)
    chunks.write_chunks(db, document_id, parsed, whole, kv_versions=[1] * len(whole))
    _read_again(db, document_id)
    _open_again(db, path)
    which = f"{missing} of its passages" if missing else "its last passages" if end else "its passages"
    return [Loss(path, f"{which} could not be read: they are cut anew out of its text until it is ingested again")]


def _whole_document(db: sqlite3.Connection, document_id: int, database: Path) -> ParsedDocument | None:
    """None where record or text is not what was stored: nothing of it could be cited."""
    stored, *structure = db.execute(
        f"SELECT structure_sum, {STRUCTURE} FROM documents WHERE id = ?",  # noqa: S608 - our own names
        (document_id,),
    ).fetchone()
    if stored != row_sum(structure):
        return None
    try:
        with translated(database):
            parsed = documents.parsed_document(db, document_id)
            lengths = [
                len(zlib.decompress(body).decode("utf-8", "surrogatepass"))
                for (body,) in db.execute("SELECT body FROM document_texts WHERE document_id = ?", (document_id,))
            ]
    except (EdgeragError, zlib.error, TypeError, ValueError):
        return None
    return parsed if sum(lengths) == len(parsed.text) else None  # else it has a part of another's


def _remove_content(db: sqlite3.Connection, document_id: object) -> None:
    db.execute("DELETE FROM chunks WHERE document_id IS ?", (document_id,))
    db.execute("DELETE FROM document_texts WHERE document_id IS ?", (document_id,))


def _read_again(db: sqlite3.Connection, document_id: int) -> None:
    """The next ingest takes its file for another one."""
    db.execute("UPDATE documents SET content_sha256 = '', mtime_ns = ? WHERE id = ?", (UNREAD_NS, document_id))
    sum_document(db, document_id)


def _open_again(db: sqlite3.Connection, path: str) -> None:
    """The archives and mails that a document lies in count as not read to their end."""
    parts = path.split(MEMBER_MARK)
    documents.delete_containers(db, [MEMBER_MARK.join(parts[:count]) for count in range(1, len(parts) + 1)])


# ------------------------------------------------------------ vectors


def _place_vectors(db: sqlite3.Connection) -> None:
    """Passages whose vector is nowhere wait to be embedded; rows of segments that no passage claims are removed."""
    db.execute("DELETE FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks WHERE state = 1)")
    for chunk_id, stored in db.execute("SELECT chunk_id, vector FROM vectors").fetchall():
        try:
            stored_vectors([(chunk_id, stored)], dimension=(len(stored) // 4 if isinstance(stored, bytes) else 0) - 1)
        except LibraryDamaged:
            db.execute("DELETE FROM vectors WHERE chunk_id = ?", (chunk_id,))
    db.execute("UPDATE chunks SET state = 0 WHERE state = 1 AND id NOT IN (SELECT chunk_id FROM vectors)")
    db.execute("DELETE FROM tombstones")
    for segment_id, row_count in db.execute("SELECT id, row_count FROM segments").fetchall():
        rows, _ = catalogue.placements(db, segment_id)
        live: Collection[int] = set(rows.tolist())
        db.executemany(
            "INSERT INTO tombstones (segment_id, segment_row) VALUES (?, ?)",
            ((segment_id, row) for row in range(row_count) if row not in live),
        )
    catalogue.changed(db)
