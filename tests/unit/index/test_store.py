from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgerag.errors import (
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    LibraryMissing,
    LibraryVersionUnknown,
    StorageFull,
)
from edgerag.index import migrations
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.index.store import Store, stored_json, translated
from edgerag.types import EmbedderIdentity

ROOT = Path(__file__).parents[3]


def test_a_second_writer_is_told_who_is_writing(opened: Any) -> None:
    opened()
    with pytest.raises(LibraryBusy, match=rf"pid {os.getpid()}\b"):
        opened()


def test_the_lock_goes_with_the_writer(opened: Any) -> None:
    opened().close()
    opened().close()


def test_a_newer_library_is_refused(tmp_path: Path) -> None:
    Store(tmp_path, mode="write", steps=[*migrations.STEPS, "CREATE TABLE later (x);"]).close()
    for mode in ("read", "write"):
        with pytest.raises(LibraryVersionUnknown, match=f"has version {len(migrations.STEPS) + 1}"):
            Store(tmp_path, mode=mode)


def test_an_older_library_is_brought_up_by_a_writer_and_keeps_its_rows(tmp_path: Path) -> None:
    steps = [*migrations.STEPS, "ALTER TABLE meta ADD COLUMN note TEXT;"]
    store = Store(tmp_path, mode="write")
    with store.writing() as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('k', 'v')")
    store.close()
    with pytest.raises(LibraryVersionUnknown, match=f"older version {len(migrations.STEPS)}"):
        Store(tmp_path, mode="read", steps=steps)
    Store(tmp_path, mode="write", steps=steps).close()
    store = Store(tmp_path, mode="read", steps=steps)
    with store.reading() as db:
        assert db.execute("SELECT key, value, note FROM meta").fetchall() == [("k", "v", None)]
    store.close()


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    Store(tmp_path, mode="write").close()
    with pytest.raises(LibraryDamaged):
        Store(tmp_path, mode="write", steps=[*migrations.STEPS, "CREATE TABLE half (x); CREATE TABLE half (x);"])
    store = Store(tmp_path, mode="write")
    with store.reading() as db:
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
    store.close()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "library.sqlite")
    connection.executescript("CREATE TABLE other (x); PRAGMA user_version = 7;")
    connection.close()
    before = (tmp_path / "library.sqlite").read_bytes()
    for mode in ("read", "write"):
        with pytest.raises(LibraryVersionUnknown, match="another program"):
            Store(tmp_path, mode=mode)
    assert (tmp_path / "library.sqlite").read_bytes() == before


def test_a_file_that_is_no_database_is_called_damaged(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "library.sqlite").write_bytes(b"this is not a database, whatever its name says" * 100)
    for mode in ("read", "write"):
        with pytest.raises(LibraryDamaged, match=r"library\.sqlite"):
            opened(mode)


def test_an_empty_file_is_no_library(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "library.sqlite").touch()
    with pytest.raises(LibraryMissing):
        opened("read")
    assert opened("write").documents() == []


def test_a_damaged_page_is_reported_not_answered(opened: Any, material: Any) -> None:
    library = opened()
    for number in range(40):
        material.put(library, f"/docs/{number}", [f"text {number} " * 40])
    library.close()
    path = library.folder / "library.sqlite"
    raw = bytearray(path.read_bytes())
    for page in range(4096, len(raw), 4096):
        raw[page : page + 64] = b"\xff" * 64
    path.write_bytes(raw)
    with pytest.raises(LibraryDamaged):
        opened("read").documents()
    raw = bytearray(path.read_bytes())[:4096]
    path.write_bytes(raw)
    with pytest.raises(LibraryDamaged):
        opened("read").documents()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_FULL", StorageFull),
        ("SQLITE_IOERR", StorageFull),
        ("SQLITE_IOERR_WRITE", StorageFull),
        ("SQLITE_IOERR_FSYNC", StorageFull),
        ("SQLITE_IOERR_TRUNCATE", StorageFull),
        ("SQLITE_READONLY", StorageFull),
        ("SQLITE_IOERR_READ", LibraryDamaged),
        ("SQLITE_IOERR_SHORT_READ", LibraryDamaged),
        ("SQLITE_BUSY", LibraryBusy),
        ("SQLITE_CORRUPT", LibraryDamaged),
        ("SQLITE_NOTADB", LibraryDamaged),
        ("SQLITE_CANTOPEN", StorageFull),
    ],
)
def test_what_sqlite_says_is_said_in_our_words(name: str, kind: type[Exception], tmp_path: Path) -> None:
    error = sqlite3.OperationalError("as SQLite puts it")
    error.sqlite_errorcode = getattr(sqlite3, name)
    with pytest.raises(kind, match="as SQLite puts it"), translated(tmp_path / "library.sqlite"):
        raise error


def test_a_full_disk_is_called_full(tmp_path: Path) -> None:
    with pytest.raises(StorageFull, match="The disk is full"), translated(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_library_cannot_be_made_where_a_file_stands(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "lib").write_text("in the way")
    with pytest.raises(StorageFull, match="lib"):
        opened()


def test_a_library_is_not_made_around_a_segments_folder_of_the_users_own(opened: Any, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for name in ("video.ts", "00000007.hnsw"):
        file = folder / "segments" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
        with pytest.raises(LibraryError, match="may be your own") as caught:
            opened(folder=folder)
        assert "--library" in caught.value.remedy
        assert [path.name for path in folder.iterdir()] == ["segments"]
        assert file.read_text() == "mine"
        file.unlink()
    (folder / "notes.md").touch()
    with pytest.raises(LibraryError):
        opened(folder=folder)
    (folder / "notes.md").unlink()
    (folder / "writer.lock").touch()  # what a writer leaves that was killed at once
    assert opened(folder=folder).documents() == []


def test_a_writer_deletes_only_what_a_writer_made(opened: Any) -> None:
    library = opened()
    library.close()
    segments = library.folder / "segments"
    theirs = ["video.ts", "7.hnsw", "00000007.hnsw.bak", "copy.tmp", "x00000007.hnsw", "00000007.hnsw.graph"]
    for name in [*theirs, "00000007.hnsw", "00000007.hnsw.tmp", "00000007.hnsw.graph.tmp"]:
        (segments / name).touch()
    (segments / "00000008.hnsw").mkdir()
    opened()
    assert sorted(path.name for path in segments.iterdir()) == sorted([*theirs, "00000008.hnsw"])


def test_a_transaction_that_fails_leaves_nothing(opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = opened()
    from edgerag.index import analyze

    def fail(text: str, **_: object) -> str:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(analyze, "index_text", fail)
        with pytest.raises(MemoryError):
            material.put(library, "/docs/a", ["text"])
    assert library.documents() == []
    material.put(library, "/docs/a", ["text"])
    assert len(library.documents()) == 1


# Drops the capability that lets root write everywhere, so that the folder's mode counts for whoever runs this.
READ_ONLY_SCRIPT = """
import ctypes, sys
libc = ctypes.CDLL(None)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
libc.capset(header, (ctypes.c_uint32 * 6)())
from pathlib import Path
import numpy as np
from edgerag.errors import EdgeragError
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
folder = Path(sys.argv[1])
try:
    (folder / "probe").touch()
except OSError:
    pass
else:
    sys.exit("the folder can be written")
try:
    with open_library(folder, mode="read", residency=Residency(10**9)) as library:
        vector = np.zeros(16, dtype=np.float32)
        vector[0] = 1
        print(len(library.search_keywords("paragraph", limit=99)),
              len(library.search_vectors(vector, limit=99, ef_search=9)),
              {finding.severity for finding in library.verify()})
except EdgeragError as error:
    print(type(error).__name__, error)
"""


def read_without_writing(folder: Path) -> str:
    modes = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        result = subprocess.run(
            [sys.executable, "-c", READ_ONLY_SCRIPT, str(folder)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_library_in_a_read_only_folder_is_read(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", [f"paragraph {i}" for i in range(30)])
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/b", ["one more paragraph"])
    library.close()
    assert read_without_writing(library.folder) == "31 30 {'ok'}"


def test_unapplied_changes_in_a_read_only_folder_are_not_passed_over(
    opened: Any, material: Any, tmp_path: Path
) -> None:
    import shutil

    library = opened()
    material.put(library, "/docs/a", ["paragraph"])
    copy = tmp_path / "copy"
    shutil.copytree(library.folder, copy)  # while the WAL holds everything, as a backup would
    (copy / "library.sqlite-shm").unlink()
    said = read_without_writing(copy)
    assert said.startswith(("LibraryDamaged", "1 0"))
    assert opened("read", folder=copy).chunk_count() == 1, "where it can be written it is applied"


def test_an_emptied_database_beside_segments_is_damage_not_a_new_library(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "00000001.hnsw").write_bytes(b"vectors")
    (tmp_path / "library.sqlite").touch()
    identity = EmbedderIdentity(name="x", weights_sha256="0" * 64, dimension=4, languages=("*",))
    for mode in ("read", "write"):
        with pytest.raises(LibraryDamaged, match="cut off"):
            open_library(tmp_path, mode=mode, residency=Residency(10**7), identity=identity)
    assert (tmp_path / "segments" / "00000001.hnsw").read_bytes() == b"vectors"


@pytest.mark.parametrize("text", ["[1, 2", "\\x", None, "[" * 100_000, "12", "1.5", '"list"', "null", "{}"])
def test_a_row_that_is_not_the_json_that_was_written_is_damage(text: str) -> None:
    with pytest.raises(LibraryDamaged, match="row"):
        stored_json(text, list)


def test_a_reader_keeps_the_pages_that_every_question_needs(opened: Any, tmp_path: Path) -> None:
    opened().close()
    reader = Store(tmp_path / "lib", mode="read")
    try:
        with reader.reading() as db:
            (kept,) = db.execute("PRAGMA cache_size").fetchone()
    finally:
        reader.close()
    assert kept == -8_192
