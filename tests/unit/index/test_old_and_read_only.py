"""A library that an older program wrote, where nothing can be written: it is read out of a copy."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest
from fakes import HashingEmbedder

from edgerag.config import Settings
from edgerag.errors import LibraryOutdated, StorageFull
from edgerag.index import at_rest, migrations, store
from edgerag.index import library as library_module
from edgerag.index.repair import repair_database
from edgerag.index.store import Store
from edgerag.index.travel import arrive, leave
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.types import Filter

OLDER = range(1, len(migrations.STEPS))


def old_library(folder: Path, material: Any, version: int) -> None:
    """As the program of that version left it, in SQL."""
    (folder / "segments").mkdir(parents=True)
    first = Store(folder, mode="write", steps=migrations.STEPS[:1])
    text = "first words\n\nsecond words"
    with first.writing() as db:
        identity = {"name": "by-rule", "weights_sha256": "ab" * 32, "dimension": 16, "languages": ["*"]}
        db.execute("INSERT INTO meta VALUES ('embedder', ?)", (json.dumps(identity),))
        db.execute(
            "INSERT INTO documents VALUES (1, '/docs/a', '/docs', 'A title', 'text/plain', '0', 1, 2, ?, '[]', '[]',"
            " '[]')",
            (len(text),),
        )
        db.execute("INSERT INTO document_texts VALUES (1, 0, ?)", (zlib.compress(text.encode()),))
        for number, (start, end, state) in enumerate([(0, 11, 1), (13, 25, 0)]):
            db.execute(
                "INSERT INTO chunks VALUES (?, 1, ?, ?, ?, '[]', NULL, NULL, 1, 1, 2, '\"\"', x'00', ?, NULL, NULL)",
                (number + 1, number, start, end, state),
            )
            db.execute("INSERT INTO chunk_words (rowid, body) VALUES (?, ?)", (number + 1, text[start:end]))
        db.execute("INSERT INTO vectors VALUES (1, ?)", (material.vector("A title\nfirst words").tobytes(),))
    first.close()
    Store(folder, mode="write", steps=migrations.STEPS[:version]).close()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize("version", OLDER)
def test_it_is_searched_and_not_touched(tmp_path: Path, opened: Any, material: Any, version: int) -> None:
    old_library(tmp_path / "lib", material, version)
    before = content(tmp_path / "lib")
    library = opened("read", as_copy=True)
    assert [hit.chunk_id for hit in library.search_keywords("words", limit=5)] == [1, 2]
    (hit,) = library.search_vectors(
        material.vector("A title\nfirst words"), limit=5, ef_search=5, where=Filter(paths=("/docs",))
    )
    assert hit.chunk_id == 1
    assert library.parsed_document(1).text == "first words\n\nsecond words"
    assert {finding.severity for finding in library.verify()} == {"ok"}
    library.close()
    left = {name: data for name, data in content(tmp_path / "lib").items() if name in before}
    assert left == before


@pytest.mark.parametrize("version", OLDER)
def test_it_is_backed_up_and_not_touched(tmp_path: Path, opened: Any, material: Any, version: int) -> None:
    old, package = tmp_path / "old", tmp_path / "old.edgerag"
    old_library(old, material, version)
    before = content(old)
    manifest = leave(old, package, name="old", progress=lambda done, total: None)
    assert (manifest.document_count, manifest.chunk_count) == (1, 2)
    assert {name: data for name, data in content(old).items() if name in before} == before
    arrive(package, tmp_path / "lib", progress=lambda done, total: None)
    library = opened("read")
    assert library.parsed_document(1).text == "first words\n\nsecond words"
    assert {finding.severity for finding in library.verify()} == {"ok"}


def spoil(folder: Path, name: str) -> None:
    """Overwrites the page in which a table or an index of the database begins."""
    path = folder / "library.sqlite"
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * size)


@pytest.mark.parametrize("version", OLDER)
def test_repair_leaves_a_whole_one_as_it_is(tmp_path: Path, material: Any, version: int) -> None:
    folder = tmp_path / "lib"
    old_library(folder, material, version)
    before = content(folder)["library.sqlite"]
    done = repair_database(folder)
    assert (done.state, done.losses) == ("whole", ())
    assert content(folder)["library.sqlite"] == before
    assert not (folder / ".repair").exists()


@pytest.mark.parametrize("version", [*OLDER, len(migrations.STEPS)])
def test_repair_mends_a_damaged_one(tmp_path: Path, opened: Any, material: Any, version: int) -> None:
    folder = tmp_path / "lib"
    old_library(folder, material, version)
    spoil(folder, "chunks_of_document")
    done = repair_database(folder)
    assert (done.state, done.losses) == ("rebuilt", ())
    library = opened("read")
    assert library.parsed_document(1).text == "first words\n\nsecond words"
    assert [hit.chunk_id for hit in library.search_keywords("words", limit=5)] == [1, 2]
    assert {finding.severity for finding in library.verify()} == {"ok"}


def test_checksums_that_were_made_of_a_damaged_one_do_not_hide_it(tmp_path: Path, opened: Any, material: Any) -> None:
    folder = tmp_path / "lib"
    old_library(folder, material, len(migrations.STEPS))
    spoil(folder, "documents_by_language")
    at_rest.write_sums(folder, folder / "library.sqlite")
    assert repair_database(folder).state == "rebuilt"
    assert {finding.severity for finding in opened("read").verify()} == {"ok"}


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_version_that_the_tables_belie_is_not_taken_for_one(
    tmp_path: Path, opened: Any, material: Any, is_changed: bool
) -> None:
    """Rows are compared with their checksums, and given none that a changed one would match."""
    folder = tmp_path / "lib"
    old_library(folder, material, len(migrations.STEPS))
    writer = Store(folder, mode="write")
    with writer.writing() as db:
        if is_changed:
            db.execute("UPDATE documents SET title = 'Another title'")  # which its checksum does not know
        db.execute("PRAGMA user_version = 10")
    writer.close()
    done = repair_database(folder)
    assert [loss.path for loss in done.losses] == (["/docs/a"] if is_changed else [])
    db = sqlite3.connect(folder / "library.sqlite")
    assert db.execute("SELECT title FROM documents").fetchall() == [("a",) if is_changed else ("A title",)]
    assert migrations.version_of(db) == len(migrations.STEPS)
    db.close()
    library = opened("read")
    assert [chunk.chunk.text for chunk in library.chunks([1, 2])] == ["first words", "second words"]
    assert {finding.severity for finding in library.verify()} == {"ok"}


def test_one_that_is_brought_up_meanwhile_is_followed(tmp_path: Path, opened: Any, material: Any) -> None:
    old_library(tmp_path / "lib", material, 8)
    reader = opened("read", as_copy=True)
    assert reader.chunk_count() == 2
    writer = opened()
    material.put(writer, "/docs/b", ["third words"])
    assert len(reader.search_keywords("words", limit=5)) == 3
    material.put(writer, "/docs/c", ["fourth words"])
    assert len(reader.search_keywords("words", limit=5)) == 4


def test_one_too_large_to_be_copied_says_what_to_do(
    tmp_path: Path, opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_library(tmp_path / "lib", material, 8)
    monkeypatch.setattr(store, "_MOST_COPIED_BYTES", 1000)
    with pytest.raises(LibraryOutdated, match=r"cannot be written, and it is too large.*Copy the library to a place"):
        opened("read", as_copy=True)


def test_where_there_is_no_room_for_a_copy_it_says_so(
    tmp_path: Path, opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_library(tmp_path / "lib", material, 8)
    real = migrations.migrate

    def full(connection: Any, **options: Any) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # what is there already
        real(connection, **options)

    monkeypatch.setattr(migrations, "migrate", full)
    with pytest.raises(LibraryOutdated, match=r"there is no room for a copy.*Copy the library to a place"):
        opened("read", as_copy=True)


def test_a_session_reads_it_where_it_cannot_write(
    tmp_path: Path, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    locations = Locations(tmp_path)
    folder = locations.library_folder("default")
    old_library(folder, material, 8)
    before = content(folder)

    def refused(folder: Path) -> None:
        raise StorageFull(f"{folder} cannot be written: it is read-only.")

    monkeypatch.setattr(library_module, "WriterLock", refused)
    with Session(Settings(), locations, embedder=lambda: HashingEmbedder()) as session:
        assert session.library_status() is not None
        assert [document.path for document in session.documents()] == ["/docs/a"]
    assert {name: data for name, data in content(folder).items() if name in before} == before
