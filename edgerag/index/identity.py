"""Which embedder a library was made with: its vectors mean nothing to another."""

from __future__ import annotations

import json
from pathlib import Path

from edgerag.errors import EmbedderMismatch, LibraryDamaged, UsageError
from edgerag.index.store import Store
from edgerag.types import EmbedderIdentity


def read_identity(store: Store) -> EmbedderIdentity | None:
    """The embedder that the library was made with; None for one that is just being made. Raises LibraryDamaged."""
    with store.reading() as db:
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
        raise LibraryDamaged(f"{store.path} does not say which embedder it was made with: {error}.") from error


def write_identity(store: Store, identity: EmbedderIdentity) -> None:
    """Stores it in a new library. Raises UsageError for one without dimensions."""
    if identity.dimension < 1:
        raise UsageError(f"The embedder {identity.name!r} says it has {identity.dimension} dimensions.")
    value = {
        "name": identity.name,
        "weights_sha256": identity.weights_sha256,
        "dimension": identity.dimension,
        "languages": identity.languages,
    }
    with store.writing() as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('embedder', ?)", (json.dumps(value),))


def check_identity(folder: Path, stored: EmbedderIdentity, given: EmbedderIdentity | None) -> None:
    """Raises EmbedderMismatch if ``given`` is another embedder."""
    # The weights decide: a renamed model file, or another quantisation of it, gives the same vectors.
    if given is None or (stored.weights_sha256, stored.dimension) == (given.weights_sha256, given.dimension):
        return
    raise EmbedderMismatch(
        f"The library in {folder} was made with the embedder {stored.name!r} ({stored.dimension} dimensions),"
        f" not with {given.name!r} ({given.dimension} dimensions).",
        remedy=f"Use {stored.name!r}, or ingest into another library (--library NAME).",
    )
