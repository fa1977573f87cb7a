"""The copy of a library that is being brought up: it is known, used when it is needed, and nobody else's is touched."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from unit.index import golden_libraries as golden

from edgerag.errors import EdgeragError, LibraryDamaged, StorageFull
from edgerag.index import bringing_up, migrations
from edgerag.index.at_rest import NAME as SUMS
from edgerag.index.repair import repair_database
from edgerag.index.store import Store

VERSION = 6
PAGE = 4096


class _Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_behind(step: int) -> Iterator[None]:
    """The program ends when so many steps of the schema are done."""

    def migrate(db: Any, *, where: str, steps: Any, until: int) -> None:
        whole(db, where=where, steps=steps, until=min(until, step))
        if until >= step:
            raise _Killed

    whole = migrations.migrate
    with pytest.MonkeyPatch.context() as patch, pytest.raises(_Killed):
        patch.setattr(migrations, "migrate", migrate)
        yield


@pytest.fixture
def between(tmp_path: Path) -> Path:
    """A library of which two steps of being brought up are done."""
    folder = golden.unpack(tmp_path, VERSION)
    with killed_behind(VERSION + 2):
        Store(folder, mode="write")
    assert (folder / bringing_up.FOLDER_NAME / "library.sqlite").is_file()
    return folder


def harm(database: Path, *tables: str) -> None:
    """The first pages of trees are lost."""
    db = sqlite3.connect(database)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = [
        db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0] for table in tables
    ]
    db.close()
    with database.open("r+b") as stream:
        for page in pages:
            stream.seek((page - 1) * PAGE)
            stream.write(b"\xff" * PAGE)
    (database.parent / SUMS).unlink(missing_ok=True)


def is_as_expected(home: Path) -> bool:
    expected = golden.expected(VERSION)
    with golden.session(home) as session, session._browsing.use() as library:
        return golden.found(library) == {key: expected[key] for key in ("documents", "failures", "pending")}


@pytest.mark.parametrize("what", ["documents", "the head of the file", "all of it"])
def test_damaged_between_two_versions_it_is_put_back_whole(tmp_path: Path, between: Path, what: str) -> None:
    database = between / "library.sqlite"
    if what == "documents":
        harm(database, "documents", "chunks", "document_texts")
    else:
        size = database.stat().st_size if what == "all of it" else 100
        with database.open("r+b") as stream:
            stream.write(b"\xff" * size)
    done = repair_database(between)
    assert (done.state, done.losses) == ("put back", ())
    assert is_as_expected(tmp_path)
    Store(between, mode="write").close()
    assert not (between / bringing_up.FOLDER_NAME).exists()
    assert is_as_expected(tmp_path)


def test_a_copy_that_is_damaged_too_is_not_put_back_and_stays_until_its_documents_are_there(
    tmp_path: Path, between: Path
) -> None:
    copy = between / bringing_up.FOLDER_NAME / "library.sqlite"
    before = copy.read_bytes()
    copy.write_bytes(before[:-PAGE] + b"\xff" * PAGE)
    harm(between / "library.sqlite", "documents")
    done = repair_database(between)
    assert done.state == "rebuilt" and done.losses
    Store(between, mode="write").close()
    assert copy.is_file()


def test_what_was_written_to_it_before_it_was_brought_up_again_is_in_the_copy(tmp_path: Path) -> None:
    """Killed before the first step, it is written to by the program of before."""
    folder = golden.unpack(tmp_path, VERSION)
    with killed_behind(VERSION):
        Store(folder, mode="write")
    db = sqlite3.connect(folder / "library.sqlite")
    with db:
        db.execute("UPDATE documents SET title = 'A new title' WHERE id = 1")
    db.close()
    with killed_behind(VERSION + 1):
        Store(folder, mode="write")
    harm(folder / "library.sqlite", "documents")
    assert repair_database(folder).state == "put back"
    db = sqlite3.connect(folder / "library.sqlite")
    assert db.execute("SELECT title FROM documents WHERE id = 1").fetchone() == ("A new title",)
    db.close()


def test_files_of_the_user_are_no_copies(tmp_path: Path) -> None:
    """Whatever they are called, they are neither deleted nor put in the place of the library."""
    folder = golden.unpack(tmp_path, VERSION)
    old = (folder / "library.sqlite").read_bytes()
    names = [f"library.sqlite.v{version}" for version in (2, VERSION, 99)] + ["library.sqlite.v2.tmp"]
    for name in names:
        (folder / name).write_bytes(old)
    Store(folder, mode="write").close()
    with golden.session(tmp_path) as session:
        list(session.ingest([golden.FOLDER / "README.md"]))
    harm(folder / "library.sqlite", "chunks_of_document")
    with pytest.raises(EdgeragError, match="library repair"), golden.session(tmp_path) as session:
        list(session.ingest([golden.FOLDER]))
    assert repair_database(folder).state == "rebuilt"
    with golden.session(tmp_path) as session, session._browsing.use() as library:
        paths = {document.path for document in library.documents()}
        assert str(golden.FOLDER / "README.md") in paths, "it is the new one"
    assert [(folder / name).read_bytes() == old for name in names] == [True] * len(names)


@pytest.mark.parametrize("content", ["a file", "a folder with files", "a link"])
def test_what_stands_in_the_place_of_the_copy_is_named_and_left_alone(tmp_path: Path, content: str) -> None:
    folder = golden.unpack(tmp_path, VERSION)
    place = folder / bringing_up.FOLDER_NAME
    target = tmp_path / "elsewhere" if content == "a link" else place
    if content == "a file":
        place.write_text("mine")
    else:
        target.mkdir()
        (target / "library.sqlite").write_text("mine")
        if content == "a link":
            place.symlink_to(target)
    before = (folder / "library.sqlite").read_bytes()
    with pytest.raises(StorageFull, match=r"stands in the place of .*\.bringing-up"):
        Store(folder, mode="write")
    assert (folder / "library.sqlite").read_bytes() == before
    assert (place if content == "a file" else target / "library.sqlite").read_text() == "mine"


def test_a_copy_of_another_state_of_the_library_is_not_put_back(tmp_path: Path, between: Path) -> None:
    """The user put the library back himself, out of his own backup, and it was brought up and used since."""
    home = tmp_path / "mine"
    backup = golden.unpack(home, 11)
    shutil.copy(backup / "library.sqlite", between / "library.sqlite")
    for ending in ("-wal", "-shm"):
        (between / f"library.sqlite{ending}").unlink(missing_ok=True)
    harm(between / "library.sqlite", "chunks_of_document")
    assert repair_database(between).state == "rebuilt"
    db = sqlite3.connect(between / "library.sqlite")
    paths = {path for (path,) in db.execute("SELECT path FROM documents")}
    db.close()
    assert paths == set(golden.expected(11)["documents"])


def test_without_room_nothing_is_left_behind(tmp_path: Path) -> None:
    folder = golden.unpack(tmp_path, VERSION)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
    try:
        with pytest.raises(StorageFull):
            Store(folder, mode="write")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after.pop(SUMS, None) in (None, before.pop(SUMS, None))
    assert after == before and not (folder / bringing_up.FOLDER_NAME).exists()


def test_a_step_that_loses_documents_is_taken_back(tmp_path: Path) -> None:
    folder = golden.unpack(tmp_path, VERSION)
    bad = "DELETE FROM chunks; DELETE FROM document_texts; DELETE FROM chunk_words; DELETE FROM document_tags;"
    steps = (*migrations.STEPS[:VERSION], f"{bad} DELETE FROM documents;")
    with pytest.raises(LibraryDamaged, match=r"documents in place of .*It is as it was"):
        Store(folder, mode="write", steps=steps)
    assert is_as_expected(tmp_path)
