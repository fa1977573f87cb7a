"""Encrypts a library that is there, takes its encryption away, or encrypts it anew under another key.

The old one is checked first, as `library verify` does: what is damaged can be mended there, and not in a copy that was
made of it. A whole library is made beside it, in a folder that nobody sees, and compared with it. Then both change
places in one step of the file system: at every moment the library's folder is the old one or the new one, whole. What
is replaced is deleted; a kill before that leaves it to the next writer. Deleting is not wiping: docs/security.md says
what may remain. Conversations and traces are copied last and held from then on: what somebody wants to write to them
meanwhile waits, and is written to the new ones.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from edgerag.encryption.database import connect, require_available, write_copy
from edgerag.encryption.key_record import KeyRecord, write_record
from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UnitDamaged, copy_units, is_unit_file
from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged, LibraryError, LibraryMissing, StorageFull
from edgerag.index import at_rest, catalogue, chunks, documents, health
from edgerag.index.catalogue import SegmentEntry
from edgerag.index.contents import PRIVATE_FOLDER, private_databases, refuse_strangers
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.source import role_of
from edgerag.index.identity import identity_in
from edgerag.index.lock import WriterLock
from edgerag.index.reembedding import FOLDER_NAME as REEMBEDDING
from edgerag.index.scratch import ENCRYPTING_PREFIX, scratch_folder
from edgerag.index.segments import FOLDER_NAME as SEGMENTS
from edgerag.index.segments import delete_unlisted
from edgerag.index.store import DATABASE_NAME, Store, is_damage, translated
from edgerag.machine.disk import exchange, sync_folder
from edgerag.private_database import writing_uri
from edgerag.types import EmbedderIdentity

_CHECKING_BYTES = 100_000_000  # of segments that are kept in memory while they are checked
_PRIVATE_TIMEOUT_S = 10.0  # another window writes to conversations for milliseconds
# What the file system says that cannot exchange two folders.
_CANNOT_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a library is to be encrypted by from now on."""

    key: LibraryKey
    record: KeyRecord
    ready: Callable[[], None] = lambda: None  # called when all else is done: what opens it is on the disk after that


@dataclass(frozen=True, slots=True)
class Encrypted:
    """What was done."""

    document_count: int
    chunk_count: int
    segment_count: int
    size_bytes: int  # of the files that were written


def encrypt_anew(folder: Path, *, key: LibraryKey | None, to: NewKey | None, progress: Progress) -> Encrypted:
    """Writes the library in ``folder`` again: under another key, under one at all, or under none.

    Raises LibraryMissing, LibraryBusy, LibraryLocked, LibraryDamaged, StorageFull, LibraryError where it cannot be done
    in its place, and what ``to.ready`` raises; then it is as it was, but for a StorageFull that says that it is done.
    """
    require_available()
    if not (folder / DATABASE_NAME).is_file():
        raise LibraryMissing(f"There is no library in {folder}.", remedy="Make one: edgerag ingest FOLDER")
    if (folder / REEMBEDDING).exists():
        raise LibraryError(
            f"The library in {folder} is being changed over to another embedder.",
            remedy="Finish that first (edgerag library reembed), or throw it away (--discard).",
        )
    target_key = None if to is None else to.key
    with ExitStack() as stack, translated(folder):
        lock = WriterLock(folder, purpose="encryption")
        stack.callback(lock.close)
        _check(folder, key)
        done, identity, entries = _looked_at(folder, key)
        hidden = stack.enter_context(scratch_folder(folder.parent, ENCRYPTING_PREFIX))
        made = hidden / "library"
        for part in (made, made / SEGMENTS):
            part.mkdir(mode=0o700)
        new_lock = WriterLock(made, purpose="encryption")  # nobody writes to it before this one is through
        stack.callback(new_lock.close)
        if to is not None:
            write_record(made, to.record)
        copying = _Copying(folder, made, source_key=key, target_key=target_key, progress=progress)
        copying.add_segments_and_database(entries)
        if _looked_at(made, target_key) != (done, identity, entries):
            raise LibraryDamaged(f"The copy of {folder} is not what was copied.", remedy=REPAIR_LIBRARY)
        at_rest.write_sums(made, made / DATABASE_NAME)
        for name in (DATABASE_NAME + "-wal", DATABASE_NAME + "-shm"):  # what reading it left
            (made / name).unlink(missing_ok=True)
        with ExitStack() as held:
            copying.add_private(held)
            for part in (made / SEGMENTS, made / PRIVATE_FOLDER, made):
                if part.is_dir():
                    sync_folder(part)
            size_bytes = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
            if to is not None:
                to.ready()
            _change_places(made, folder)
        _delete(made)
        return Encrypted(done[0], done[1], len(entries), size_bytes)


def _check(folder: Path, key: LibraryKey | None) -> None:
    """Brings it up, and looks at all of it. Raises LibraryDamaged where something could be mended that a copy would
    make for good, LibraryError where it holds what would be deleted."""
    if faults := at_rest.damaged_blocks(folder, folder / DATABASE_NAME):
        raise LibraryDamaged(
            f"{folder / DATABASE_NAME} does not match its checksums ({at_rest.blocks_text(faults)}); nothing was done.",
            remedy=REPAIR_LIBRARY,
        )
    store = Store(folder, mode="write", key=key)
    try:
        with store.reading() as db:
            identity = _identity(db, folder)
            entries = catalogue.segments(db)
        if (folder / SEGMENTS).is_dir():
            delete_unlisted(folder / SEGMENTS, store)
        refuse_strangers(folder, frozenset(entry.file for entry in entries))
        for path in (folder / SEGMENTS / entry.file for entry in entries):
            if layout.is_outdated(path):
                raise LibraryError(
                    f"{path} is of an older format, which is never encrypted.",
                    remedy="Bring it up first: edgerag library compact",
                )
        findings = health.verify(folder, store, identity, Residency(_CHECKING_BYTES))
        if faulty := [finding for finding in findings if finding.severity == "error"]:
            raise LibraryDamaged(f"{faulty[0].message} Nothing was done.", remedy=REPAIR_LIBRARY)
    except BaseException:
        store.close()
        raise
    store.close_at_rest()


def _identity(db: sqlite3.Connection, folder: Path) -> EmbedderIdentity:
    identity = identity_in(db, where=str(folder / DATABASE_NAME))
    if identity is None:
        raise LibraryMissing(f"The library in {folder} was never finished.", remedy="Run: edgerag ingest FOLDER")
    return identity


def _looked_at(folder: Path, key: LibraryKey | None) -> tuple[tuple[int, int], EmbedderIdentity, list[SegmentEntry]]:
    """(documents, passages), embedder and segments, of the newest version."""
    Store(folder, mode="write", key=key).close()  # brings it up
    store = Store(folder, mode="read", key=key)
    try:
        with store.reading() as db:
            identity = _identity(db, folder)
            return (len(documents.all_ids(db)), chunks.chunk_count(db)), identity, catalogue.segments(db)
    finally:
        store.close()


class _Copying:
    """What one folder holds, written to another under another key."""

    def __init__(
        self,
        folder: Path,
        made: Path,
        *,
        source_key: LibraryKey | None,
        target_key: LibraryKey | None,
        progress: Progress,
    ) -> None:
        self._folder, self._made = folder, made
        self._source_key, self._target_key = source_key, target_key
        self._progress = progress
        private, set_aside = private_databases(folder)
        self._total = sum(path.stat().st_size for path in (folder / DATABASE_NAME, *private, *set_aside))
        self._done = 0

    def add_segments_and_database(self, entries: list[SegmentEntry]) -> None:
        self._total += sum(entry.size_bytes for entry in entries)
        for entry in entries:
            path = self._folder / SEGMENTS / entry.file
            try:
                copy_units(
                    path, role_of(path), self._made / SEGMENTS / entry.file, role_of(path),
                    source_key=self._source_key, target_key=self._target_key,
                )  # fmt: skip
            except FileNotFoundError as error:
                raise layout.damaged(path, "is missing") from error
            except UnitDamaged as error:
                raise layout.damaged(path, error.what) from error
            self._tell(entry.size_bytes)
        self._copy_database(self._folder / DATABASE_NAME)

    def add_private(self, held: ExitStack) -> None:
        """Conversations and traces; nobody writes to those in use any more until ``held`` is closed."""
        private, set_aside = private_databases(self._folder)
        if private or set_aside:
            (self._made / PRIVATE_FOLDER).mkdir(mode=0o700)
        for path in private:
            try:
                self._hold(path, held)
                self._copy_database(path)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not is_damage(error):
                    raise
                raise LibraryError(
                    f"{path} is damaged: {error}. Nothing was done.", remedy="Move that file elsewhere to begin anew."
                ) from error
        for path in set_aside:
            try:
                self._copy_database(path)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not is_damage(error):
                    raise
                self._wrap(path)

    def _wrap(self, path: Path) -> None:
        """The bytes of what is no database any more, or one of another key: in units where the library is encrypted,
        and as they were where it is plain. There may be words in them."""
        role = path.relative_to(self._folder).as_posix()
        target = self._made / role
        target.with_name(f"{target.name}-journal").unlink(missing_ok=True)
        wrapped_by = self._source_key if is_unit_file(path) else None
        try:
            copy_units(path, role, target, role, source_key=wrapped_by, target_key=self._target_key)
        except UnitDamaged:  # damaged once more
            copy_units(path, role, target, role, source_key=None, target_key=self._target_key)
        self._tell(path.stat().st_size)

    def _hold(self, path: Path, held: ExitStack) -> None:
        connection = connect(writing_uri(path), key=self._source_key, uri=True, timeout=_PRIVATE_TIMEOUT_S)
        held.callback(connection.close)  # which ends the transaction, too
        connection.execute("BEGIN IMMEDIATE")

    def _copy_database(self, path: Path) -> None:
        target = self._made / path.relative_to(self._folder)
        target.touch(mode=0o600)
        write_copy(path, target, source_key=self._source_key, target_key=self._target_key)
        self._tell(path.stat().st_size)

    def _tell(self, size_bytes: int) -> None:
        self._done += size_bytes
        self._progress(self._done, max(self._done, self._total))


def _change_places(made: Path, folder: Path) -> None:
    try:
        exchange(made, folder)
    except OSError as error:
        if error.errno not in _CANNOT_EXCHANGE:
            raise
        raise LibraryError(
            f"The file system of {folder} cannot exchange two folders in one step.",
            remedy="Copy the library to another file system, and do it there.",
        ) from error


def _delete(replaced: Path) -> None:
    try:
        shutil.rmtree(replaced)
    except OSError as error:
        raise StorageFull(
            f"It is done, but the files that were replaced cannot be deleted: {replaced}: {error.strerror or error}.",
            remedy="Delete that folder yourself.",
        ) from error
