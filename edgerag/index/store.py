"""One connection to ``library.sqlite``: how it is opened, its transactions, and what its errors mean.

Promises: a transaction is on the disk when it returns (WAL, on a disk that machines share a rollback journal;
synchronous=FULL) or it never happened;
every failure of SQLite leaves here as an error of edgerag.errors. The statements themselves are in
documents.py, chunks.py, catalogue.py and keywords.py, which are given the open connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote

from edgerag.encryption.database import connect, enlarge_cache
from edgerag.encryption.key_record import is_encrypted, key_is_gone, needs_opener, read_record
from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import is_unit_file
from edgerag.errors import (
    REPAIR_LIBRARY,
    RESTORE_LIBRARY,
    LibraryBusy,
    LibraryDamaged,
    LibraryMissing,
    LibraryOutdated,
    StorageFull,
)
from edgerag.index import at_rest, bringing_up, migrations, wholeness
from edgerag.index.segment_magic import MAGIC
from edgerag.index.watched import Watched
from edgerag.machine.disk import storage_error
from edgerag.machine.mounts import journal_for
from edgerag.types import BringingUpWatch

DATABASE_NAME = "library.sqlite"
# A reader waits this long while the last writer folds the WAL into the file on closing.
_BUSY_TIMEOUT_S = 15.0

# The failures of SQLite's that are those of a read; SQLITE_IOERR_IN_PAGE is not in Python 3.11.
_READ_FAILED = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_SEEK,
    sqlite3.SQLITE_IOERR_FSTAT,
    sqlite3.SQLITE_IOERR_MMAP,
    sqlite3.SQLITE_IOERR_DATA,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    sqlite3.SQLITE_IOERR | 34 << 8,
)
# How a full disk refuses the shared-memory file that readers and the writer use together.
_NO_ROOM_TO_SHARE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN)

# Copying so much takes some seconds before each answer.
_MOST_COPIED_BYTES = 2_000_000_000
# Pages of the keyword index that each question needs: with the 2,000 KiB of SQLite's own they are read anew for each.
_READ_CACHE_KIB = 8_192
_COPY_IN_MEMORY_KIB = 65_536  # more of a copy lies in a file

Mode = Literal["read", "write"]
T = TypeVar("T")


class Store:
    """The database of one library; usable from one thread at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        mode: Mode,
        steps: Sequence[str] = migrations.STEPS,
        as_copy: bool = False,
        unchecked: bool = False,
        key: LibraryKey | None = None,
        watch: BringingUpWatch | None = None,
    ) -> None:
        """Opens it; in write mode makes it or brings it to the newest version, if it is whole (bringing_up.py);
        ``unchecked`` in any case, which is for mending. One of an older version that cannot be written is read
        ``as_copy``: brought up in a copy that goes with this object. ``key``: of an encrypted one. ``watch`` is told
        how far an older one is, and stops that by raising something.

        Raises LibraryMissing, LibraryOutdated, LibraryVersionUnknown, LibraryDamaged, LibraryBusy, LibraryLocked,
        StorageFull.
        """
        self.path = folder / DATABASE_NAME
        self.key = key
        if key is None:
            refuse_locked(folder)
        self.mode: Mode = mode
        self._steps = steps
        self._as_copy = as_copy
        self._unchecked = unchecked
        self._watched = Watched(folder.name, watch)
        self._immutable_state: tuple[int, int] | None = None  # set while opened as an unchanging file
        self._lacks_room = False  # and that because the disk is full
        self._has_begun = False  # to write: there are no checksums of the file any more
        with translated(self.path):
            self._connection = self._open()
            if key is not None:
                try:
                    enlarge_cache(self._connection)
                except sqlite3.Error:
                    self._connection.close()
                    raise

    def _open(self) -> sqlite3.Connection:
        steps = self._steps
        if self.mode == "write":
            if not self.path.exists():  # SQLite would make it for everybody to read
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = self._connect("rwc")
            try:
                version = migrations.check_version(connection, where=str(self.path), steps=steps)
                (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
                wanted = journal_for(self.path)
                if version < len(steps) or (journal == "wal") != (wanted == "WAL"):  # both are written into the file
                    if 0 < version < len(steps) and not self._unchecked:
                        bringing_up.check(connection, self.path, version, watched=self._watched)
                    self._begin_to_write()
                connection.execute(f"PRAGMA journal_mode = {wanted}")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                # Deletions of a big document would otherwise spill their journal where there may be no room.
                connection.execute("PRAGMA temp_store = MEMORY")
                if version == 0 or self._unchecked:
                    migrations.migrate(connection, where=str(self.path), steps=steps)
                else:
                    bringing_up.bring_up(connection, self.path, steps=steps, key=self.key, watched=self._watched)
            except BaseException:
                if connection.in_transaction:  # a step that was stopped
                    connection.execute("ROLLBACK")
                connection.close()
                raise
            finally:
                self._watched.over()
            return connection
        refuse_emptied(self.path.parent)
        if not self.path.is_file() or not self.path.stat().st_size:
            raise LibraryMissing(
                f"There is no library in {self.path.parent}.", remedy="Make one: edgerag ingest FOLDER"
            )
        connection = self._connect_to_read_a_lot()
        try:
            version = migrations.check_version(connection, where=str(self.path), steps=steps)
            if version == 0:
                raise self._unfinished()
            if version < len(steps) and self._as_copy:
                return self._copied(connection, version)
            if version < len(steps):
                raise LibraryOutdated(
                    f"{self.path} has the older version {version}.",
                    remedy="Run edgerag ingest once to bring it up; where it cannot be written, copy it first.",
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _copied(self, connection: sqlite3.Connection, version: int) -> sqlite3.Connection:
        """A private copy of the newest version, in memory, or where it is large in a temporary file of SQLite's own."""
        self._immutable_state = self._file_state()
        size_bytes = self._immutable_state[1]
        if size_bytes > _MOST_COPIED_BYTES:
            raise _not_copied(self.path, version, f"it is too large to be converted each time ({size_bytes:,} bytes)")
        copy = self._set_up(self._private_copy())
        try:
            copy.execute(f"PRAGMA cache_size = -{_COPY_IN_MEMORY_KIB}")
            connection.backup(copy)
            bringing_up.check(copy, self.path, version, is_copy=True)
            copy.execute("PRAGMA journal_mode = OFF")
            migrations.migrate(copy, where=str(self.path), steps=self._steps)
            copy.execute("PRAGMA query_only = ON")
        except BaseException as error:
            copy.close()
            full = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in full:
                raise _not_copied(self.path, version, f"there is no room for a copy of {size_bytes:,} bytes") from error
            raise
        connection.close()
        return copy

    def _has_journal(self) -> bool:
        """Whether a transaction is at work, or was killed, that keeps what it changes in a rollback journal: on a disk
        that machines share, also seen from one where that disk is local."""
        journal = self.path.with_name(self.path.name + "-journal")
        return journal.is_file() and journal.stat().st_size > 0

    def _unfinished(self) -> LibraryMissing:
        return LibraryMissing(
            f"The library in {self.path.parent} was never finished.", remedy="Run: edgerag ingest FOLDER"
        )

    def _connect(self, mode: str, *, immutable: bool = False) -> sqlite3.Connection:
        uri = f"file:{quote(os.fsencode(self.path))}?mode={mode}" + ("&immutable=1" if immutable else "")
        return self._set_up(connect(uri, key=self.key, uri=True, timeout=_BUSY_TIMEOUT_S))

    def _private_copy(self) -> sqlite3.Connection:
        """An empty database that nobody else sees; of an encrypted one it never lies in a file."""
        return connect("" if self.key is None else ":memory:", key=self.key)

    def _set_up(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        # Paths need not be valid UTF-8; they are stored as the bytes they are.
        connection.text_factory = _decode
        return connection

    def _connect_to_read_a_lot(self) -> sqlite3.Connection:
        connection = self._connect_for_reading()
        try:
            connection.execute(f"PRAGMA cache_size = -{_READ_CACHE_KIB}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_for_reading(self) -> sqlite3.Connection:
        """A reader that follows the writer; where nothing can be written, an unchanging file.

        WAL needs a shared-memory file beside the database. Where it cannot be made, in a read-only folder or on a
        full disk, there is no writer either, so the file may be read as it lies, provided that no WAL holds newer
        transactions.
        """
        self._immutable_state = None
        self._lacks_room = False
        connection = self._connect("ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
                return self._connect_undone()
            primary = error.sqlite_errorcode & 0xFF
            # A folder that may be written and has no room for another file gives CANTOPEN too.
            self._lacks_room = error.sqlite_errorcode in _NO_ROOM_TO_SHARE or (
                primary == sqlite3.SQLITE_CANTOPEN and os.access(self.path.parent, os.W_OK)
            )
            if not self._lacks_room and primary not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            if self._has_journal():
                raise self._not_undone() from error
            wal = self.path.with_name(self.path.name + "-wal")
            if wal.exists() and wal.stat().st_size:
                if self._lacks_room:
                    raise StorageFull(
                        f"{wal} holds changes that cannot be read: there is no room for a file beside it.",
                        remedy="Free some space on that disk and run it again; nothing committed is lost.",
                    ) from error
                raise LibraryDamaged(
                    f"{wal} holds changes that cannot be applied because the folder is read-only.",
                    remedy="Open the library once where it can be written (edgerag status), then copy it again.",
                ) from error
        self._immutable_state = self._file_state()
        return self._connect("ro", immutable=True)

    def _connect_undone(self) -> sqlite3.Connection:
        """After a writer that was killed: whoever opens the file next undoes what it had begun, a reader too."""
        connection = self._connect("rw")
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            raise self._not_undone() from error
        finally:
            connection.close()
        return self._connect("ro")

    def _not_undone(self) -> LibraryDamaged:
        return LibraryDamaged(
            f"{self.path} holds a change that was broken off and must be undone first, and it cannot be written here.",
            remedy="Run edgerag status once where the library can be written, then use it here, or copy it again.",
        )

    def _file_state(self) -> tuple[int, int]:
        stat = self.path.stat()
        wal = self.path.with_name(self.path.name + "-wal")
        return stat.st_mtime_ns, stat.st_size + (wal.stat().st_size if wal.exists() else 0)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the library for as long as the block lasts."""
        with translated(self.path):
            if self._connection.in_transaction:  # inside our own transaction: it is the view
                yield self._connection
                return
            self._follow_read_only_file()
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                _roll_back(self._connection)

    @property
    def connection(self) -> sqlite3.Connection:
        """For what no other process sees: a database that is being made."""
        return self._connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed and on the disk when the block ends, undone when it raises."""
        assert self.mode == "write", "the library was opened for reading"
        with translated(self.path):
            self._begin_to_write()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                _roll_back(self._connection)

    def _follow_read_only_file(self) -> None:
        """Reopens a file that was taken for unchanging and did change, or that may be written since: there is room."""
        if self._immutable_state is not None and (self._lacks_room or self._file_state() != self._immutable_state):
            self._connection.close()
            self._connection = self._open() if self._as_copy else self._connect_to_read_a_lot()

    def checkpoint(self) -> None:
        """Folds the WAL into the file as far as readers allow, so that it does not grow."""
        with translated(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def damage(self) -> list[str]:
        """What SQLite's own check finds; empty when the file is whole."""
        with translated(self.path):
            return wholeness.structure_damage(self._connection)

    def words_damage(self) -> str:
        """What FTS5's own check finds: whether the keyword index says what it was made of. Checked in a private copy,
        because that check counts as writing; "" for a whole one, and for one that is too large to be copied."""
        if self.path.stat().st_size > _MOST_COPIED_BYTES:
            return ""
        with contextlib.closing(self._private_copy()) as copy:
            try:
                self._connection.backup(copy)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                return f"the keyword index: {error}"
            with translated(self.path):
                return wholeness.words_damage(copy)

    def close(self) -> None:
        with translated(self.path):
            self._connection.close()

    def close_at_rest(self) -> None:
        """Closes it, and leaves checksums of the whole file, unless they are there or somebody reads an older state of
        it just now. To be called while no other process may write."""
        busy = 1
        with translated(self.path):
            # Where the journal cannot be folded now, all that was committed stands in it, and the next writer does it.
            with contextlib.suppress(sqlite3.OperationalError):
                (busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._connection.close()
        wal = self.path.with_name(self.path.name + "-wal")
        unchanged = (self.path.parent / at_rest.NAME).exists()
        if not unchanged and not busy and not (wal.exists() and wal.stat().st_size):
            # Without room for them the library is whole all the same, and the next writer leaves some.
            with contextlib.suppress(OSError):
                at_rest.write_sums(self.path.parent, self.path)

    def _begin_to_write(self) -> None:
        if not self._has_begun:
            at_rest.begin_to_write(self.path.parent, self.path)
            self._has_begun = True


def _not_copied(path: Path, version: int, why: str) -> LibraryOutdated:
    return LibraryOutdated(
        f"{path} has the older version {version} and cannot be written, and {why}.",
        remedy="Copy the library to a place that can be written, and use it there.",
    )


def sql_text(text: str) -> str | bytes:
    """``text`` as a parameter for ``CAST(? AS TEXT)``; keeps the undecodable bytes of a path."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape" if _only_escapes(text) else "surrogatepass")
    return text


def _only_escapes(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" and not "\udc80" <= c <= "\udcff" for c in text)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def refuse_locked(folder: Path) -> None:
    """Raises LibraryLocked for an encrypted library, which is opened with its key or not at all."""
    if is_encrypted(folder):
        raise needs_opener(read_record(folder), where=str(folder))
    first = next((folder / "segments").glob("*.hnsw"), None)
    if first is not None and is_unit_file(first):
        raise key_is_gone(folder)


def refuse_emptied(folder: Path) -> None:
    """Raises LibraryDamaged where sealed vectors lie there and their database is an empty file, or gone."""
    database = folder / DATABASE_NAME
    is_there = database.is_file()
    if is_there and database.stat().st_size:
        return
    # Without any database the folder may be the user's own, with files of his that happen to be called so.
    if any(is_there or _is_segment(path) for path in (folder / "segments").glob("*.hnsw")):
        what = "is empty, and its segments are not: it was cut off" if is_there else "is gone, and its segments are not"
        raise LibraryDamaged(f"The library database {database} {what}.", remedy=RESTORE_LIBRARY)


def _is_segment(path: Path) -> bool:
    """Whether it begins as one."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def stored_json(text: str, kind: type[T]) -> T:
    """A value of a row. Raises LibraryDamaged if it is not what was written."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged_row(str(error)) from error
    if not isinstance(value, kind):
        raise damaged_row(f"{text[:40]!r} is no {kind.__name__}")
    return value


def damaged_row(what: str) -> LibraryDamaged:
    return LibraryDamaged(
        f"A row of the library database is damaged: {what}.",
        remedy=REPAIR_LIBRARY,
    )


def is_refused_write(error: sqlite3.Error) -> bool:
    """Whether it is the file system that would not take what was written, and not what was read that is damaged."""
    code = getattr(error, "sqlite_errorcode", 0)
    refused = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return code & 0xFF in refused and code not in _READ_FAILED


def is_damage(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """And not a disk that refuses, or somebody who holds the file. What is no text where there must be some is."""
    if isinstance(error, UnicodeDecodeError):
        return True
    held = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return not is_refused_write(error) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in held


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns errors of SQLite and of the file system about ``path`` into those of edgerag.errors."""
    try:
        yield
    except UnicodeDecodeError as error:  # of a damaged file even SQLite's messages may be no text
        raise LibraryDamaged(f"The library database {path} is damaged: {error}.", remedy=REPAIR_LIBRARY) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)  # absent on errors of the Python module itself
        primary = code & 0xFF
        if code in _READ_FAILED:
            raise LibraryDamaged(
                f"The library database {path} cannot be read: {error} ({getattr(error, 'sqlite_errorname', code)}).",
                remedy="Check the disk and its connection. If it goes on, restore the folder from a copy,"
                " or delete it and ingest again.",
            ) from error
        if primary == sqlite3.SQLITE_FULL or primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
            raise StorageFull(
                f"The library database {path} cannot be written: {error}.",
                remedy="Free some space on that disk, or check that the folder can be written, and run it again.",
            ) from error
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LibraryBusy(
                f"The library database {path} is in use by another process: {error}.", remedy="Try again in a moment."
            ) from error
        if primary == sqlite3.SQLITE_CANTOPEN:
            raise StorageFull(
                f"The library database {path} cannot be opened or made: {error}.",
                remedy="Check that the folder exists and can be written.",
            ) from error
        # A constraint that does not hold: every statement keeps them all in a whole library.
        contradicts = isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError)
        if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or contradicts:
            raise LibraryDamaged(
                f"The library database {path} is damaged: {error}.",
                remedy=REPAIR_LIBRARY,
            ) from error
        raise
    except OSError as error:
        raise storage_error(error, path) from error
