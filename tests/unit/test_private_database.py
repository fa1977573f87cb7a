"""Databases that are their owner's alone: made so, and read where nothing can be written."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from edgerag.private_database import make_private, make_private_folders, private_opener, reading_uri, writing_uri


@pytest.mark.parametrize("was_there", [True, False])
def test_nobody_else_can_read_it(tmp_path: Path, was_there: bool) -> None:
    file = tmp_path / "folder" / "kept.sqlite"
    if was_there:
        file.parent.mkdir()
        file.touch(mode=0o644)
    assert make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["kept.sqlite", "100 %?mode=memory#x.sqlite", "größer.sqlite"])
def test_a_file_of_any_name_is_the_one_that_is_opened(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    made = sqlite3.connect(writing_uri(file), uri=True)
    made.execute("CREATE TABLE kept (word TEXT)")
    made.close()
    assert file.stat().st_size
    read = sqlite3.connect(reading_uri(file, can_make_files=True), uri=True)
    assert read.execute("SELECT name FROM sqlite_schema").fetchall() == [("kept",)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        read.execute("INSERT INTO kept VALUES ('pump')")
    read.close()


def test_where_nothing_can_be_written_no_file_is_made_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite"
    made = sqlite3.connect(writing_uri(file), uri=True)
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("CREATE TABLE kept (word TEXT)")
    made.close()
    read = sqlite3.connect(reading_uri(file, can_make_files=False), uri=True)
    assert read.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
    read.close()


def test_what_stands_in_the_log_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite"
    writer = sqlite3.connect(writing_uri(file), uri=True)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE kept (word TEXT)")
    read = sqlite3.connect(reading_uri(file, can_make_files=False), uri=True)
    assert read.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    read.close()
    writer.close()


def test_folders_that_are_made_are_the_owners_alone_and_others_stay(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "there").mkdir(mode=0o755)
        make_private_folders(tmp_path / "there" / "a" / "b")
        make_private_folders(tmp_path / "there" / "a" / "b")
        with open(tmp_path / "file", "wb", opener=private_opener):
            pass
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("there", "there/a", "there/a/b", "file")]
    assert modes == [0o755, 0o700, 0o700, 0o600]
    with pytest.raises(FileExistsError):
        make_private_folders(tmp_path / "file")
