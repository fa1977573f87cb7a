"""A library leaves this machine as one file, and comes to another.

Leaving takes one consistent state, while an ingest writes on: SQLite copies its database as of one commit, and the
segments of that commit are held open meanwhile. Arriving checks every byte in a folder that nobody sees, and shows the
library by one rename. Whatever stops either, nothing half-made is ever seen, and what it left goes with the next one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

from edgerag.encryption.database import connect
from edgerag.encryption.key_record import FILE_NAME as KEY_NAME
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged, LibraryError, LibraryMissing, LibraryVersionUnknown
from edgerag.index import at_rest, catalogue, chunks, documents, migrations
from edgerag.index.identity import identity_in
from edgerag.index.package import Manifest, Progress, described, read_manifest, read_parts, write_package
from edgerag.index.place import Place
from edgerag.index.scratch import ARRIVING_PREFIX, scratch_folder
from edgerag.index.segments import FOLDER_NAME as SEGMENTS
from edgerag.index.segments import SegmentGone
from edgerag.index.store import DATABASE_NAME, Store, is_refused_write, translated
from edgerag.machine.disk import put_in_place, sync_folder
from edgerag.private_database import make_private_folders, private_opener


def leave(folder: Path, target: Path, *, name: str, progress: Progress, key: LibraryKey | None = None) -> Manifest:
    """Writes the library in ``folder`` to the new file ``target``; it is there when it is whole, and not before.
    With its ``key`` an encrypted library stays encrypted, under the same key.

    Raises LibraryLocked, LibraryMissing, LibraryDamaged, LibraryReplaced, LibraryVersionUnknown, StorageFull,
    LibraryError where the file is there.
    """
    if target.exists():
        raise LibraryError(f"{target} is there already.", remedy="Name another file, or delete this one.")
    with translated(target), scratch_folder(target.parent, f".{target.name}-") as scratch:
        with contextlib.ExitStack() as stack:
            manifest, streams = _taken(folder, scratch, name, key, stack)
            with open(scratch / "package", "xb", opener=private_opener) as sink:
                write_package(sink, manifest, streams, progress=progress)
        if target.exists():  # made by somebody else meanwhile
            raise LibraryError(f"{target} is there already.", remedy="Name another file, or delete this one.")
        put_in_place(scratch / "package", target)
    return manifest


def _taken(
    folder: Path, scratch: Path, name: str, key: LibraryKey | None, stack: contextlib.ExitStack
) -> tuple[Manifest, dict[str, BufferedReader]]:
    """One state of the library: its manifest, and its files, open."""
    while True:
        with contextlib.ExitStack() as held, Place(folder).told():
            try:
                taken = _taken_once(folder, scratch, name, key, held)
            except SegmentGone as error:
                # Merged away after this view of the catalogue began? Then a new view no longer lists it.
                if error.path.name in _listed(folder, key):
                    raise LibraryDamaged(f"{error.path} is missing.", remedy=REPAIR_LIBRARY) from error
            else:
                stack.enter_context(held.pop_all())
                return taken


def _taken_once(
    folder: Path, scratch: Path, name: str, key: LibraryKey | None, held: contextlib.ExitStack
) -> tuple[Manifest, dict[str, BufferedReader]]:
    streams: dict[str, BufferedReader] = {}
    place = Place(folder)
    store = Store(folder, mode="read", as_copy=True, key=key)
    try:
        with store.reading() as db:
            for entry in catalogue.segments(db):
                path = folder / SEGMENTS / entry.file
                try:
                    # What is open stays whole when the writer deletes it.
                    streams[f"{SEGMENTS}/{entry.file}"] = held.enter_context(path.open("rb"))
                except FileNotFoundError as error:
                    raise SegmentGone(path) from error
            embedder = identity_in(db, where=str(store.path))
            if embedder is None:
                raise LibraryMissing(
                    f"The library in {folder} was never finished.", remedy="Run: edgerag ingest FOLDER"
                )
            counts = (len(documents.all_ids(db)), chunks.chunk_count(db))
            copy = scratch / DATABASE_NAME
            copy.unlink(missing_ok=True)
            _copy_database(db, copy, key)
    finally:
        store.close()
    with translated(copy):
        at_rest.write_sums(scratch, copy)
    for file in (DATABASE_NAME, at_rest.NAME):
        streams[file] = held.enter_context((scratch / file).open("rb"))
    if key is not None:
        streams[KEY_NAME] = held.enter_context((folder / KEY_NAME).open("rb"))
    place.check()
    parts = tuple(described(part, stream) for part, stream in streams.items())
    return Manifest(name, embedder, len(migrations.STEPS), *counts, parts), streams


def _listed(folder: Path, key: LibraryKey | None) -> set[str]:
    store = Store(folder, mode="read", as_copy=True, key=key)
    try:
        with store.reading() as db:
            return {entry.file for entry in catalogue.segments(db)}
    finally:
        store.close()


def _copy_database(db: sqlite3.Connection, target: Path, key: LibraryKey | None) -> None:
    """As of the transaction that is open; without what was deleted, and needing no journal to be read. Raises
    StorageFull for what cannot be written to ``target``; sqlite3.Error, where ``db`` cannot be read."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    copy = connect(target, key=key)
    try:
        try:
            db.backup(copy)
        except sqlite3.OperationalError as error:
            if not is_refused_write(error):
                raise
            with translated(target):  # of two databases this is the one that is written
                raise
        packed = target.with_name(f"{target.name}.packed")
        packed.unlink(missing_ok=True)
        with translated(target):
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("VACUUM INTO ?", (str(packed),))  # VACUUM alone writes another copy of all into /tmp
    finally:
        copy.close()
    with translated(target):
        put_in_place(packed, target)


def manifest_of(source: Path) -> Manifest:
    """What a file says that it holds. Raises as :func:`arrive` does."""
    with translated(source), source.open("rb") as stream:
        return read_manifest(stream, str(source))


def arrive(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    unlock: Callable[[Path], LibraryKey | None] = lambda _: None,
) -> Manifest:
    """Makes the library in the new ``folder`` out of the file ``source``, and shows it when every byte was checked.
    ``unlock`` gives the key of an encrypted one, of which it is told the folder that holds its ``library.key``.

    Raises LibraryLocked, LibraryDamaged, LibraryVersionUnknown, StorageFull, LibraryError where the folder is there.
    """
    if folder.exists():
        raise _is_there(folder)
    with translated(source), source.open("rb") as stream:
        manifest = read_manifest(stream, str(source))
        if manifest.database_version > len(migrations.STEPS):
            raise LibraryVersionUnknown(
                f"{source} holds a library of version {manifest.database_version}, and this program knows versions up"
                f" to {len(migrations.STEPS)}.",
                remedy="Import it with the newer edgerag that it was made with.",
            )
        with translated(folder):
            make_private_folders(folder.parent)
            with scratch_folder(folder.parent, ARRIVING_PREFIX) as hidden:
                made = hidden / "library"
                made.mkdir(mode=0o700)
                (made / SEGMENTS).mkdir(mode=0o700)
                read_parts(stream, manifest, str(source), made, progress=progress)
                _check_opens(made, manifest, source, unlock(made))
                sync_folder(made / SEGMENTS)
                sync_folder(made)
                if folder.exists():
                    raise _is_there(folder)
                made.rename(folder)
                sync_folder(folder.parent)
    return manifest


def _check_opens(made: Path, manifest: Manifest, source: Path, key: LibraryKey | None) -> None:
    """What the manifest says of it is so."""
    store = Store(made, mode="read", as_copy=True, key=key)
    try:
        with store.reading() as db:
            embedder = identity_in(db, where=str(source))
            listed = {f"{SEGMENTS}/{entry.file}" for entry in catalogue.segments(db)}
    finally:
        store.close()
    parts = {part.name for part in manifest.parts if part.name.startswith(SEGMENTS)}
    if embedder is None or not embedder.is_same_as(manifest.embedder) or listed != parts:
        raise LibraryError(f"{source} does not hold what its manifest says.", remedy="Export it again.")
    for left in made.glob("library.sqlite-*"):  # what reading left beside it
        left.unlink()


def _is_there(folder: Path) -> LibraryError:
    return LibraryError(f"There is something at {folder} already.", remedy="Give another name: --name NAME.")
