"""A library learns which of its words stand together, whatever changes it, and answers without that, too."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from edgerag.config import load_settings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.locations import locate
from edgerag.session import Session

FILES = 20


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"Station {number} has a pump that lifts water.", encoding="utf-8")
    return folder


@pytest.fixture
def session(home: Path) -> Session:
    locations = locate(os.environ)
    return Session(load_settings(locations.config_file, {}, {}), locations)


def is_due(session: Session) -> bool:
    folder = session.locations.library_folder(session.settings.library.name)
    with open_library(folder, mode="read", residency=Residency(10_000_000)) as library:
        return library.latent_space_is_due()


def terms(session: Session) -> set[str]:
    folder = session.locations.library_folder(session.settings.library.name)
    with sqlite3.connect(folder / "library.sqlite") as db:
        (row,) = db.execute("SELECT terms FROM latent_space")
    db.close()
    return set(row[0].decode().split("\n"))


def test_every_command_that_changes_passages_keeps_it(session: Session, docs: Path) -> None:
    with session:
        list(session.ingest([docs]))
        assert not is_due(session)
        assert "pump" in terms(session)
        for number in range(2):
            (docs / f"valve{number}.txt").write_text(f"Valve {number} holds steam.", encoding="utf-8")
        list(session.ingest([docs]))
        assert not is_due(session)
        assert "steam" in terms(session)
        session.remove([str(docs / "valve0.txt"), str(docs / "valve1.txt")])
        assert not is_due(session)
        assert "steam" not in terms(session)
        session.compact_library(progress=lambda _: None)
        assert not is_due(session)
        session.repair_library()
        assert not is_due(session)


def test_an_ingest_of_nothing_new_makes_it_where_it_is_missing(session: Session, docs: Path) -> None:
    with session:
        list(session.ingest([docs]))
        folder = session.locations.library_folder(session.settings.library.name)
    with open_library(folder, mode="write", residency=Residency(10_000_000)) as library:
        with library._store.writing() as db:  # as a library of an older version is
            db.execute("DELETE FROM latent_space")
        assert library.latent_space_is_due()
    with Session(session.settings, session.locations) as again:
        assert again.search("pump of station 17", limit=1).hits[0].chunk.path.endswith("17.txt")
        list(again.ingest([docs]))
        assert not is_due(again)
