"""Encrypted databases behave as sqlite3's: the same statements, the same errors; and hold no text."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from edgerag.encryption.database import connect, write_copy
from edgerag.encryption.keys import new_library_key
from edgerag.errors import LibraryLocked

pytest.importorskip("sqlcipher3")
KEY = new_library_key()
TABLES = """
CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT UNIQUE);
CREATE TABLE keyed (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='');
PRAGMA user_version = 9;
PRAGMA application_id = 1234;
"""


def filled(path: Path, key: object) -> sqlite3.Connection:
    db = connect(path, key=key)  # type: ignore[arg-type]
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(TABLES)
    db.executemany("INSERT INTO numbered VALUES (?, ?)", [(5, "canary bird"), (900, "a second")])
    db.execute("DELETE FROM numbered WHERE id = 900")
    db.execute("INSERT INTO keyed VALUES ('x', 1)")
    db.execute("INSERT INTO words (rowid, text) VALUES (5, 'canary bird')")
    return db


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_errors_are_those_of_sqlite3(tmp_path: Path, key: object) -> None:
    db = filled(tmp_path / "a", key)
    with pytest.raises(sqlite3.IntegrityError) as unique:
        db.execute("INSERT INTO numbered (text) VALUES ('canary bird')")
    # The package tells no more of the number than this; what needs more of it is said in store.py.
    assert unique.value.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CONSTRAINT
    with pytest.raises(sqlite3.OperationalError):
        db.execute("SELECT nothing FROM nowhere")
    with pytest.raises(sqlite3.OperationalError):
        db.executescript("BEGIN; SELECT nothing FROM nowhere;")
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT ?")
    db.execute("ROLLBACK")
    assert not db.in_transaction
    db.close()
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")


def test_two_writers_meet_as_they_do_elsewhere(tmp_path: Path) -> None:
    first = filled(tmp_path / "a", KEY)
    second = connect(tmp_path / "a", key=KEY, timeout=0)
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as busy:
        second.execute("BEGIN IMMEDIATE")
    assert busy.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    first.close()
    second.close()


def test_nothing_is_read_without_the_key_and_no_text_lies_in_the_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    db = filled(tmp_path / "a", KEY)
    files = list(tmp_path.iterdir())
    assert any(path.name.endswith("-wal") for path in files)
    assert not [path for path in files if b"canary" in path.read_bytes()]
    for other in (None, new_library_key()):
        stranger = connect(tmp_path / "a", key=other)
        with pytest.raises(sqlite3.DatabaseError) as refused:
            stranger.execute("SELECT * FROM numbered")
        assert refused.value.sqlite_errorcode == sqlite3.SQLITE_NOTADB
        stranger.close()
    db.close()
    assert not [path for path in tmp_path.iterdir() if b"canary" in path.read_bytes()]
    assert capfd.readouterr() == ("", ""), "SQLCipher says nothing on its own"


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    db = connect(tmp_path / "a", key=KEY)
    db.execute("CREATE TABLE t (x TEXT)")
    db.executemany("INSERT INTO t VALUES (?)", [(str(n) * 400,) for n in range(200)])
    db.close()
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[5 * 4096 + 100] ^= 1
    (tmp_path / "a").write_bytes(raw)
    db = connect(tmp_path / "a", key=KEY)
    with pytest.raises(sqlite3.DatabaseError):
        db.execute("SELECT count(*) FROM t WHERE x LIKE '%9%'").fetchall()
    db.close()


def contents(db: sqlite3.Connection) -> list[object]:
    queries = (
        "SELECT * FROM numbered",
        "SELECT * FROM keyed",
        "SELECT rowid FROM words WHERE words MATCH 'canary'",
        "SELECT * FROM sqlite_sequence",
        "PRAGMA user_version",
        "PRAGMA application_id",
        "SELECT name FROM sqlite_schema ORDER BY name",
    )
    return [db.execute(query).fetchall() for query in queries]


def test_a_copy_under_another_key_or_none_says_the_same(tmp_path: Path) -> None:
    plain = filled(tmp_path / "plain", None)
    other = new_library_key()
    write_copy(tmp_path / "plain", tmp_path / "a", source_key=None, target_key=KEY)
    write_copy(tmp_path / "a", tmp_path / "b", source_key=KEY, target_key=other)
    write_copy(tmp_path / "b", tmp_path / "c", source_key=other, target_key=None)
    for name, key in (("a", KEY), ("b", other), ("c", None)):
        db = connect(tmp_path / name, key=key)
        assert contents(db) == contents(plain)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        db.close()
    assert b"canary" not in (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes()
    plain.close()


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgerag.encryption import database

    database._encrypted_class.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "sqlcipher3.dbapi2", None)
    try:
        with pytest.raises(LibraryLocked, match="sqlcipher3") as caught:
            connect(tmp_path / "a", key=KEY)
        assert "edgerag[encryption]" in str(caught.value)
    finally:
        database._encrypted_class.cache_clear()
