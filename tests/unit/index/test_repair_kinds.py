"""What repair says is what it did: checksums that were damaged, rows that are gone, a disk that is full."""

from __future__ import annotations

import resource
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from edgerag.errors import LibraryDamaged, StorageFull
from edgerag.index import at_rest
from edgerag.index.repair import repair_database
from edgerag.index.travel import leave

MANY = 2_000


@pytest.fixture
def folder(opened: Any, material: Any) -> Path:
    library = opened()
    for number in range(12):
        material.put(
            library, f"/docs/{number}", [f"word{n} of {number}" for n in range(30)], tags=[f"tag{number}", "all"]
        )
    material.embed_pending(library)
    library.close()
    return Path(library.folder)


@pytest.mark.parametrize("how", ["a flipped bit", "cut short", "empty", "a folder", "of another database"])
def test_damaged_checksums_are_named_and_made_anew(folder: Path, opened: Any, material: Any, how: str) -> None:
    sums = folder / at_rest.NAME
    data = bytearray(sums.read_bytes())
    data[len(data) // 2] ^= 8
    if how == "a folder":
        sums.unlink()
        sums.mkdir()
        (sums / "mine.txt").write_text("not the program's")
    elif how == "of another database":
        other = folder.parent / "other.sqlite"
        other.write_bytes(b"\0" * (folder / "library.sqlite").stat().st_size)
        at_rest.write_sums(folder, other)
    else:
        sums.write_bytes({"a flipped bit": bytes(data), "cut short": bytes(data[:-3]), "empty": b""}[how])
    with opened("read") as reader:
        said = [finding for finding in reader.verify() if finding.severity == "error"]
    assert [finding.name for finding in said][:1] == ["checksums"]
    assert "library.s" in said[0].message and "repair" in said[0].remedy
    with pytest.raises(LibraryDamaged, match="library repair"), opened() as library:
        material.put(library, "/docs/new", ["more"])
    before = (folder / "library.sqlite").read_bytes()
    done = repair_database(folder)
    assert (done.state, done.losses) == ("sums", ())
    assert (folder / "library.sqlite").read_bytes() == before
    with opened() as library:
        assert {finding.severity for finding in library.verify()} == {"ok"}
    assert at_rest.damaged_blocks(folder, folder / "library.sqlite") == []
    if how == "a folder":
        assert (folder / "library.sums.aside-1" / "mine.txt").read_text() == "not the program's"


def filled(folder: Path, table: str) -> list[Any]:
    """The library with many rows in a table that has no numbers; its keys in order."""
    db = sqlite3.connect(folder / "library.sqlite", isolation_level=None)
    db.execute("BEGIN")
    for number in range(MANY):
        row = {
            "failures": ("INSERT INTO failures (path, reason, size_bytes, mtime_ns) VALUES (?, 'why not', 1, 2)"),
            "containers": "INSERT INTO containers (path, size_bytes, mtime_ns) VALUES (?, 1, 2)",
            "left_out": "INSERT INTO left_out (path, reason) VALUES (?, 'why not')",
            "document_tags": "INSERT INTO document_tags (tag, document_id) VALUES (?, 1)",
        }[table]
        db.execute(row, (f"/docs/name-{number:06}-{'x' * 60}",))
    db.execute("COMMIT")
    column = "tag" if table == "document_tags" else "path"
    keys = [row[0] for row in db.execute(f"SELECT {column} FROM {table} ORDER BY 1")]
    db.close()
    return keys


def leaves_of(database: Path, mark: bytes) -> list[int]:
    """Offsets of pages of a table's own tree that hold many of such rows."""
    data = database.read_bytes()
    pages = range(0, len(data), 4096)
    return [at for at in pages if data[at] == 0x0A and data[at : at + 4096].count(mark) > 10]


@pytest.mark.parametrize("table", ["failures", "containers", "left_out"])
def test_rows_that_cannot_be_read_are_named_and_those_around_them_stay(folder: Path, opened: Any, table: str) -> None:
    keys = filled(folder, table)
    database = folder / "library.sqlite"
    leaves = leaves_of(database, b"/docs/name-")
    at = leaves[len(leaves) // 2]
    with database.open("r+b") as stream:
        stream.seek(at)
        stream.write(b"\xff" * 4096)
    (folder / at_rest.NAME).unlink()
    done = repair_database(folder)
    assert done.state == "rebuilt"
    assert len(done.losses) == 1, done.losses
    assert "next ingest" in done.losses[0].what
    db = sqlite3.connect(database)
    left = [row[0] for row in db.execute(f"SELECT path FROM {table} ORDER BY 1")]
    db.close()
    assert len(keys) - 200 < len(left) < len(keys), "all but those of one page"
    assert left[0] == keys[0] and left[-1] == keys[-1]
    with opened("read") as reader:
        assert {finding.severity for finding in reader.verify()} == {"ok"}


def test_tags_come_back_out_of_their_index(folder: Path, opened: Any) -> None:
    keys = filled(folder, "document_tags")
    database = folder / "library.sqlite"
    db = sqlite3.connect(database)
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'document_tags'").fetchone()
    db.close()
    with database.open("r+b") as stream:
        stream.seek((root - 1) * 4096)
        stream.write(b"\xff" * 4096)
    (folder / at_rest.NAME).unlink()
    done = repair_database(folder)
    assert (done.state, done.losses) == ("rebuilt", ())
    with opened("read") as reader:
        assert reader.tags() == sorted(set(keys))


def test_an_export_that_finds_no_room_names_the_place_without_room(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "stick" / "out.edgerag"
    target.parent.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(StorageFull) as refused:
            leave(folder, target, name="x", progress=lambda done, total: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(target.parent) in refused.value.message
    assert str(folder) not in refused.value.message
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("how", ["gone", "empty", "a folder"])
def test_a_database_that_is_gone_beside_its_segments_is_named_as_that(
    folder: Path, opened: Any, material: Any, how: str
) -> None:
    with opened() as library:
        library.seal()
    database = folder / "library.sqlite"
    database.unlink()
    if how == "empty":
        database.touch()
    elif how == "a folder":
        database.mkdir()
    segments = sorted((folder / "segments").iterdir())
    assert segments
    for mode in ("read", "write"):
        with pytest.raises(LibraryDamaged, match=r"cut off|is gone"):
            opened(mode)
    with pytest.raises(LibraryDamaged, match="Restore the library"):
        repair_database(folder)
    assert sorted((folder / "segments").iterdir()) == segments


@pytest.mark.parametrize("table", ["kv_retired", "kv_outbox"])
def test_where_versions_of_states_are_lost_all_states_go(folder: Path, opened: Any, material: Any, table: str) -> None:
    with opened() as library:
        material.put(library, "/docs/3", ["another text"])
    database = folder / "library.sqlite"
    db = sqlite3.connect(database)
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    db.close()
    with database.open("r+b") as stream:
        stream.seek((root - 1) * 4096)
        stream.write(b"\xff" * 4096)
    (folder / at_rest.NAME).unlink()
    assert repair_database(folder).state == "rebuilt"
    with opened("read") as reader:
        assert reader.kv_changes().everything


@pytest.mark.parametrize("what", ["its key", "its record"])
def test_the_embedder_is_found_again_or_missed(folder: Path, opened: Any, what: str) -> None:
    """Without it a library was taken for one that nobody has made yet."""
    db = sqlite3.connect(folder / "library.sqlite")
    with db:
        if what == "its key":
            db.execute("UPDATE meta SET key = 'embeddfr' WHERE key = 'embedder'")
        else:
            db.execute("UPDATE meta SET value = '{' WHERE key = 'embedder'")
    db.close()
    (folder / at_rest.NAME).unlink()
    if what == "its key":
        assert repair_database(folder).losses == ()
        with opened("read") as library:
            assert {finding.severity for finding in library.verify()} == {"ok"}
            assert len(library.documents()) == 12
    else:
        with pytest.raises(LibraryDamaged, match="which embedder made it"):
            repair_database(folder)


def test_a_language_that_is_no_text_any_more_is_not_known(folder: Path, opened: Any) -> None:
    db = sqlite3.connect(folder / "library.sqlite")
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks_of_document'").fetchone()
    with db:
        db.execute("UPDATE documents SET language = CAST(x'c16e' AS TEXT) WHERE id = 3")
        db.execute("UPDATE documents SET mtime_ns = 'soon', seconds = x'00' WHERE id = 4")
    db.close()
    with (folder / "library.sqlite").open("r+b") as stream:
        stream.seek((page - 1) * 4096)
        stream.write(b"\xff" * 4096)
    (folder / at_rest.NAME).unlink()
    assert repair_database(folder).losses == ()
    with opened("read") as library:
        languages = {document.language for document in library.documents()}
        assert languages == {"unknown"} and len(library.documents()) == 12
