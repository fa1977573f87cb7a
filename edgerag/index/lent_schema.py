"""A damaged database that does not list its tables any more is lent the list of a new one.

The first step of the schema makes its tables in an empty file, so that their trees begin at the same pages in every
library: documents, texts, passages, vectors. Where the list of tables cannot be read, a copy of the file is given a
first page and a list as a new library of its version has them; the list lies behind all that the file had. What later
steps made begins elsewhere in a library that grew with the program, and is not looked for. Encrypted pages have no
place to be exchanged in: of those this is not done.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from edgerag.errors import RESTORE_LIBRARY, LibraryDamaged
from edgerag.index.migrations import APPLICATION_ID, STEPS
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
    """Makes the copy in ``workshop``: (copy, version). Raises LibraryDamaged where the file's head is gone, too."""
    with database.open("rb") as stream:
        head = stream.read(_HEADER_BYTES)
    version = int.from_bytes(head[_VERSION], "big")
    application = int.from_bytes(head[_APPLICATION], "big")
    if not head.startswith(_MAGIC) or application != APPLICATION_ID or not 0 < version <= len(STEPS):
        raise LibraryDamaged(f"{database} does not say any more what it holds.", remedy=RESTORE_LIBRARY)
    new = _new(workshop / "new", version)
    page_bytes = int.from_bytes(new[_PAGE_BYTES], "big")
    if head[_PAGE_BYTES] != new[_PAGE_BYTES]:
        raise LibraryDamaged(f"{database} does not say any more how long its pages are.", remedy=RESTORE_LIBRARY)
    copy = workshop / "lent.sqlite"
    with database.open("rb") as source, open(copy, "wb", opener=private_opener) as target:
        shutil.copyfileobj(source, target)
        size_pages = max(int.from_bytes(head[_PAGE_COUNT], "big"), -(-target.tell() // page_bytes))
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
    return copy, version


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
