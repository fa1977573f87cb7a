"""Whether a database is what it should be, by every check that needs no checksum of a row.

SQLite's own check of its pages and indexes, references between rows, the keyword index against what it was made of, and
texts against the Adler-32 that zlib gave them and their length. Works for every version of the schema, and for tables
that a version does not have yet.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable

_MOST_FAULTS = 20
_NOT_OF_THE_FILE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_INTERRUPT,
)


def _tell_nobody(_count: int) -> None:
    """Of a look that nobody watches."""


def structure_damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite's own checks find; empty when it is whole. Raises sqlite3.Error for what is no damage."""
    try:
        rows = db.execute(f"PRAGMA integrity_check({_MOST_FAULTS})").fetchall()
        faults = db.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FAULTS)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return [_as_damage(error)]
    said = [str(row[0]) for row in rows if row[0] != "ok"]
    return said + [f"row {row[1]} of {row[0]} refers to nothing" for row in faults]


def words_damage(db: sqlite3.Connection) -> str:
    """What FTS5's own check finds; "" for a whole one. That check counts as writing, and nothing is written."""
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO chunk_words (chunk_words) VALUES ('integrity-check')")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return f"the keyword index: {_as_damage(error)}"
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
    return ""


def text_damage(db: sqlite3.Connection, *, looked_at: Callable[[int], None] = _tell_nobody) -> list[str]:
    """Documents whose text cannot be unpacked, or has another length than it had. ``looked_at`` is told their number
    so far."""
    faults = []
    try:
        documents = db.execute("SELECT id, text_length FROM documents ORDER BY id")
        for number, (document_id, length) in enumerate(documents, start=1):
            looked_at(number)
            parts = db.execute("SELECT body FROM document_texts WHERE document_id = ? ORDER BY part", (document_id,))
            try:
                found = sum(len(zlib.decompress(body).decode("utf-8", "surrogatepass")) for (body,) in parts)
            except (zlib.error, TypeError, ValueError) as error:
                faults.append(f"the text of document #{document_id} cannot be read: {error}")
                continue
            if found != length:
                faults.append(f"the text of document #{document_id} has {found} characters in place of {length}")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        faults.append(_as_damage(error))
    return faults[:_MOST_FAULTS]


def damage(db: sqlite3.Connection, *, looked_at: Callable[[int], None] = _tell_nobody) -> list[str]:
    """All of it, as far as there are such tables; ``db`` may write and has no transaction open. ``looked_at``: as of
    :func:`text_damage`."""
    if faults := structure_damage(db):
        return faults  # what else is found in a broken structure means nothing
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if "document_texts" in tables:
        faults += text_damage(db, looked_at=looked_at)
    if "chunk_words" in tables and (words := words_damage(db)):
        faults.append(words)
    return faults


def _as_damage(error: sqlite3.DatabaseError | UnicodeDecodeError) -> str:
    """In words. Raises it again where it says nothing about the file: no room, no memory, in use, stopped."""
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if primary in _NOT_OF_THE_FILE:
        raise error
    return str(error)
