"""A new database out of what can be read of a damaged one: ids stay, words are made anew, what is lost is named.

Rows are copied inside SQLite, in ranges that are halved where one cannot be read: a bad page costs its own rows. Each
range is a transaction of its own: within one that has met a bad page, SQLite reads no good one either.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from edgerag.encryption.database import connect, key_clause
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import RESTORE_LIBRARY, EdgeragError, LibraryDamaged
from edgerag.index import catalogue, chunks, documents, kv_keys
from edgerag.index.migrations import STEPS, version_of
from edgerag.index.row_sums import PLACE, row_sum, stored_vectors, sum_document
from edgerag.index.store import Store, translated
from edgerag.private_database import writing_uri

_BY_ID = ("documents", "chunks", "segments", "kv_retired", "kv_outbox")
_WITH_NUMBERS = ("document_texts", "vectors")  # with a rowid that is no AUTOINCREMENT
_BY_KEY = ("meta", "tombstones", "document_tags", "containers", "failures", "mounts", "left_out")
_MOST_UNREADABLE = 20_000  # ids of a table tried one by one; more than that is a file that is mostly gone
_LAST_ID = 1 << 20  # where not even the last row can be found: more rows than a library of usual size has


@dataclass(frozen=True, slots=True)
class Loss:
    """A document of which something is gone."""

    path: str
    what: str


# Of what no row of another table tells: by table, what is said where some of its rows could not be read.
_LOST_ROWS = {
    "documents": Loss("documents", "the records of some could not be read: ingest their folders again"),
    "document_tags": Loss("tags", "some could not be read: give them again with `edgerag tag`"),
    "containers": Loss("archives and mails", "some are not known as read any more: the next ingest opens them again"),
    "failures": Loss("files that failed", "some are not known any more: the next ingest tries them again"),
    "left_out": Loss("files that were left out", "some are not known any more: the next ingest finds them again"),
    "mounts": Loss(
        "mounted folders", "some are not known any more: ingest them while they are mounted, or their documents may go"
    ),
}
# Without these a state that the model made of an older text could be taken for that of a newer one.
_VERSIONS_OF_STATES = frozenset({"meta", "kv_retired", "kv_outbox"})


def salvage(database: Path, workshop: Path, *, key: LibraryKey | None = None) -> list[Loss]:
    """Makes ``library.sqlite`` in ``workshop``. Raises LibraryDamaged where the old one does not list its tables."""
    with translated(database):
        version = _version_of(database, key)
    # A library of an older version is mended as such.
    store = Store(workshop, mode="write", steps=STEPS[:version], key=key)
    try:
        with translated(database), store.writing():
            pass  # made
        with translated(database):
            unreadable = _copy(store.connection, database, key)
    finally:
        store.close()
    store = Store(workshop, mode="write", unchecked=True, key=key)  # and brought to the newest version
    try:
        db = store.connection
        db.execute("PRAGMA foreign_keys = OFF")
        with store.writing():
            losses = _put_in_order(db, database)
            if "chunks" in unreadable:
                losses += _ends_lost(db)
            losses += [_LOST_ROWS[table] for table in unreadable if table in _LOST_ROWS]
            if not _VERSIONS_OF_STATES.isdisjoint(unreadable):
                kv_keys.forget_everything(db)
        for document_id in documents.all_ids(db):
            with store.writing():
                parsed = documents.parsed_document(db, document_id)
                chunks.analyse_again(db, document_id, parsed)
                documents.set_language(db, document_id, parsed.language)
    finally:
        store.close()
    return losses


def _version_of(database: Path, key: LibraryKey | None) -> int:
    """Raises LibraryDamaged for none that this program knows."""
    connection = connect(database, key=key)
    try:
        version = version_of(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise LibraryDamaged(f"{database} cannot be opened: {error}.", remedy=RESTORE_LIBRARY) from error
    finally:
        connection.close()
    if not 0 < version <= len(STEPS):
        raise _unknown(database)
    return version


def _unknown(database: Path) -> LibraryDamaged:
    return LibraryDamaged(f"{database} does not say any more what it holds.", remedy=RESTORE_LIBRARY)


def _copy(db: sqlite3.Connection, database: Path, key: LibraryKey | None) -> list[str]:
    """Into a database of the same version; gives the tables of which something could not be read."""
    db.execute("PRAGMA foreign_keys = OFF")
    try:
        db.execute(f"ATTACH DATABASE ? AS damaged{key_clause(key)}", (f"{writing_uri(database)}?mode=ro&immutable=1",))
        known = {row[0] for row in db.execute("SELECT name FROM damaged.sqlite_schema WHERE type = 'table'")}
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise LibraryDamaged(f"{database} cannot be opened: {error}.", remedy=RESTORE_LIBRARY) from error
    # A damaged number of an older version would have new checksums made of rows that do not match theirs.
    if "documents" not in known or _columns(db, "documents", of="damaged") != _columns(db, "documents"):
        raise _unknown(database)
    try:
        # Of a later version there are more tables.
        there = [table for table in (*_BY_ID, *_WITH_NUMBERS) if _columns(db, table)]
        unreadable = [table for table in there if not _copy_ranges(db, table)]
        unreadable += [table for table in _BY_KEY if _columns(db, table) and not _copy_keyed(db, table)]
    finally:
        db.execute("DETACH DATABASE damaged")
    return unreadable


def _copy_ranges(db: sqlite3.Connection, table: str) -> bool:
    """Whether every row could be read. From the first on: ids behind the last row may look like lost ones."""
    columns = _columns(db, table)
    rowid = "" if "id" in columns.split(", ") else "rowid, "
    last = _last_id(db, table)
    unreadable = 0
    ranges = [(1, last)] if last > 0 else []
    while ranges:
        first, last = ranges.pop()
        try:
            db.execute(
                f"INSERT OR IGNORE INTO main.{table} ({rowid}{columns})"  # noqa: S608
                f" SELECT {rowid}{columns} FROM damaged.{table} WHERE rowid BETWEEN ? AND ?",
                (first, last),
            )
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            if first == last:
                unreadable += 1
                if unreadable > _MOST_UNREADABLE:
                    return False
                continue
            middle = (first + last) // 2
            ranges += [(middle + 1, last), (first, middle)]
    return not unreadable


def _last_id(db: sqlite3.Connection, table: str) -> int:
    """Of a row of the damaged table, or one above it."""
    for query, values in (
        (f"SELECT max(rowid) FROM damaged.{table}", ()),  # noqa: S608 - our own names
        ("SELECT seq FROM damaged.sqlite_sequence WHERE name = ?", (table,)),
    ):
        try:
            row = db.execute(query, values).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            continue
        if row is not None:
            return row[0] if isinstance(row[0], int) else 0
    return _LAST_ID


def _copy_keyed(db: sqlite3.Connection, table: str) -> bool:
    """Whether every row could be read: from the beginning up to what cannot be, from the end back to it, and out of an
    index that holds all columns."""
    columns = _columns(db, table)
    source = f"SELECT {columns} FROM damaged.{table}"  # noqa: S608 - our own names
    backwards = ", ".join(f"{name} DESC" for name in _key_of(db, table))
    for way in ("", f" ORDER BY {backwards}", *_by_index(table)):
        rows, is_all = _readable(db, source + way)
        db.execute(f"INSERT OR IGNORE INTO main.{table} ({columns}) {source}{way} LIMIT ?", (rows,))
        if is_all:
            return True
    return False


def _readable(db: sqlite3.Connection, query: str) -> tuple[int, bool]:
    """(rows that it gives, whether these are all)"""
    rows = 0
    try:
        for _ in db.execute(query):
            rows += 1
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return rows, False
    return rows, True


def _key_of(db: sqlite3.Connection, table: str) -> list[str]:
    parts = [(row[5], row[1]) for row in db.execute(f"PRAGMA main.table_info({table})") if row[5]]
    return [name for _, name in sorted(parts)]


def _by_index(table: str) -> list[str]:
    return [" INDEXED BY tags_of_document"] if table == "document_tags" else []


def _columns(db: sqlite3.Connection, table: str, *, of: str = "main") -> str:
    names = (row[1] for row in db.execute(f"PRAGMA {of}.table_info({table})"))
    return ", ".join('"end"' if name == "end" else name for name in names)


# ------------------------------------------------------------ what was copied, made consistent


def _put_in_order(db: sqlite3.Connection, database: Path) -> list[Loss]:
    embedder = db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    if embedder is None:
        raise LibraryDamaged(f"{database} does not say any more which embedder made it.", remedy=RESTORE_LIBRARY)
    db.execute("DELETE FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks WHERE state = 1)")
    losses = _drop_damaged_chunks(db)
    losses += _drop_damaged_documents(db)
    _drop_damaged_vectors(db)
    db.execute("DELETE FROM document_texts WHERE document_id NOT IN (SELECT id FROM documents)")
    db.execute("DELETE FROM document_tags WHERE document_id NOT IN (SELECT id FROM documents)")
    # Rows of segments that do not exist any more; those of others are counted anew.
    db.execute(
        "UPDATE chunks SET state = 0, segment_id = NULL, segment_row = NULL"
        " WHERE state = 2 AND segment_id NOT IN (SELECT id FROM segments)"
    )
    db.execute("DELETE FROM tombstones")
    for segment_id, row_count in db.execute("SELECT id, row_count FROM segments").fetchall():
        rows, _ = catalogue.placements(db, segment_id)
        live = set(rows.tolist())
        db.executemany(
            "INSERT INTO tombstones (segment_id, segment_row) VALUES (?, ?)",
            ((segment_id, row) for row in range(row_count) if row not in live),
        )
    catalogue.changed(db)
    return losses


def _drop_damaged_chunks(db: sqlite3.Connection) -> list[Loss]:
    """Passages whose row is not what was stored; their documents are read again by the next ingest."""
    bad: dict[int, int] = {}  # document: passages
    for chunk_id, stored, *place in db.execute(f"SELECT id, sum, {PLACE} FROM chunks").fetchall():  # noqa: S608
        if stored != row_sum(place):
            bad[place[0]] = bad.get(place[0], 0) + 1
            chunks.remove_chunks(db, [chunk_id])
    for document_id, count, last in db.execute(
        "SELECT document_id, count(*), max(ordinal) FROM chunks GROUP BY document_id"
    ).fetchall():
        if last + 1 > count:
            bad[document_id] = max(bad.get(document_id, 0), last + 1 - count)
    db.execute("DELETE FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)")
    losses = []
    for document_id, count in bad.items():
        row = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
        if row is not None:
            _read_again(db, document_id)
            losses.append(Loss(row[0], f"{count} of its passages are gone until it is ingested again"))
    return losses


def _ends_lost(db: sqlite3.Connection) -> list[Loss]:
    """Documents whose last passages are not there: no other passage tells of them, but their text does."""
    losses = []
    for document_id in documents.all_ids(db):
        (end,) = db.execute('SELECT max("end") FROM chunks WHERE document_id = ?', (document_id,)).fetchone()
        if documents.parsed_document(db, document_id).text[end or 0 :].strip():
            (path,) = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
            _read_again(db, document_id)
            which = "its last passages" if end else "its passages"
            losses.append(Loss(path, f"{which} are gone until it is ingested again"))
    return losses


def _read_again(db: sqlite3.Connection, document_id: int) -> None:
    """The next ingest takes its file for another one."""
    row = db.execute("SELECT facts_sum FROM documents WHERE id = ?", (document_id,)).fetchone()
    facts_hold = row[0] == row_sum(db.execute(_FACTS_OF, (document_id,)).fetchone())
    db.execute("UPDATE documents SET content_sha256 = '', mtime_ns = -1 WHERE id = ?", (document_id,))
    if facts_hold:  # else it is dropped with its sums as they are
        sums = db.execute("SELECT structure_sum FROM documents WHERE id = ?", (document_id,)).fetchone()
        sum_document(db, document_id)
        db.execute("UPDATE documents SET structure_sum = ? WHERE id = ?", (*sums, document_id))


_FACTS_OF = "SELECT path, root, title, media_type, content_sha256, dated_ns FROM documents WHERE id = ?"


def _drop_damaged_documents(db: sqlite3.Connection) -> list[Loss]:
    """Those whose record or text is not what was stored: nothing of them could be cited."""
    losses = []
    stray = db.execute("SELECT DISTINCT document_id FROM chunks WHERE document_id NOT IN (SELECT id FROM documents)")
    for (document_id,) in stray.fetchall():
        chunks.remove_chunks(db, chunks.chunk_ids_of(db, document_id))
        losses.append(Loss(f"document #{document_id}", "its record cannot be read: ingest its folder again"))
    for document_id in documents.all_ids(db):
        try:
            documents.parsed_document(db, document_id)
        except EdgeragError as error:
            (path,) = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
            chunks.remove_chunks(db, chunks.chunk_ids_of(db, document_id))
            documents.delete_document(db, document_id)
            losses.append(Loss(str(path), f"{error.message} It was taken out: ingest its folder again"))
    return losses


def _drop_damaged_vectors(db: sqlite3.Connection) -> None:
    """Their passages wait to be embedded again."""
    for chunk_id, stored in db.execute("SELECT chunk_id, vector FROM vectors").fetchall():
        try:
            stored_vectors([(chunk_id, stored)], dimension=(len(stored) // 4 if isinstance(stored, bytes) else 0) - 1)
        except LibraryDamaged:
            db.execute("DELETE FROM vectors WHERE chunk_id = ?", (chunk_id,))
    db.execute("UPDATE chunks SET state = 0 WHERE state = 1 AND id NOT IN (SELECT chunk_id FROM vectors)")
