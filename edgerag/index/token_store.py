"""The tokens of chunks and of the lines that introduce them, kept beside the library for one chat model.

A prompt is put together from them, so that no text is tokenised twice, not even by another process. They say what
the text says, so they are as private as the library (0600), and they go with it: with the chunk when its document is
edited or removed, overwritten (secure_delete). What was read before a drop is not kept after it.

It is a cache: whatever lies in the file, and no disk that is full or refuses, raises. Rows that are damaged, of
another text or of another model are passed over; a file that is none of ours or damaged is begun anew.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sqlite3
import stat
import threading
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from edgerag.encryption.database import connect
from edgerag.encryption.keys import LibraryKey
from edgerag.types import ChunkTokens

T = TypeVar("T")
Mode = Literal["read", "write"]

FILE_NAME = "tokens.sqlite"
# 60,000 chunks of the usual length: more than anybody asks about, and little beside the states of a few hundred.
MOST_BYTES = 64_000_000
_VERSION = 1
_BUSY_TIMEOUT_S = 2.0  # others write for milliseconds
# The file may be whole, and cannot be used now. All else is damage, a header included that names an unknown format or
# lets nobody write.
_REFUSED = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    }
)
_KEPT_WHEN_FULL = 0.75  # so that a full file is not made room in for every chunk
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS tokens (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    text_hash BLOB NOT NULL,
    tokens BLOB NOT NULL,
    crc INTEGER NOT NULL,
    UNIQUE (scope, name, text_hash)
);
CREATE INDEX IF NOT EXISTS tokens_of_document ON tokens (document);
CREATE TABLE IF NOT EXISTS drops (id INTEGER PRIMARY KEY CHECK (id = 1), count INTEGER NOT NULL);
INSERT OR IGNORE INTO drops VALUES (1, 0);
PRAGMA user_version = {_VERSION};
COMMIT;
"""  # noqa: S608 - a number of ours


def text_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


class TokenStore:
    """One file, for any thread and any number of processes. Makes nothing before something is kept."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES, key: LibraryKey | None = None) -> None:
        """``most_bytes`` 0 keeps nothing on the disk; what lies there can still be dropped. ``key``: of an encrypted
        library."""
        self._file = folder / FILE_NAME
        self._most_bytes = most_bytes
        self._key = key
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._own_drops = 0
        self._begun: tuple[int, int] | None = None

    def begun(self) -> tuple[int, int]:
        """The moment of the last :meth:`begin`; now, if there was none."""
        return self._begun or self.moment()

    def begin(self) -> None:
        """A question begins, and chunks are read for it: what is dropped from now on is not kept for it."""
        self._begun = self.moment()

    def moment(self) -> tuple[int, int]:
        """Another value after every drop, by whatever process."""
        with self._lock:
            counts = self._tried(lambda db: db.execute("SELECT count FROM drops").fetchone(), mode="read")
            return (self._own_drops, int(counts[0]) if counts else 0)

    def read(self, scope: str, wanted: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, ...]]:
        """Of the chunks of those names and of texts of theirs the tokens that are there, by text."""
        if not wanted:
            return {}
        marks = ", ".join("?" * len(wanted))
        query = f"SELECT name, text_hash, tokens, crc FROM tokens WHERE scope = ? AND name IN ({marks})"  # noqa: S608
        with self._lock:
            rows = self._tried(lambda db: db.execute(query, (scope, *wanted)).fetchall(), mode="read") or []
        texts = {(name, text_hash(text)): text for name, of_chunk in wanted.items() for text in of_chunk}
        found = {}
        for name, found_hash, packed, crc in rows:
            text = texts.get((name, found_hash))
            if text is not None and isinstance(packed, bytes) and crc == _crc(scope, name, found_hash, packed):
                found[text] = tuple(_unpacked(packed))
        return found

    def keep(self, scope: str, chunks: Sequence[ChunkTokens], *, since: tuple[int, int]) -> None:
        """Keeps the tokens of chunks, unless anything was dropped after that moment."""
        if not self._most_bytes or not chunks:
            return
        rows = []
        for chunk in chunks:
            packed = array("i", chunk.tokens)
            if packed.itemsize != 4:  # pragma: no cover - on no machine that Python runs on today
                return
            found_hash, data = text_hash(chunk.text), packed.tobytes()
            document = chunk.name.partition("-chunk-")[0]
            rows.append((scope, chunk.name, document, found_hash, data, _crc(scope, chunk.name, found_hash, data)))

        def write(db: sqlite3.Connection) -> None:
            dropped = int(db.execute("SELECT count FROM drops").fetchone()[0])
            if since != (self._own_drops, dropped):  # they may be of a document that is gone
                return
            db.executemany(
                "INSERT OR REPLACE INTO tokens (scope, name, document, text_hash, tokens, crc)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._make_room(db)

        with self._lock:
            self._tried(write, mode="write")

    def drop(self, names: Collection[str] = (), *, documents: Collection[str] = (), everything: bool = False) -> bool:
        """Removes the tokens of chunks, of whole documents ("doc-…") or all. False where the disk refused."""
        if not names and not documents and not everything:
            return True

        def write(db: sqlite3.Connection) -> bool:
            if everything:
                db.execute("DELETE FROM tokens")
            db.executemany("DELETE FROM tokens WHERE name = ?", [(name,) for name in names])
            db.executemany("DELETE FROM tokens WHERE document = ?", [(document,) for document in documents])
            db.execute("UPDATE drops SET count = count + 1")
            return True

        with self._lock:
            self._own_drops += 1
            # Made where it is not there: another process may have read a chunk, and keep its tokens in a moment.
            return bool(self._tried(write, mode="write")) or not self._file.exists()

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    # ------------------------------------------------------------ the file

    def _make_room(self, db: sqlite3.Connection) -> None:
        """The chunks that were kept first go first."""
        pages, free, size = (
            int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
        )
        used_bytes = (pages - free) * size
        if used_bytes > self._most_bytes:
            (count,) = db.execute("SELECT count(*) FROM tokens").fetchone()
            going = count - int(count * _KEPT_WHEN_FULL * self._most_bytes / used_bytes)
            db.execute("DELETE FROM tokens WHERE id IN (SELECT id FROM tokens ORDER BY id LIMIT ?)", (going,))

    def _tried(self, do: Callable[[sqlite3.Connection], T], *, mode: Mode) -> T | None:
        """What ``do`` gives; None where the file cannot be used, or is not there to be read."""
        try:
            db = self._opened(mode)
            if db is None:
                return None
            with _transaction(db) if mode == "write" else contextlib.nullcontext():
                return do(db)
        except (sqlite3.DatabaseError, UnicodeDecodeError, TypeError, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSED:  # made again, which takes milliseconds
                return None
            self.close()  # damaged, of another program, or not ours to touch
            if mode == "write":
                with contextlib.suppress(OSError):
                    self._file.unlink(missing_ok=True)
            return None

    def _opened(self, mode: Mode) -> sqlite3.Connection | None:
        """Made where it is to be written and is not there. Raises sqlite3.Error, OSError."""
        identity = _identity(self._file)
        if self._db is not None and identity == self._identity:
            return self._db
        self.close()
        if identity is None:
            if mode == "read":
                return None
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        db = connect(self._file, key=self._key, timeout=_BUSY_TIMEOUT_S)
        try:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("PRAGMA temp_store = MEMORY")
            if int(db.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
                if mode == "read":
                    db.close()
                    return None
                db.execute("DROP TABLE IF EXISTS tokens")
                db.executescript(_TABLES)
        except BaseException:
            db.close()
            raise
        self._db, self._identity = db, _identity(self._file)
        return db


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _identity(file: Path) -> tuple[int, int] | None:
    """Of the file that lies there now: another process may have removed it and begun anew. Raises OSError for what is
    no file: a link is not followed."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file")
    return status.st_dev, status.st_ino


def _crc(scope: str, name: str, found_hash: bytes, packed: bytes) -> int:
    return zlib.crc32(packed, zlib.crc32(b"\0".join((scope.encode(), name.encode(), found_hash))))


def _unpacked(packed: bytes) -> array[int]:
    tokens = array("i")
    tokens.frombytes(packed[: len(packed) // 4 * 4])
    return tokens
