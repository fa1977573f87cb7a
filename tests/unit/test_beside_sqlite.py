"""What SQLite holds of a file stays held while others in its process look at the file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from edgerag import beside_sqlite
from edgerag.beside_sqlite import open_beside_sqlite
from edgerag.index import at_rest
from edgerag.private_database import make_private

_ANOTHER_WRITES = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0)
db.execute("INSERT INTO t VALUES (2)")
db.commit()
db.close()
"""


def read_it(path: Path) -> None:
    with open_beside_sqlite(path) as stream:
        assert stream.read(6) == b"SQLite"


def look_at_sums(path: Path) -> None:
    assert at_rest.sums_of(path).blocks


LOOKS = pytest.mark.parametrize("look", [read_it, look_at_sums, make_private], ids=lambda look: look.__name__)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "some.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    return path


def open_descriptors() -> int:
    return psutil.Process().num_fds()


def another_writes(path: Path) -> int:
    return subprocess.run([sys.executable, "-c", _ANOTHER_WRITES, str(path)], stderr=subprocess.DEVNULL).returncode


@LOOKS
def test_the_last_of_another_program_leaves_the_log_of_ours(database: Path, look: Callable[[Path], object]) -> None:
    ours = sqlite3.connect(database)
    ours.execute("PRAGMA journal_mode = WAL")
    ours.execute("INSERT INTO t VALUES (1)")
    ours.commit()
    look(database)
    assert another_writes(database) == 0
    assert database.with_name("some.sqlite-wal").exists(), "it is not the only one that has the database open"
    ours.close()


@LOOKS
def test_what_is_locked_for_writing_stays_locked(database: Path, look: Callable[[Path], object]) -> None:
    ours = sqlite3.connect(database, isolation_level=None)
    ours.execute("BEGIN IMMEDIATE")
    look(database)
    assert another_writes(database) != 0
    ours.execute("COMMIT")
    assert another_writes(database) == 0
    ours.close()


def test_two_that_read_are_each_at_their_own_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    with open_beside_sqlite(path) as one, open_beside_sqlite(path) as other:
        assert one.read(3) == b"\x00\x01\x02"
        other.seek(100)
        assert other.read(1) == b"\x64" and one.read(1) == b"\x03"
        assert other.seek(-1, os.SEEK_END) == 199 and other.read() == b"\xc7" and other.tell() == 200
        assert other.read() == b""


def test_a_file_in_the_place_of_another_is_read_and_the_deleted_one_let_go(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    with open_beside_sqlite(path) as first:
        path.unlink()
        path.write_bytes(b"second")
        with open_beside_sqlite(path) as second:
            assert (first.read(), second.read()) == (b"first", b"second")
    path.unlink()
    before = open_descriptors()
    other = tmp_path / "other"
    other.write_bytes(b"other")
    with open_beside_sqlite(other) as stream:
        assert stream.read() == b"other"
    assert open_descriptors() == before - 1, "two deleted, one more held"


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_beside_sqlite(tmp_path / "none")
    assert not [each for every in beside_sqlite._every_held.values() for each in every if each.readers]
