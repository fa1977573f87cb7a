"""Statements about the versions of chunks' texts, and the news of states that are out of date.

A chunk's version counts up when its text, its headings or the document's title change, and stays when they do not.
With it, the name of a state (kv_names.py) stands for one text, for ever: a version is not used again, neither after
the document was removed nor after it got shorter. The versions in use stand in ``chunks.kv_version``; ``kv_retired``
holds the highest that went with a document's chunks.

The states themselves are kept elsewhere, by a part that this one does not know. What has to be done to them is
written into ``kv_outbox`` by the transaction that makes it necessary, and stays there until it is settled, so that
a removed document's states go even when the process ends between the commit and their removal.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from edgerag.index.chunks import embedding_key
from edgerag.index.kv_names import chunk_name, document_hash, document_name
from edgerag.index.store import damaged_row, sql_text, stored_json
from edgerag.types import Chunk, KvChanges

# Documents that are gone and whose versions are remembered one by one; of older ones, the highest of all.
MOST_RETIRED = 10_000
# News that nobody takes (a library that is only ever ingested into); beyond, one row says that all states have to go.
MOST_NEWS = 20_000

_EVERYTHING = ""  # in place of a document's hash
_FLOOR = "kv_floor"  # in ``meta``: versions up to this one may have been used by any document that is not known


@dataclass(frozen=True, slots=True)
class Earlier:
    """A document as it was: its title's bytes, and per ordinal version, embedding key and headings (JSON)."""

    document_id: int
    title: bytes
    chunks: dict[int, tuple[int, bytes, str]]


# ---------------------------------------------------------------- a document is put or removed


def earlier(db: sqlite3.Connection, path: str) -> Earlier | None:
    """The document of that path before it is replaced."""
    row = db.execute(
        "SELECT id, CAST(title AS BLOB) FROM documents WHERE path = CAST(? AS TEXT)", (sql_text(path),)
    ).fetchone()
    if row is None:
        return None
    chunks = db.execute(
        "SELECT ordinal, kv_version, embedding_key, heading_path FROM chunks WHERE document_id = ?", (row[0],)
    )
    return Earlier(row[0], row[1], {ordinal: (version, key, headings) for ordinal, version, key, headings in chunks})


def replace(
    db: sqlite3.Connection, path: str, before: Earlier | None, *, title: str, chunks: Sequence[Chunk]
) -> list[int]:
    """The versions of ``chunks``, which take the place of ``before``; what that deprecates goes to the outbox."""
    document = document_hash(path)
    retired = _retired(db, document)
    if before is None:
        return [retired + 1] * len(chunks)
    stored_title = sql_text(title)
    same_title = before.title == (stored_title if isinstance(stored_title, bytes) else stored_title.encode("utf-8"))
    gone = dict(before.chunks)
    versions: list[int] = []
    news: list[tuple[str, int, int]] = []
    for chunk in chunks:
        if (old := gone.pop(chunk.ordinal, None)) is None:
            versions.append(retired + 1)
            continue
        version, key, headings = old
        chunk_name(document, chunk.ordinal, version)  # raises LibraryDamaged for what is no number
        if same_title and key == embedding_key(chunk) and headings == json.dumps(chunk.heading_path):
            versions.append(version)
        else:
            versions.append(version + 1)
            news.append((document, chunk.ordinal, version))
    for ordinal, (version, _, _) in gone.items():
        chunk_name(document, ordinal, version)
        news.append((document, ordinal, version))
    if gone:
        _retire(db, document, max(retired, *(version for version, _, _ in gone.values())))
    _tell(db, news)
    return versions


def remove(db: sqlite3.Connection, document_id: int) -> None:
    """To be called before the document is deleted: all its states have to go."""
    row = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
    if row is None:
        return
    document = document_hash(row[0])
    (version,) = db.execute("SELECT max(kv_version) FROM chunks WHERE document_id = ?", (document_id,)).fetchone()
    if version is not None:
        chunk_name(document, 0, version)
        _retire(db, document, max(version, _retired(db, document)))
    _tell(db, [(document, None, None)])


def restart(db: sqlite3.Connection, document_id: int, path: str) -> None:
    """To be called after :func:`remove` and after the document was given ``path``: versions begin behind all that a
    document of that path had."""
    document = document_hash(path)
    db.execute("UPDATE chunks SET kv_version = ? WHERE document_id = ?", (_retired(db, document) + 1, document_id))


def _retired(db: sqlite3.Connection, document: str) -> int:
    """The highest version that a chunk of this document had when it went; 0 if none ever went."""
    row = db.execute("SELECT version FROM kv_retired WHERE document = ?", (document,)).fetchone()
    return _floor(db) if row is None else _version(row[0])


def _floor(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_FLOOR,)).fetchone()
    return 0 if row is None else _version(stored_json(row[0], int))


def _version(value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise damaged_row(f"{value!r} is no version of a chunk")
    return value


def _retire(db: sqlite3.Connection, document: str, version: int) -> None:
    db.execute("INSERT OR REPLACE INTO kv_retired (document, version) VALUES (?, ?)", (document, version))
    (count,) = db.execute("SELECT count(*) FROM kv_retired").fetchone()
    if count > MOST_RETIRED:
        # Half of them at once, so that this is seldom.
        (first,) = db.execute("SELECT id FROM kv_retired ORDER BY id LIMIT 1 OFFSET ?", (count // 2,)).fetchone()
        (highest,) = db.execute("SELECT max(version) FROM kv_retired WHERE id < ?", (first,)).fetchone()
        floor = max(_floor(db), _version(highest))
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_FLOOR, str(floor)))
        db.execute("DELETE FROM kv_retired WHERE id < ?", (first,))


# ---------------------------------------------------------------- the outbox


def _tell(db: sqlite3.Connection, news: Sequence[tuple[str, int | None, int | None]]) -> None:
    if not news:
        return
    db.executemany("INSERT INTO kv_outbox (document, ordinal, version) VALUES (?, ?, ?)", news)
    (count,) = db.execute("SELECT count(*) FROM kv_outbox").fetchone()
    if count > MOST_NEWS:
        forget_everything(db)


def forget_everything(db: sqlite3.Connection) -> None:
    """All states have to go: what was said about versions is not known any more."""
    db.execute("DELETE FROM kv_outbox")
    db.execute("INSERT INTO kv_outbox (document) VALUES (?)", (_EVERYTHING,))


def changes(db: sqlite3.Connection, *, since: int) -> KvChanges:
    """What is not settled of the changes after number ``since``. Raises LibraryDamaged."""
    through, everything = since, False
    deprecated: list[str] = []
    dropped: dict[str, None] = {}
    for number, document, ordinal, version in db.execute(
        "SELECT id, document, ordinal, version FROM kv_outbox WHERE id > ? ORDER BY id", (since,)
    ):
        through = number
        if document == _EVERYTHING:
            everything = True
        elif ordinal is None and version is None:
            dropped[document_name(document)] = None
        else:
            deprecated.append(chunk_name(document, ordinal, version))
    return KvChanges(through, tuple(deprecated), tuple(dropped), everything)


def settle(db: sqlite3.Connection, *, through: int) -> None:
    """Forgets the changes up to that number."""
    db.execute("DELETE FROM kv_outbox WHERE id <= ?", (through,))


def check(db: sqlite3.Connection) -> None:
    """Raises LibraryDamaged for a row that nobody wrote. The versions in use are checked where chunks are read."""
    changes(db, since=0)
    for document, version in db.execute("SELECT document, version FROM kv_retired"):
        chunk_name(document, 0, version)
