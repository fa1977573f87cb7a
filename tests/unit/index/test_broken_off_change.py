"""A rollback journal that a killed writer left, on a disk that machines share, is undone by whoever comes next."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgerag.errors import LibraryDamaged, LibraryMissing
from edgerag.index.library import Library
from edgerag.index.repair import repair_database


@pytest.fixture
def broken_off(opened: Any, material: Any) -> Path:
    """As left by a machine that keeps a rollback journal: half of a change is in the file."""
    library = opened()
    for number in range(20):
        material.put(library, f"/docs/{number}", [f"word{each} of {number}" for each in range(20)])
    material.embed_pending(library)
    library.close()
    database = Path(library.folder) / "library.sqlite"
    (database.parent / "library.sums").unlink()
    pid = os.fork()
    if pid == 0:
        db = sqlite3.connect(database, isolation_level=None)
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.execute("PRAGMA cache_size = 1")  # pages are written before the end
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE documents SET title = 'half done', headings = headings || '     '")
        db.execute("UPDATE chunks SET context = '\"half done\"'")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert b"half done" in database.read_bytes()
    assert database.with_name("library.sqlite-journal").stat().st_size
    return database.parent


def is_whole(library: Library) -> bool:
    chunks = library.chunks(list(range(1, 401)))
    return len(chunks) == 400 and {chunk.title for chunk in chunks} == {"A title"}


def test_a_reader_undoes_it(broken_off: Path, opened: Any) -> None:
    with opened("read") as library:
        assert is_whole(library)
        assert {finding.severity for finding in library.verify()} == {"ok"}


def test_a_writer_undoes_it(broken_off: Path, opened: Any) -> None:
    with opened() as library:
        assert is_whole(library)


def test_for_repair_there_is_nothing_else_to_mend(broken_off: Path, opened: Any) -> None:
    done = repair_database(broken_off)
    assert (done.state, done.losses) == ("whole", ())
    with opened("read") as library:
        assert is_whole(library)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
def test_where_it_cannot_be_written_that_is_said_and_nothing_half_done_is_read(broken_off: Path, opened: Any) -> None:
    if subprocess.run(["mount", "--bind", broken_off, broken_off], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", broken_off], check=True)
        with pytest.raises(LibraryDamaged, match="broken off") as refused:
            opened("read")
        assert "edgerag status once where the library can be written" in refused.value.remedy
    finally:
        subprocess.run(["umount", broken_off], check=True)


def test_one_that_was_killed_while_it_was_made_was_never_finished(tmp_path: Path, opened: Any) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    pid = os.fork()
    if pid == 0:
        db = sqlite3.connect(folder / "library.sqlite", isolation_level=None)
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        for number in range(50):
            db.execute(f"CREATE TABLE half_{number} (done)")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert (folder / "library.sqlite-journal").stat().st_size
    with pytest.raises(LibraryMissing):
        opened("read")
    opened().close()
