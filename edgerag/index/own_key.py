"""Whether ``library.key`` is the library's own: a file of that name may come from another library, out of a backup that
was mixed up. Then nothing opens, and nothing is damaged."""

from __future__ import annotations

import contextlib
from pathlib import Path

from edgerag.beside_sqlite import open_beside_sqlite
from edgerag.encryption.key_record import FILE_NAME
from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.pages import fits_some_page
from edgerag.encryption.units import UnitDamaged, UnitReader
from edgerag.errors import LibraryDamaged, LibraryLocked
from edgerag.index import at_rest
from edgerag.index.hnsw.source import role_of
from edgerag.index.segments import FOLDER_NAME as SEGMENTS
from edgerag.index.store import DATABASE_NAME, translated

_PLAIN = b"SQLite format 3\0"


def refuse_beside_plain(folder: Path) -> None:
    """To be called where there is such a file: raises LibraryLocked for a library that is not encrypted."""
    database = folder / DATABASE_NAME
    with translated(database):
        if not database.is_file():
            return
        with open_beside_sqlite(database) as stream:
            is_plain = stream.read(len(_PLAIN)) == _PLAIN
    if is_plain:
        raise LibraryLocked(
            f"The library in {folder} is not encrypted, and the {FILE_NAME} in its folder is not its own.",
            remedy=f"Move {FILE_NAME} out of the folder: the library opens without it.",
        )


def refuse_another(folder: Path, key: LibraryKey) -> None:
    """Raises LibraryLocked where nothing in the folder was written with ``key``, and nothing says that it is damaged.
    A library whose first document is still to come fits any key."""
    database = folder / DATABASE_NAME
    with translated(database):
        if not database.is_file() or not database.stat().st_size or fits_some_page(database, key):
            return
        if _fits_some_segment(folder / SEGMENTS, key) or _is_damaged(folder, database):
            return  # whoever opens it says so
    raise LibraryLocked(
        f"The {FILE_NAME} in {folder} is not this library's: it opens, and nothing in the folder was encrypted by it.",
        remedy=f"Put the library's own {FILE_NAME} there, from a copy, a backup or an export of it: without that"
        " nothing of it can be read by anybody.",
    )


def _fits_some_segment(folder: Path, key: LibraryKey) -> bool:
    for path in sorted(folder.glob("*.hnsw")):
        with contextlib.suppress(UnitDamaged, OSError):  # opening one decrypts its last unit
            UnitReader(path, key, role_of(path)).close()
            return True
    return False


def _is_damaged(folder: Path, database: Path) -> bool:
    """Whether the checksums of its bytes, which need no key, do not match."""
    try:
        return bool(at_rest.damaged_blocks(folder, database))
    except LibraryDamaged:
        return False  # the sums are what is damaged: they say nothing of the database
