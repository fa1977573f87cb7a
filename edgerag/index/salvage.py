"""A new database out of what can be read of a damaged one: ids stay, words are made anew, what is lost is named.

Of one that does not list its tables any more, they are looked for where they begin in every library (lent_schema.py).
What can be read and how it is told from what is wrong is in readable_rows.py, what is named in losses.py.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from edgerag.encryption.database import connect, key_clause
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import RESTORE_LIBRARY, LibraryDamaged
from edgerag.index import chunks, documents
from edgerag.index.lent_schema import LENT_TABLES, lend_schema
from edgerag.index.losses import Loss, put_in_order
from edgerag.index.migrations import STEPS, migrate, version_of
from edgerag.index.readable_rows import Copied, columns_of, copy_rows
from edgerag.index.store import Store, translated
from edgerag.private_database import writing_uri
from edgerag.types import EmbedderIdentity

# SQLite opens no file that is shorter than its first page says, but for those who say that they mend it.
MENDING = "PRAGMA writable_schema = ON"

_UNSYNCED = "PRAGMA synchronous = OFF"


def salvage(
    database: Path, workshop: Path, *, key: LibraryKey | None = None, wanted: EmbedderIdentity | None = None
) -> list[Loss]:
    """Makes ``library.sqlite`` in ``workshop``, not yet synced to the disk. ``wanted``: the embedder that it gets where
    nothing says any more which one it had. Raises LibraryDamaged where too little of the old one can be read."""
    source, tables = database, None
    with translated(database):
        version = _version_of(database, key)
        if version is None and key is None:
            (source, version), tables = lend_schema(database, workshop), LENT_TABLES
    if version is None:
        raise _unknown(database)
    # A library of an older version is mended as such.
    store = Store(workshop, mode="write", steps=STEPS[:version], key=key)
    try:
        store.connection.execute(_UNSYNCED)
        with translated(database), store.writing():
            pass  # made
        with translated(database):
            copied = _copy(store.connection, source, key, tables)
    finally:
        store.close()
    store = Store(workshop, mode="write", unchecked=True, key=key)  # and brought to the newest version
    try:
        db = store.connection
        db.execute(_UNSYNCED)
        db.execute("PRAGMA foreign_keys = OFF")
        with store.writing():
            losses = put_in_order(db, database, copied, key=key, wanted=wanted)
        for document_id in documents.all_ids(db):
            with store.writing():
                parsed = documents.parsed_document(db, document_id)
                chunks.analyse_again(db, document_id, parsed)
                documents.set_language(db, document_id, parsed.language)
    finally:
        store.close()
    return losses


def _version_of(database: Path, key: LibraryKey | None) -> int | None:
    """None where it does not list its tables. A number that is not that of its tables is put right where those have
    checksums for rows; else raises LibraryDamaged: checksums would be made of rows that nobody compared."""
    connection = connect(database, key=key)
    try:
        connection.execute(MENDING)
        version = version_of(connection)
        listed = columns_of(connection, "documents")
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
    finally:
        connection.close()
    if listed and not (0 < version <= len(STEPS) and listed == _documents_of(version)):
        if "facts_sum" not in listed or listed != _documents_of(len(STEPS)):
            raise _unknown(database)
        version = len(STEPS)
    return version if listed else None


def _unknown(database: Path) -> LibraryDamaged:
    return LibraryDamaged(f"{database} does not say any more what it holds.", remedy=RESTORE_LIBRARY)


def _documents_of(version: int) -> str:
    """The columns of ``documents`` in a version."""
    with contextlib.closing(connect(":memory:")) as db:
        migrate(db, where=":memory:", steps=STEPS[:version])
        return columns_of(db, "documents")


def _copy(db: sqlite3.Connection, database: Path, key: LibraryKey | None, tables: frozenset[str] | None) -> Copied:
    """Into a database of the same version."""
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute(MENDING)
    db.execute(f"ATTACH DATABASE ? AS damaged{key_clause(key)}", (f"{writing_uri(database)}?mode=ro&immutable=1",))
    try:
        return copy_rows(db, only=tables)
    finally:
        db.execute("DETACH DATABASE damaged")
