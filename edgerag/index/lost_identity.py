"""Which embedder made a library whose ``meta`` does not say so any more: its segments do, each in its header.

Where there are none, nothing tells whose the vectors are that lie in the database. Then the library is given another
embedder, and all its passages wait to be embedded by that: their texts are worth more than their vectors.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import EdgeragError, LibraryDamaged
from edgerag.index import catalogue
from edgerag.index.hnsw import format as layout
from edgerag.index.identity import identity_in, put_identity
from edgerag.types import EmbedderIdentity

_ANY_LANGUAGE = ("*",)  # a header does not name them


def settle_identity(
    db: sqlite3.Connection, database: Path, segments: Path, *, key: LibraryKey | None, wanted: EmbedderIdentity | None
) -> bool:
    """Writes it into ``meta``; False where it is ``wanted``, because nothing tells which one it was. To be called in a
    transaction. Raises LibraryDamaged where that is None, too."""
    if _is_named(db):
        return True
    found = _of_segments(db, segments, key)
    if found is not None:
        put_identity(db, wanted if wanted is not None and wanted.is_same_as(found) else found)
        return True
    if wanted is None:
        raise LibraryDamaged(
            f"{database} does not say any more which embedder made it. Its texts can be had again.",
            remedy="Provide an embedder (edgerag models list), then run `edgerag library repair` again: the passages"
            " are embedded anew by that one.",
        )
    put_identity(db, wanted)
    db.execute("UPDATE chunks SET state = 0, segment_id = NULL, segment_row = NULL")
    for table in ("vectors", "tombstones", "segments"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
    return False


def _is_named(db: sqlite3.Connection) -> bool:
    """Whether ``meta`` does; also where the row is there and its key is what was damaged."""
    values = db.execute("SELECT CAST(value AS BLOB) FROM meta ORDER BY key <> 'embedder'").fetchall()
    for (value,) in values:
        try:
            text = value.decode("utf-8")
            db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('embedder', ?)", (text,))
            if identity_in(db, where="meta") is not None:
                return True
        except (LibraryDamaged, UnicodeDecodeError):
            continue
    db.execute("DELETE FROM meta WHERE key = 'embedder'")
    return False


def _of_segments(db: sqlite3.Connection, folder: Path, key: LibraryKey | None) -> EmbedderIdentity | None:
    """As most of those that the database lists say; of all that lie there where it lists none."""
    listed = [file for (file,) in db.execute("SELECT file FROM segments") if catalogue.is_file_name(file)]
    paths = [folder / file for file in listed] or sorted(folder.glob("*.hnsw"))
    found: Counter[EmbedderIdentity] = Counter()
    for path in paths:
        try:
            header = layout.read_header(path, identity=None, key=key)
        except (EdgeragError, OSError):
            continue  # a damaged one says nothing
        found[EmbedderIdentity(header.model_name, header.weights_sha256, header.dimension, _ANY_LANGUAGE)] += 1
    return found.most_common(1)[0][0] if found else None
