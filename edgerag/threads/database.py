"""``threads.sqlite``: how it is opened and made, its transactions, and what its errors mean.

Promises: the file is its owner's alone (0600); a transaction is on the disk when it returns (WAL, on a disk that
machines share a rollback journal; synchronous=FULL) or never happened; what is deleted is overwritten (secure_delete).
A file on a disk that cannot be written is read, one of an older version out of a copy in memory. Each transaction looks
whether this is still the file that the conversations belong in: another process may have encrypted their library, or
taken that away. That process holds the file until another lies in its place, so whoever waited for it looks once more.
``PRAGMA user_version`` is the number of steps applied; steps are only ever appended. The tables are described in
docs/index-format.md.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from edgerag.encryption.database import connect
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import StorageFull, ThreadsError
from edgerag.machine.disk import storage_error
from edgerag.machine.mounts import journal_for
from edgerag.machine.new_file import put_new
from edgerag.private_database import make_private, reading_uri, writing_uri
from edgerag.threads import sums

# "ERTH": tells this file from others of SQLite, and from those of libraries.
APPLICATION_ID = 0x45525448
_BUSY_TIMEOUT_S = 10.0  # another window of the program holds it for milliseconds
_KEEP_A_COPY = "Move the file away to begin with a new one; it may still be read by `sqlite3 FILE .recover`."

_RESTORE = "Put a copy of it back, or delete it to begin with a new one."

# exchange_words has a row for each exchange: its words as index/analyze.py prepares them.
_STEP_1 = """
CREATE TABLE threads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    library TEXT NOT NULL,
    title TEXT NOT NULL,
    began_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    leaf_id INTEGER,
    question_count INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX threads_by_change ON threads (library, changed_ns);

CREATE TABLE exchanges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    parent_id INTEGER,
    asked_ns INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'done', 'stopped', 'failed')),
    question TEXT NOT NULL,
    text TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '',
    filter TEXT NOT NULL,
    answer TEXT NOT NULL DEFAULT ''
);
CREATE INDEX exchanges_of_thread ON exchanges (thread_id, parent_id);
CREATE INDEX exchanges_by_time ON exchanges (asked_ns);

CREATE VIRTUAL TABLE exchange_words USING fts5 (question, answer, tokenize = "unicode61 remove_diacritics 2");

CREATE TABLE drafts (
    library TEXT NOT NULL,
    thread_id INTEGER NOT NULL,
    text TEXT NOT NULL,
    filter TEXT NOT NULL,
    PRIMARY KEY (library, thread_id)
) WITHOUT ROWID;
"""
# Checksums of rows: see sums.py. Rows that are there get theirs in the same transaction.
_STEP_2 = f"""
ALTER TABLE threads ADD COLUMN sum INTEGER;
ALTER TABLE exchanges ADD COLUMN sum INTEGER;
ALTER TABLE exchanges ADD COLUMN answer_sum INTEGER;
ALTER TABLE drafts ADD COLUMN sum INTEGER;
{sums.FILL}
"""
STEPS = (_STEP_1, _STEP_2)

Belonging = tuple[Path, LibraryKey | None]  # the file, and the key that it is opened with

_Opened = tuple[LibraryKey | None, tuple[int, int] | None]  # the key, and device and inode of the file


class Database:
    """One connection, for any thread; one at a time."""

    def __init__(
        self, path: Path | None, *, key: LibraryKey | None = None, belongs: Callable[[], Belonging] | None = None
    ) -> None:
        """``None`` keeps everything in memory. ``key``: of an encrypted one. ``belongs`` says where the conversations
        belong now, and raises LibraryLocked where that cannot be opened. Raises ThreadsError, StorageFull."""
        self.path = path
        self._key = key
        self._belongs = belongs
        self._opened: _Opened | None = None
        self._lock = threading.RLock()
        with self._translated():
            try:
                self._open()
            except sqlite3.DatabaseError:
                self._follow_if_moved(path, key)

    def _open(self) -> None:
        path, key = self.path, self._key
        place, is_writable = ":memory:", True
        if path is not None:
            _make(path, key)
            is_writable = make_private(path)
            place = writing_uri(path) if is_writable else reading_uri(path, can_make_files=False)
        identity = _identity(path)
        self._connection = connect(place, key=key, uri=path is not None, timeout=_BUSY_TIMEOUT_S)
        # One damaged byte must not hide a whole conversation.
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            version = self._check()
            if is_writable:
                self._prepare()
            elif version < len(STEPS):
                self._connection = _brought_up(self._connection, version, key)
            sums.prepare(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._opened = (key, identity)

    def _follow(self) -> None:
        """Opens the file anew where another lies in its place. Raises ThreadsError where they belong in another place:
        there the same number is another conversation. LibraryLocked."""
        if self._belongs is None:
            return
        path, key = self._belongs()
        if path != self.path:
            raise ThreadsError(
                f"The conversations are no longer kept in {self.path}, but in {path}.", remedy="Begin a new one."
            )
        if (key, _identity(path)) != self._opened:
            self._close()
            self._key = key
            try:
                self._open()
            except sqlite3.DatabaseError:
                self._follow_if_moved(path, key)

    def _follow_if_moved(self, path: Path | None, key: LibraryKey | None) -> None:
        """After a file could not be opened: another process replaced it between its key and its first page, or it is
        damaged, and what is being handled is raised."""
        if self._belongs is None or self._belongs() == (path, key):
            raise
        self._follow()

    def _is_still_there(self) -> bool:
        return self._belongs is None or (self._opened is not None and _identity(self.path) == self._opened[1])

    def _check(self) -> int:
        """The version of the file."""
        db = self._connection
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        application = int(db.execute("PRAGMA application_id").fetchone()[0])
        if (version or application) and application != APPLICATION_ID:
            raise ThreadsError(f"{self.path} is a database of another program.", remedy="Move it away.")
        if version > len(STEPS):
            raise ThreadsError(
                f"{self.path} has version {version} and this program knows versions up to {len(STEPS)}.",
                remedy="Use the newer edgerag that wrote it.",
            )
        return version

    def _prepare(self) -> None:
        db = self._connection
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA journal_mode = {journal_for(self.path) if self.path else 'MEMORY'}")
        _run_steps(db, version)
        # What was deleted while another window was reading may still lie in the log. If one writes just now, that one
        # folds it: whoever only wants to read does not wait.
        db.execute("PRAGMA busy_timeout = 0")
        self._fold_log()
        db.execute(f"PRAGMA busy_timeout = {round(_BUSY_TIMEOUT_S * 1000)}")

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view for as long as the block lasts."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on the disk when the block ends, undone when it raises."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            self._follow()
            self._connection.execute(begin)
            while not self._is_still_there():
                self._connection.execute("ROLLBACK")
                self._follow()
                self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def fold_log(self) -> None:
        """What was deleted leaves the log, too, as far as other windows allow; the next that opens or closes the file
        does the rest. Raises ThreadsError, StorageFull."""
        with self._lock, self._translated():
            self._follow()
            self._fold_log()

    def _fold_log(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        with self._lock, self._translated():
            self._close()

    def _close(self) -> None:
        self._opened = None
        self._connection.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns errors of SQLite and of the file system into those of edgerag.errors."""
        try:
            yield
        except sqlite3.Error as error:
            primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
            what = f"The conversations in {self.path} cannot be"
            if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise StorageFull(
                    f"{what} written: {error}.",
                    remedy="Free some space on that disk, or check that the folder can be written.",
                ) from error
            if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise ThreadsError(f"{what} used: another program holds them.", remedy="Try again.") from error
            raise ThreadsError(f"{what} read: {error}.", remedy=_KEEP_A_COPY) from error
        except UnicodeDecodeError as error:  # of a damaged file even SQLite's messages may be no text
            raise ThreadsError(f"The conversations in {self.path} are damaged.", remedy=_KEEP_A_COPY) from error
        except OSError as error:
            raise storage_error(error, self.path or Path()) from error


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Of the file that is there now; None where there is none."""
    if path is None:
        return None
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _make(path: Path, key: LibraryKey | None) -> None:
    """The file where there is none, whole when it can be seen: so one that is empty is one that was cut off.

    Raises ThreadsError for that, OSError.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _new_database() if key is None else _new_encrypted_database(path.parent, key)
        with contextlib.suppress(FileExistsError):  # another window was faster
            put_new(path, content)
    log = path.with_name(f"{path.name}-wal")
    if path.is_file() and not path.stat().st_size and not (log.exists() and log.stat().st_size):
        raise ThreadsError(f"The conversations in {path} are gone: the file is empty.", remedy=_RESTORE)


def _new_database() -> bytes:
    with contextlib.closing(connect(":memory:")) as new:
        _run_steps(new, 0)
        return new.serialize()


def _new_encrypted_database(folder: Path, key: LibraryKey) -> bytes:
    """SQLCipher encrypts what it writes into a file, and gives no other form of it."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
        file = Path(scratch) / "new.sqlite"
        with contextlib.closing(connect(file, key=key)) as new:
            _run_steps(new, 0)
        return file.read_bytes()


def _brought_up(connection: sqlite3.Connection, version: int, key: LibraryKey | None) -> sqlite3.Connection:
    """A copy of the newest version, in the place of one that cannot be written."""
    copy = connect(":memory:", key=key)
    try:
        copy.text_factory = connection.text_factory
        connection.backup(copy)
        _run_steps(copy, version)
        copy.execute("PRAGMA query_only = ON")
    except BaseException:
        copy.close()
        raise
    connection.close()
    return copy


def _run_steps(db: sqlite3.Connection, version: int) -> None:
    """Those behind ``version``, each one transaction."""
    sums.prepare(db)
    for number in range(version + 1, len(STEPS) + 1):
        # executescript commits whatever is open, so the transaction is part of the script.
        db.executescript(
            f"BEGIN IMMEDIATE;\n{STEPS[number - 1]}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {number};\nCOMMIT;"
        )
