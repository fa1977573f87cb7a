"""Which embedder a library was made with: its vectors mean nothing to another."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from edgerag.errors import EmbedderMismatch, LibraryDamaged, UsageError
from edgerag.index.store import Store
from edgerag.types import EmbedderIdentity


def read_identity(store: Store) -> EmbedderIdentity | None:
    """The embedder that the library was made with; None for one that is just being made. Raises LibraryDamaged."""
    with store.reading() as db:
        return identity_in(db, where=str(store.path))


def identity_in(db: sqlite3.Connection, *, where: str) -> EmbedderIdentity | None:
    """The same, as of the view ``db``. Raises LibraryDamaged, naming ``where``."""
    row = db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    if row is None:
        return None
    try:
        value = json.loads(row[0])
        return EmbedderIdentity(
            name=str(value["name"]),
            weights_sha256=str(value["weights_sha256"]),
            dimension=int(value["dimension"]),
            languages=tuple(map(str, value["languages"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LibraryDamaged(f"{where} does not say which embedder it was made with: {error}.") from error


def write_identity(store: Store, identity: EmbedderIdentity) -> None:
    """Stores it in a new library. Raises UsageError for one without dimensions."""
    if identity.dimension < 1:
        raise UsageError(f"The embedder {identity.name!r} says it has {identity.dimension} dimensions.")
    with store.writing() as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('embedder', ?)", (_record(identity),))


def put_identity(db: sqlite3.Connection, identity: EmbedderIdentity) -> None:
    """Writes it, whatever ``meta`` said before; for a library that is mended."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('embedder', ?)", (_record(identity),))


def replace_identity(db: sqlite3.Connection, identity: EmbedderIdentity) -> None:
    """Names another embedder, in the transaction that puts its vectors in the place of the old ones."""
    db.execute("UPDATE meta SET value = ? WHERE key = 'embedder'", (_record(identity),))


def _record(identity: EmbedderIdentity) -> str:
    return json.dumps(
        {
            "name": identity.name,
            "weights_sha256": identity.weights_sha256,
            "dimension": identity.dimension,
            "languages": identity.languages,
        }
    )


def check_identity(folder: Path, stored: EmbedderIdentity, given: EmbedderIdentity | None) -> None:
    """Raises EmbedderMismatch if ``given`` is another embedder."""
    if given is None or stored.is_same_as(given):
        return
    raise EmbedderMismatch(
        f"The library in {folder} was made with the embedder {stored.name!r} ({stored.dimension} dimensions),"
        f" not with {given.name!r} ({given.dimension} dimensions).",
        remedy=f"Use {stored.name!r}, change the library over (edgerag library reembed), or ingest into another one"
        " (--library NAME).",
    )
