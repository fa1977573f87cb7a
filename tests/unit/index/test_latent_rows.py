"""When the latent space of a library is made, and what happens where it is not what was stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder

from edgerag.errors import Cancelled, StorageFull
from edgerag.index import latent_rows, migrations
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.repair import repair_database
from edgerag.types import Chunk, LatentEvidence, ParsedDocument

EMBEDDER = HashingEmbedder(dimension=16)
TEXTS = ["wing lift drag", "foil lift drag", "boiler steam valve", "kettle steam valve"] * 5


def put(library: Library, path: str, text: str) -> int:
    chunk = Chunk(
        ordinal=0,
        start=0,
        end=len(text),
        text=text,
        heading_path=(),
        page_first=None,
        page_last=None,
        line_first=1,
        line_last=1,
        token_count=5,
        context="",
    )
    parsed = ParsedDocument(text=text, title="", media_type="text/plain", language="en")
    return library.put_document(parsed, [chunk], path=path, root="/", content_sha256=path, size_bytes=1, mtime_ns=0)


def opened(folder: Path, *, writing: bool = True) -> Library:
    return open_library(
        folder, mode="write" if writing else "read", residency=Residency(10_000_000), identity=EMBEDDER.identity
    )


def evidence(library: Library, question: str) -> LatentEvidence | None:
    ids = [hit.chunk_id for hit in library.search_keywords("lift steam", limit=50)]
    return library.latent_evidence(library.word_evidence(question, ids), ids)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with opened(tmp_path / "library") as made:
        for number, text in enumerate(TEXTS):
            put(made, f"/{number}", text)
        yield made


def test_an_empty_library_needs_none(tmp_path: Path) -> None:
    with opened(tmp_path / "empty") as library:
        assert not library.latent_space_is_due()


def test_it_is_made_once_and_again_when_passages_went_or_came(library: Library) -> None:
    assert library.latent_space_is_due()
    assert evidence(library, "wing") is None
    library.make_latent_space()
    assert not library.latent_space_is_due()
    known = evidence(library, "wing")
    assert known is not None and known.cosines.max() > 0.5
    document = put(library, "/more", "rudder lift")
    assert library.latent_space_is_due()
    library.make_latent_space()
    library.remove_documents([document])
    assert library.latent_space_is_due()


def test_a_replaced_passage_is_one_that_went_and_one_that_came(library: Library) -> None:
    library.make_latent_space()
    put(library, "/0", "other words")
    assert library.latent_space_is_due()


def test_of_a_large_library_a_quarter_has_to_change(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_rows, "_SMALL", 10)
    library.make_latent_space()
    for number in range(5):
        put(library, f"/more{number}", "rudder lift")
    assert not library.latent_space_is_due()
    put(library, "/more5", "rudder lift")
    assert library.latent_space_is_due()


def test_of_too_large_a_library_passages_all_through_it_are_read(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latent_rows, "_MOST_PASSAGES", 16)
    read: list[int] = []
    whole = latent_rows.evidence.passage_words

    def counted(db: sqlite3.Connection, ids: list[int]) -> dict:
        read.extend(ids)
        return whole(db, ids)

    monkeypatch.setattr(latent_rows.evidence, "passage_words", counted)
    library.make_latent_space()
    assert len(read) == 16
    assert (min(read), max(read)) == (1, len(TEXTS))
    assert not library.latent_space_is_due()


def test_a_library_too_small_for_one_is_not_asked_again(tmp_path: Path) -> None:
    with opened(tmp_path / "small") as library:
        put(library, "/one", "wing lift drag")
        library.make_latent_space()
        assert not library.latent_space_is_due()
        assert evidence(library, "wing") is None


def test_a_reader_sees_the_one_that_was_made_last(library: Library) -> None:
    with opened(library.folder, writing=False) as reader:
        assert evidence(reader, "rudder") is None
        library.make_latent_space()
        before = evidence(reader, "rudder")
        assert before is not None and before.cosines.max() == 0
        for number in range(4):
            put(library, f"/more{number}", "rudder lift drag")
        library.make_latent_space()
        after = evidence(reader, "rudder")
        assert after is not None and after.cosines.max() > 0.3


def test_cancelled_it_stays_as_it_was(library: Library) -> None:
    library.make_latent_space()
    put(library, "/more", "rudder lift drag")
    with pytest.raises(Cancelled):
        library.make_latent_space(cancelled=lambda: True)
    assert library.latent_space_is_due()
    assert evidence(library, "wing") is not None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE latent_space SET terms = CAST(replace(CAST(terms AS TEXT), 'lift', 'drug') AS BLOB)",
        "UPDATE latent_space SET weights = substr(weights, 5)",
        "UPDATE latent_space SET directions = zeroblob(length(directions))",
        "UPDATE latent_space SET dimension = dimension / 2",
        "UPDATE latent_space SET passage_count = 'many'",
        "UPDATE latent_space SET sum = sum + 1",
        "UPDATE latent_space SET method = method + 1",
        "UPDATE latent_space SET terms = CAST(terms AS TEXT)",
    ],
)
def test_a_damaged_one_is_none_is_named_and_is_made_anew(library: Library, change: str) -> None:
    library.make_latent_space()
    folder = library.folder
    library.close()
    with sqlite3.connect(folder / "library.sqlite") as db:
        assert db.execute(change).rowcount == 1
    db.close()
    with opened(folder, writing=False) as reader:
        assert evidence(reader, "wing") is None
        assert [each.severity for each in reader.verify() if each.name == "latent space"] == ["error"]
    repair_database(folder)
    with opened(folder) as writer:
        if writer.latent_space_is_due():  # a bit or two are turned back
            writer.make_latent_space()
        assert evidence(writer, "wing") is not None
        assert not [finding for finding in writer.verify() if finding.severity != "ok"]


def test_one_of_another_method_is_made_anew(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.make_latent_space()
    monkeypatch.setattr(latent_rows, "_METHOD", 2)
    assert library.latent_space_is_due()


def test_words_that_are_made_anew_are_learned_anew(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.make_latent_space()
    with library._store.writing() as db:
        db.execute("UPDATE documents SET analysis = 1 WHERE id = 1")
    assert not library.latent_space_is_due()
    assert library.analyse_again(lambda _: "de", limit=10) == 1
    assert library.latent_space_is_due()


def test_the_key_of_a_question_is_read_before_the_large_columns() -> None:
    """Behind them it would cost each question the walk over all their pages."""
    step = migrations.STEPS[11]
    assert max(map(step.index, ("sum", "method", "passage_count", "last_chunk_id"))) < step.index("terms")


def test_a_full_disk_costs_a_removal_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.make_latent_space()
    library.remove_documents([1])

    def full(*_: object, **__: object) -> None:
        raise StorageFull("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(latent_rows, "make", full)
        library.keep_latent_space()
    assert library.latent_space_is_due()
    library.keep_latent_space()
    assert not library.latent_space_is_due()
