"""A damaged database that does not list its tables any more is lent the list of a new one.

The first step of the schema makes its tables in an empty file, so that their trees begin at the same pages in every
library: documents, texts, passages, vectors. Where the list of tables cannot be read, a copy of the file is given a
first page and a list as a new library of its version has them; the list lies behind all that the file had. What later
steps made begins elsewhere in a library that grew with the program, and is not looked for. Where the head of the file
is gone, too, with the version in it, rows whose checksums hold by the newest tables say that it was right. Encrypted
pages have no place to be exchanged in: of those this is not done.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from edgerag.beside_sqlite import open_beside_sqlite
from edgerag.encryption.database import connect
from edgerag.errors import RESTORE_LIBRARY, LibraryDamaged
from edgerag.index.migrations import APPLICATION_ID, STEPS
from edgerag.index.row_sums import FACTS, STRUCTURE, row_sum
from edgerag.index.store import DATABASE_NAME, Store
from edgerag.private_database import private_opener

# Tables of the first step that no later one has made anew.
LENT_TABLES = frozenset({"meta", "documents", "document_texts", "segments", "chunks", "vectors", "tombstones"})

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100  # of the file, before the first page's own (sqlite.org/fileformat.html)
_PAGE_BYTES, _PAGE_COUNT, _VERSION, _APPLICATION = slice(16, 18), slice(28, 32), slice(60, 64), slice(68, 72)
_INNER = 5  # the kind of a page of a table that names other pages
_INNER_HEAD_BYTES = 12


def lend_schema(database: Path, workshop: Path) -> tuple[Path, int]:
    """Makes the copy in ``workshop``: (copy, version). Raises LibraryDamaged where nothing tells that this is a library
    at all."""
    with open_beside_sqlite(database) as stream:
        head = stream.read(_HEADER_BYTES)
    version = int.from_bytes(head[_VERSION], "big")
    application = int.from_bytes(head[_APPLICATION], "big")
    new = _new(workshop / "new", len(STEPS))
    says = head.startswith(_MAGIC) and application == APPLICATION_ID and 0 < version <= len(STEPS)
    if says and head[_PAGE_BYTES] == new[_PAGE_BYTES]:
        if version < len(STEPS):
            new = _new(workshop / "older", version)
        return _lent(database, workshop, new, head), version
    copy = _lent(database, workshop, new, head=None)
    if not _holds_documents(copy):
        raise LibraryDamaged(f"{database} does not say any more what it holds.", remedy=RESTORE_LIBRARY)
    return copy, len(STEPS)


def _holds_documents(copy: Path) -> bool:
    """Whether a record of a document can be read that matches its checksums: by other tables none would."""
    columns = f"facts_sum, {FACTS}, structure_sum, {STRUCTURE}"
    count = FACTS.count(",") + 2
    connection = connect(copy)
    try:
        for row in connection.execute(f"SELECT {columns} FROM documents NOT INDEXED"):  # noqa: S608 - our own names
            if (row[0], row[count]) == (row_sum(row[1:count]), row_sum(row[count + 1 :])):
                return True
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    finally:
        connection.close()
    return False


def _lent(database: Path, workshop: Path, new: bytes, head: bytes | None) -> Path:
    """A copy of the database that has the list of tables of ``new``."""
    page_bytes = int.from_bytes(new[_PAGE_BYTES], "big")
    copy = workshop / "lent.sqlite"
    with open_beside_sqlite(database) as source, open(copy, "wb", opener=private_opener) as target:
        shutil.copyfileobj(source, target)
        said_pages = 0 if head is None else int.from_bytes(head[_PAGE_COUNT], "big")
        size_pages = max(said_pages, -(-target.tell() // page_bytes))
        first = bytearray(new[:page_bytes])
        for place in _children(first):  # of the list, in two levels at most
            number = int.from_bytes(first[place : place + 4], "big")
            target.seek(size_pages * page_bytes)
            target.write(new[(number - 1) * page_bytes : number * page_bytes])
            size_pages += 1
            first[place : place + 4] = size_pages.to_bytes(4, "big")
        first[_PAGE_COUNT] = size_pages.to_bytes(4, "big")
        target.seek(0)
        target.write(first)
    return copy


def _new(folder: Path, version: int) -> bytes:
    """A new library of that version, as bytes."""
    folder.mkdir(mode=0o700)
    store = Store(folder, mode="write", steps=STEPS[:version])
    store.connection.execute("PRAGMA journal_mode = DELETE").fetchone()  # folds the log
    store.close()
    return (folder / DATABASE_NAME).read_bytes()


def _children(page: bytearray) -> list[int]:
    """Places in the first page at which it names others."""
    if page[_HEADER_BYTES] != _INNER:
        return []
    count = int.from_bytes(page[_HEADER_BYTES + 3 : _HEADER_BYTES + 5], "big")
    begin = _HEADER_BYTES + _INNER_HEAD_BYTES
    pointers = [int.from_bytes(page[at : at + 2], "big") for at in range(begin, begin + 2 * count, 2)]
    return [*pointers, _HEADER_BYTES + 8]
