"""A document whose path was lost to damage takes its file's path again as soon as that file is read."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.index import at_rest
from edgerag.session import Session
from edgerag.types import IngestDone

TEXTS = {
    "heron.txt": "The heron waits at the weir.",
    "otter.txt": "The otter swims at night.",
    "vole.txt": "The vole gnaws at the roots.",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def ingest(session: Session, docs: Path) -> IngestDone:
    *_, done = session.ingest([docs])
    assert isinstance(done, IngestDone)
    return done


def lose(session: Session, home: Path, name: str) -> int:
    """The record of a document, and its line in the index of paths; the library is repaired. Its number."""
    (known,) = [document for document in session.documents() if document.path.endswith(name)]
    folder = home / "indexes" / "default"
    with closing(sqlite3.connect(folder / "library.sqlite")) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("DELETE FROM documents WHERE id = ?", (known.id,))
        db.execute("UPDATE chunks SET sum = sum + 1 WHERE id = (SELECT max(id) FROM chunks)")  # so that it is noticed
    (folder / at_rest.NAME).unlink(missing_ok=True)
    session.repair_library()
    assert f"document #{known.id}" in [document.path for document in session.documents()]
    return known.id


def paths(session: Session) -> dict[int, str]:
    return {document.id: Path(document.path).name for document in session.documents()}


def test_the_same_file_takes_its_place(home: Path, docs: Path) -> None:
    """With the number that conversations know, its passages and their vectors."""
    with golden.session(home) as session:
        ingest(session, docs)
        before = paths(session)
        number = lose(session, home, "heron.txt")
        done = ingest(session, docs)
        assert paths(session) == before
        (report,) = [report for report in done.reports if report.path.endswith("heron.txt")]
        assert (report.outcome, report.moved_from) == ("ingested", f"document #{number}")
        assert done.notes == ()
        (found,) = [document for document in session.documents() if document.id == number]
        assert (found.title, found.root, found.warnings) == ("heron.txt", str(docs), ())
        assert session.parsed_document(number).text == TEXTS["heron.txt"]
        assert ingest(session, docs).chunks_embedded == 0
        assert {finding.severity for finding in session.verify_library()} == {"ok"}


def test_of_two_files_of_one_text_one_takes_its_place(home: Path, docs: Path) -> None:
    shutil.copy(docs / "heron.txt", docs / "again.txt")
    with golden.session(home) as session:
        ingest(session, docs)
        lose(session, home, "heron.txt")
        ingest(session, docs)
        assert sorted(paths(session).values()) == ["again.txt", "heron.txt", "otter.txt", "vole.txt"]


def test_what_no_file_says_any_more_is_named_until_it_is_removed(home: Path, docs: Path) -> None:
    with golden.session(home) as session:
        ingest(session, docs)
        number = lose(session, home, "heron.txt")
        (docs / "heron.txt").write_text("The heron has left the weir.", encoding="utf-8")
        for _ in range(2):
            done = ingest(session, docs)
            assert [f"document #{number}" in note and f"remove '#{number}'" in note for note in done.notes] == [True]
        assert sorted(paths(session).values()) == [f"document #{number}", "heron.txt", "otter.txt", "vole.txt"]
        session.remove([f"#{number}"])
        assert ingest(session, docs).notes == ()
        assert sorted(paths(session).values()) == ["heron.txt", "otter.txt", "vole.txt"]


def test_what_lay_in_an_archive_is_found_there_again(home: Path, docs: Path) -> None:
    """Nobody knows which archive it was: all are opened again, though they did not change."""
    with zipfile.ZipFile(docs / "all.zip", "w") as archive:
        archive.writestr("inner.txt", "The kingfisher dives.")
    with golden.session(home) as session:
        ingest(session, docs)
        before = paths(session)
        lose(session, home, "inner.txt")
        ingest(session, docs)
        assert paths(session) == before
