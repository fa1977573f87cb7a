"""Databases of SQLite, plain or encrypted: the one place that opens them by a key.

Plain ones are opened by Python's own sqlite3. Encrypted ones by SQLCipher (package ``sqlcipher3``), which encrypts and
authenticates every page, the log included; it is only imported where there is a key. Its connections and errors are
classes of its own: here they are made to raise those of sqlite3, so that everything else knows one module.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import LibraryLocked

T = TypeVar("T")
# What is not in this cache has to be decrypted again: 15 us a page. Plain files have the page cache of the kernel.
_CACHE_KIB = 32_768
# Of Python's own classes, the narrowest first.
_ERRORS = (
    "IntegrityError",
    "OperationalError",
    "ProgrammingError",
    "DataError",
    "InternalError",
    "NotSupportedError",
    "DatabaseError",
    "InterfaceError",
    "Error",
)
INSTALL = "Install it: pip install 'edgerag[encryption]'"


def connect(
    database: Path | str, *, key: LibraryKey | None = None, uri: bool = False, timeout: float = 5.0
) -> sqlite3.Connection:
    """A connection in autocommit mode for any thread, one at a time. ``database`` as sqlite3.connect takes it.

    Opening reads nothing: a wrong key is told by the first statement, as SQLITE_NOTADB. Raises sqlite3.Error, and
    LibraryLocked where SQLCipher is not installed.
    """
    if key is None:
        return sqlite3.connect(database, uri=uri, timeout=timeout, isolation_level=None, check_same_thread=False)
    connection = _encrypted_class()(database, uri=uri, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA cipher_log = off")  # it would write to the terminal what is raised as an error
        connection.execute(f"PRAGMA key = {key_literal(key)}")
    except BaseException:
        connection.close()
        raise
    return cast(sqlite3.Connection, connection)


def enlarge_cache(connection: sqlite3.Connection) -> None:
    """For an encrypted database that is read a lot. Reads the file, as the first statement of any does."""
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def key_literal(key: LibraryKey) -> str:
    """As SQLCipher takes it in a statement: the bytes themselves, from which it derives nothing slowly."""
    return f"\"x'{key.for_database().hex()}'\""


def key_clause(key: LibraryKey | None) -> str:
    """What stands behind ATTACH DATABASE ... AS name, in a connection of :func:`connect` with the same key or none."""
    return "" if key is None else f" KEY {key_literal(key)}"


def require_available() -> None:
    """Raises LibraryLocked, with what to install, where encrypted databases cannot be opened here."""
    _encrypted_class()


def write_copy(source: Path, target: Path, *, source_key: LibraryKey | None, target_key: LibraryKey | None) -> None:
    """Writes every table of a database to the new file ``target`` under another key, or none; as of one commit, on the
    disk when it returns. Raises sqlite3.Error."""
    connection = _encrypted_class()(source.as_uri(), uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA cipher_log = off")
        if source_key is not None:
            connection.execute(f"PRAGMA key = {key_literal(source_key)}")
        enlarge_cache(connection)
        literal = "''" if target_key is None else key_literal(target_key)
        connection.execute(f"ATTACH DATABASE ? AS leaving KEY {literal}", (str(target),))
        connection.execute("PRAGMA leaving.synchronous = FULL")
        connection.execute("BEGIN")
        connection.execute("SELECT sqlcipher_export('leaving')").fetchone()
        for stamp in ("user_version", "application_id"):  # not part of what is exported
            (value,) = connection.execute(f"PRAGMA main.{stamp}").fetchone()
            connection.execute(f"PRAGMA leaving.{stamp} = {int(value)}")
        connection.execute("COMMIT")
        connection.execute("DETACH DATABASE leaving")
    finally:
        connection.close()


@lru_cache(maxsize=1)
def _encrypted_class() -> Callable[..., Any]:
    """The connection class over SQLCipher's. Raises LibraryLocked where it is not installed."""
    try:
        module = import_module("sqlcipher3.dbapi2")
    except ImportError as error:
        raise LibraryLocked(
            f"Encrypted libraries need the package sqlcipher3, which cannot be used here ({error}).", remedy=INSTALL
        ) from error
    return _made_class(module)


def _made_class(module: ModuleType) -> Callable[..., Any]:
    theirs: type[Exception] = module.Error

    def told(do: Callable[[], T]) -> T:
        try:
            return do()
        except theirs as error:
            raise _as_ours(error, module) from error

    class Cursor(module.Cursor):  # type: ignore[misc, name-defined]
        def execute(self, sql: str, parameters: Any = ()) -> Any:
            return told(lambda: super(Cursor, self).execute(sql, parameters))

        def executemany(self, sql: str, parameters: Iterable[Any]) -> Any:
            return told(lambda: super(Cursor, self).executemany(sql, parameters))

        def executescript(self, script: str) -> Any:
            return told(lambda: super(Cursor, self).executescript(script))

        def fetchone(self) -> Any:
            return told(lambda: super(Cursor, self).fetchone())

        def fetchall(self) -> Any:
            return told(lambda: super(Cursor, self).fetchall())

        def fetchmany(self, *count: int) -> Any:
            return told(lambda: super(Cursor, self).fetchmany(*count))

        def __next__(self) -> Any:
            try:
                return super().__next__()
            except theirs as error:
                raise _as_ours(error, module) from error

    class Connection(module.Connection):  # type: ignore[misc, name-defined]
        def cursor(self, factory: Any = Cursor) -> Any:
            return told(lambda: super(Connection, self).cursor(factory))

        def execute(self, sql: str, parameters: Any = ()) -> Any:
            return self.cursor().execute(sql, parameters)

        def executemany(self, sql: str, parameters: Iterable[Any]) -> Any:
            return self.cursor().executemany(sql, parameters)

        def executescript(self, script: str) -> Any:
            return self.cursor().executescript(script)

        def backup(self, target: Any, **options: Any) -> None:
            told(lambda: super(Connection, self).backup(target, **options))

        def close(self) -> None:
            told(lambda: super(Connection, self).close())

    def opened(*arguments: Any, **options: Any) -> Any:
        return told(lambda: module.connect(*arguments, factory=Connection, **options))

    return opened


def _as_ours(error: Exception, module: ModuleType) -> sqlite3.Error:
    """The error of sqlite3 that says the same, with SQLite's own number and name of it."""
    name = next((each for each in _ERRORS if isinstance(error, getattr(module, each))), "Error")
    ours: sqlite3.Error = getattr(sqlite3, name)(*error.args)
    for fact in ("sqlite_errorcode", "sqlite_errorname"):
        if (value := getattr(error, fact, None)) is not None:
            setattr(ours, fact, value)
    return ours
