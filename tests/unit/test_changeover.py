"""Changing a library over to another embedder, as a session offers it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag import changeover
from edgerag.changeover import duration
from edgerag.config import IngestSettings, Settings
from edgerag.errors import EmbedderMismatch, LibraryBusy, LibraryMissing, StorageFull, UsageError
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.types import AnswerDone, ReembedDone, ReembedProgress


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("badger", "heron", "otter", "walrus"):
        (folder / f"{name}.md").write_text(f"# {name.title()}s\n\nThe {name} sleeps by day.\n")
    return folder


def open_session(tmp_path: Path, embedder: HashingEmbedder) -> Session:
    return Session(Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=lambda: ScriptedGenerator())


def wider() -> HashingEmbedder:
    return HashingEmbedder(dimension=96, name="wider")


def fill(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path, HashingEmbedder()) as session:
        list(session.ingest([docs]))


def change(session: Session) -> ReembedDone:
    *_, done = session.reembed()
    assert isinstance(done, ReembedDone)
    return done


def test_one_command_changes_over_and_everything_goes_on(tmp_path: Path, docs: Path) -> None:
    fill(tmp_path, docs)
    embedder = wider()
    with open_session(tmp_path, embedder) as session:
        with pytest.raises(EmbedderMismatch, match="library reembed"):
            session.search("badger", limit=1)
        *events, done = session.reembed()
        assert isinstance(done, ReembedDone)
        assert (done.embedder, done.chunks_embedded, done.chunks_total, done.interrupted) == ("wider", 4, 4, False)
        told = [event.chunks_done for event in events if isinstance(event, ReembedProgress)]
        assert told == sorted(told) and told[-1] == 4
        assert Path(session.search("badger", limit=1).hits[0].chunk.path).name == "badger.md"
        *_, answered = session.ask("When does the otter sleep?")
        assert isinstance(answered, AnswerDone)
        assert answered.answer.found
        embedder.embedded.clear()
        list(session.ingest([docs]))
        assert embedder.embedded == [], "nothing is left to embed"
        with pytest.raises(UsageError, match="already"):
            change(session)
    with open_session(tmp_path, HashingEmbedder()) as session, pytest.raises(EmbedderMismatch, match="'wider'"):
        session.search("badger", limit=1)


def test_a_session_that_was_open_notices_it(tmp_path: Path, docs: Path) -> None:
    fill(tmp_path, docs)
    with open_session(tmp_path, HashingEmbedder()) as old:
        assert old.search("badger", limit=1).hits
        with open_session(tmp_path, wider()) as session:
            change(session)
        with pytest.raises(EmbedderMismatch, match="'wider'"):
            old.search("badger", limit=1)
        status = old.library_status()
        assert status is not None
        assert (status.embedder, status.dimension) == ("wider", 96)


def test_cancelled_it_keeps_what_it_made(tmp_path: Path, docs: Path) -> None:
    fill(tmp_path, docs)
    embedder = wider()
    few = Settings(ingest=IngestSettings(batch_chunks=3))
    with Session(few, Locations(tmp_path), embedder=lambda: embedder) as session:
        *_, done = session.reembed(cancelled=lambda: len(embedder.embedded) > 0)
        assert isinstance(done, ReembedDone)
        assert (done.interrupted, done.chunks_embedded) == (True, 3)
    with open_session(tmp_path, HashingEmbedder()) as old:
        assert old.search("badger", limit=1).hits, "the old index serves"
    embedder.embedded.clear()
    with open_session(tmp_path, embedder) as session:
        assert change(session).chunks_embedded == 1 == len(embedder.embedded)
        assert session.search("badger", limit=1).hits


def test_an_ingest_meanwhile_is_refused(tmp_path: Path, docs: Path) -> None:
    fill(tmp_path, docs)
    with open_session(tmp_path, wider()) as session, open_session(tmp_path, HashingEmbedder()) as other:
        run = session.reembed()
        next(run)
        with pytest.raises(LibraryBusy):
            list(other.ingest([docs]))
        assert other.search("badger", limit=1).hits, "asking is not"
        list(run)


def test_without_room_for_both_indexes_nothing_is_begun(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, docs)
    embedder = wider()
    with open_session(tmp_path, embedder) as session:
        monkeypatch.setattr(changeover.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.raises(StorageFull, match=r"beside each other .* 0 MB are free"):
            change(session)
        assert embedder.embedded == []
    assert not (tmp_path / "indexes" / "default" / "reembedding").exists()


def test_what_was_begun_can_be_thrown_away(tmp_path: Path, docs: Path) -> None:
    fill(tmp_path, docs)
    embedder = wider()
    with open_session(tmp_path, embedder) as session:
        list(session.reembed(cancelled=lambda: len(embedder.embedded) > 0))
        assert session.discard_reembedding()
        assert not session.discard_reembedding()


def test_without_a_library(tmp_path: Path) -> None:
    with open_session(tmp_path, wider()) as session:
        with pytest.raises(LibraryMissing):
            change(session)
        with pytest.raises(LibraryMissing):
            session.discard_reembedding()
    assert not (tmp_path / "indexes").exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59.6, "60 s"), (240, "4 min"), (89 * 60, "89 min"), (4800, "80 min"), (9000, "2 h 30 min")],
)
def test_durations_are_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
