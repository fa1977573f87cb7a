"""``traces.sqlite``: the last traces of this home, answers and ingests apart. The oldest go when there are too many.

Promises: the file is its owner's alone (0600) and takes no more than ``_MOST_BYTES`` of traces; what ends a process, a
``kill -9`` included, leaves it whole (WAL); several processes write at once. A trace is kept as OTLP/JSON, compressed.
Nothing here is worth waiting for: a trace that was just kept may be lost with the power.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from edgerag.encryption.database import connect
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import StorageFull, TracesDamaged, TracesError
from edgerag.private_database import make_private, reading_uri, writing_uri
from edgerag.telemetry.otlp import from_otlp
from edgerag.telemetry.spans import TraceTree
from edgerag.types.choices import JournalMode

TraceKind = Literal["ask", "ingest"]
# "ERTR": tells this file from others of SQLite.
APPLICATION_ID = 0x45525452
_VERSION = 1
_BUSY_TIMEOUT_S = 2.0  # others write for a millisecond
_TRIES = 100
_MOST_BYTES = 64_000_000  # of compressed traces; a usual one has 5 kB
_LARGEST_TRACE = 64_000_000  # bytes of one when it is unpacked: more is a damaged one
_TABLE = """
CREATE TABLE traces (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    trace_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    began_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    otlp BLOB NOT NULL
);
CREATE INDEX traces_of_kind ON traces (kind, number, size_bytes);
CREATE INDEX traces_by_duration ON traces (kind, duration_ns);
"""
_STAMPS = ("user_version", "application_id")  # read one by one: who sees the version, sees whose it is, too
_HEAD = "trace_id, kind, began_ns, duration_ns, outcome, size_bytes"
_HEAD_TYPES = [str, str, int, int, str, int]
_OTHERS = "`edgerag trace --list` lists those that can be read."
_SET_ASIDE = "The next answer sets the file aside and begins a new one."


@dataclass(frozen=True, slots=True)
class TraceHead:
    """What a list shows of a trace. ``outcome``: the stop reason of an answer, or the name of its error."""

    trace_id: str
    kind: TraceKind
    began_ns: int
    duration_ns: int
    outcome: str
    size_bytes: int = 0


class TraceRing:
    """One connection; one thread at a time."""

    def __init__(
        self,
        path: Path,
        *,
        writing: JournalMode | None = None,
        key: LibraryKey | None = None,
    ) -> None:
        """``writing``: how SQLite is to keep transactions there (machine/mounts.py tells); None: it is only read.
        ``key``: of an encrypted one.
        Raises TracesError, StorageFull; to read, TracesError where there is no file."""
        self._path = path
        self._key = key
        with self._translated():
            if writing is not None:
                make_private(path)
                self._seen = path.stat()
                self._db = self._connect(writing_uri(path))
            elif path.exists():
                self._db = self._connect(reading_uri(path, can_make_files=os.access(path.parent, os.W_OK)))
            else:
                raise _nothing_yet()
            try:
                self._prepare(writing)
            except BaseException:
                self._db.close()
                raise

    def _connect(self, uri: str) -> sqlite3.Connection:
        return connect(uri, key=self._key, uri=True, timeout=_BUSY_TIMEOUT_S)

    def _prepare(self, writing: JournalMode | None) -> None:
        db = self._db
        version, application = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in _STAMPS)
        if application not in (0, APPLICATION_ID) or (version and not application) or version > _VERSION:
            whose = "of another program" if application != APPLICATION_ID else "of a newer version"
            raise TracesError(f"{self._path} is a database {whose}.", remedy="Move it away.")
        if writing is None and not version:  # made by a writer that had no room for more
            raise _nothing_yet()
        if writing is not None:
            db.execute("PRAGMA secure_delete = ON")  # with trace.content there are words in it
            self._use_journal(db, writing)
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA journal_size_limit = 1000000")
            if not version:
                self._make()

    def _use_journal(self, db: sqlite3.Connection, journal: JournalMode) -> None:
        """SQLite does not wait for another process that turns to it at this moment."""
        for left in reversed(range(_TRIES)):
            try:
                db.execute(f"PRAGMA journal_mode = {journal}")
                return
            except sqlite3.OperationalError as error:
                if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                time.sleep(_BUSY_TIMEOUT_S / _TRIES)

    def _make(self) -> None:
        """The table, unless another process was faster."""
        with self._writing() as db:
            if not int(db.execute("PRAGMA user_version").fetchone()[0]):
                for statement in filter(str.strip, _TABLE.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {_VERSION}")

    def put(self, head: TraceHead, otlp: str, *, keep: int) -> None:
        """Keeps one, and of its kind the last ``keep``. Raises TracesError, also where another file lies in the place
        of this one by now, StorageFull."""
        data = zlib.compress(otlp.encode(), 6)
        row = (head.trace_id, head.kind, head.began_ns, head.duration_ns, head.outcome, len(data), data)
        with self._translated(), self._writing() as db:
            if not os.path.samestat(self._seen, self._path.stat()):
                raise TracesError(f"{self._path} was replaced while it was open.", remedy="Open it again.")
            db.execute(f"INSERT INTO traces ({_HEAD}, otlp) VALUES (?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - a constant
            db.execute(
                "DELETE FROM traces WHERE kind = ?1 AND number NOT IN "
                "(SELECT number FROM traces WHERE kind = ?1 ORDER BY number DESC LIMIT ?2)",
                (head.kind, keep),
            )
            self._make_room(db)

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Takes out the oldest until the rest is small enough; the last one stays in any case."""
        (total,) = db.execute("SELECT coalesce(sum(size_bytes), 0) FROM traces").fetchone()
        if total <= _MOST_BYTES:
            return
        for number, size_bytes in db.execute("SELECT number, size_bytes FROM traces ORDER BY number").fetchall()[:-1]:
            db.execute("DELETE FROM traces WHERE number = ?", (number,))
            total -= size_bytes
            if total <= _MOST_BYTES:
                return

    def heads(self, *, kind: TraceKind | None = None, limit: int = 1000, slowest: bool = False) -> list[TraceHead]:
        """The last first, or the slowest, without those whose row is damaged. Raises TracesError."""
        order = "duration_ns DESC, number DESC" if slowest else "number DESC"
        query = f"SELECT {_HEAD} FROM traces WHERE kind = ?1 OR ?1 IS NULL ORDER BY {order}"  # noqa: S608
        with self._translated():
            rows = filter(_is_head, self._db.execute(query, (kind,)))
            return [TraceHead(*row) for row in islice(rows, limit)]

    def damaged_count(self, *, kind: TraceKind) -> int:
        """Rows that nobody wrote, of this kind or of one that cannot be told any more. Raises TracesError."""
        others = [each for each in get_args(TraceKind) if each != kind]
        with self._translated():
            rows = self._db.execute(f"SELECT {_HEAD} FROM traces")  # noqa: S608
            return sum(not _is_head(row) for row in rows if row[1] not in others)

    def find(self, wanted: str) -> TraceHead:
        """The one whose id begins so. Raises TracesError for none, or several."""
        digits = wanted.lower()
        if digits and set(digits) <= set("0123456789abcdef"):
            with self._translated():
                rows = self._db.execute(
                    f"SELECT {_HEAD} FROM traces WHERE trace_id >= ? AND trace_id < ? LIMIT 2",  # noqa: S608
                    (digits, f"{digits}g"),
                ).fetchall()
            if len(rows) == 1:
                return self._head(rows[0])
            if rows:
                raise TracesError(f"Several traces begin with {wanted!r}.", remedy="Give more digits.")
        raise TracesError(f"There is no trace {wanted!r}.", remedy="`edgerag trace --list` lists them.")

    def _head(self, row: tuple[Any, ...]) -> TraceHead:
        """Raises TracesError for a row that nobody wrote."""
        if not _is_head(row):
            what = f"A trace in {self._path} cannot be read: its row is damaged."
            raise TracesError(what, remedy=_OTHERS)
        return TraceHead(*row)

    def otlp(self, trace_id: str) -> str:
        """Raises TracesError for one that is gone, or damaged."""
        with self._translated():
            row = self._db.execute("SELECT otlp FROM traces WHERE trace_id = ?", (trace_id,)).fetchone()
        if row is None:
            raise TracesError(f"The trace {trace_id} is gone.", remedy="`edgerag trace --list` lists those kept.")
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(row[0], _LARGEST_TRACE)
            if not unpacking.eof:
                raise ValueError("it is cut short")
            return text.decode()
        except (zlib.error, ValueError, TypeError) as error:
            raise TracesError(f"The trace {trace_id} is damaged: {error}.", remedy=_OTHERS) from error

    def tree(self, trace_id: str) -> TraceTree:
        """Raises as :meth:`otlp`."""
        return from_otlp(self.otlp(trace_id))

    def close(self) -> None:
        with self._translated():
            self._db.close()

    def __enter__(self) -> TraceRing:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged file even SQLite's messages may be no text
            primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
            what = f"The traces in {self._path} cannot be"
            if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise StorageFull(
                    f"{what} written: {error}.", remedy="Free some space, or set trace.keep to 0."
                ) from error
            if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise TracesError(f"{what} used: another program holds them.", remedy="Try again.") from error
            if _is_damage(error, primary):
                raise TracesDamaged(f"{what} read: {error}.", remedy=_SET_ASIDE) from error
            raise TracesError(f"{what} used: {error}.", remedy=_SET_ASIDE) from error
        except OSError as error:
            what = f"The traces in {self._path} cannot be written: {error.strerror or error}."
            raise StorageFull(what, remedy="Make the folder writable, or set trace.keep to 0.") from error


def _is_damage(error: sqlite3.Error | UnicodeDecodeError, primary: int) -> bool:
    """Whether it says that the file is not what it was: broken, none of SQLite's, text that is none, a table gone."""
    if isinstance(error, UnicodeDecodeError) or primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return True
    return primary == sqlite3.SQLITE_ERROR and str(error).startswith(("no such table", "no such column", "malformed"))


def _is_head(row: tuple[Any, ...]) -> bool:
    """SQLite does not hold columns to their types."""
    return [type(value) for value in row] == _HEAD_TYPES and row[1] in get_args(TraceKind)


def set_aside(path: Path) -> Path:
    """Moves a damaged file of traces, which may still be read by other means, out of the way; where it is then. One
    that was set aside before goes. Raises StorageFull."""
    aside = path.with_name(f"{path.name}.damaged")
    try:
        for end in ("-wal", "-shm"):  # of the file that is there, and of no other
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        path.replace(aside)
    except OSError as error:
        raise StorageFull(
            f"The damaged traces in {path} cannot be set aside: {error.strerror or error}.",
            remedy="Make the folder writable, or set trace.keep to 0.",
        ) from error
    return aside


def _nothing_yet() -> TracesError:
    return TracesError("No answer was traced yet.", remedy="Ask something; `trace.keep` must not be 0.")
