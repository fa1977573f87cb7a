from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from fakes import HashingEmbedder, ScriptedGenerator, ScriptedReranker

from edgerag.config import (
    GenerationSettings,
    LibrarySettings,
    MemorySettings,
    ModelSettings,
    RetrievalSettings,
    Settings,
    Share,
)
from edgerag.engine.catalog import Catalog
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.record import Tuning
from edgerag.errors import EmbedderMismatch, LibraryError, LibraryMissing, UsageError
from edgerag.index.hnsw.format import read_header
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.index.right_of_way import RightOfWay
from edgerag.locations import Locations
from edgerag.measure.eval.stages import ask_stage_by_stage
from edgerag.session import Session
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    Filter,
    HitsFound,
    IngestDone,
    MergeProgress,
    SecondLookBy,
    Turn,
    VectorType,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "badger.md").write_text("# Badgers\n\nThe badger sleeps by day in its sett.\n")
    (folder / "sub" / "heron.md").write_text("# Herons\n\nThe heron stands in shallow water and waits for fish.\n")
    return folder


def open_session(tmp_path: Path, *, embedder: HashingEmbedder | None = None, reply: str = "By day [1].") -> Session:
    embedder = embedder or HashingEmbedder()
    generator = ScriptedGenerator(reply)
    return Session(Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=lambda: generator)


def fill(session: Session, docs: Path) -> IngestDone:
    *_, done = session.ingest([docs])
    assert isinstance(done, IngestDone)
    return done


def test_from_files_to_a_cited_answer(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        assert fill(session, docs).count("ingested") == 2
        events = list(session.ask("When does the badger sleep?"))
        done = events[-1]
        assert isinstance(done, AnswerDone)
        assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == done.answer.text
        source = done.answer.sources[0]
        assert source.hit.chunk.path == str(docs / "badger.md")
        assert source.cited
        text = session.parsed_document(source.hit.chunk.document_id).text
        assert text[source.quote_start : source.quote_start + len(source.quote)] == source.quote


def second_look_session(tmp_path: Path, by: SecondLookBy, **parts: Any) -> Session:
    retrieval = RetrievalSettings(second_look=by, second_look_ms=0, vector_deadline_ms=0)
    parts = {"embedder": HashingEmbedder, "generator": ScriptedGenerator, **parts}
    return Session(Settings(retrieval=retrieval), Locations(tmp_path), **parts)


def test_a_second_look_orders_search_and_answer_alike(tmp_path: Path, docs: Path) -> None:
    where = "Where does the animal stand or sleep?"
    with second_look_session(tmp_path, "reranker", reranker=lambda: ScriptedReranker("heron")) as session:
        fill(session, docs)
        found = session.search(where, limit=2)
        assert [Path(hit.chunk.path).stem for hit in found.hits] == ["heron", "badger"]
        assert found.notes == (found.notes[0],) and "2 passages were read by judge" in found.notes[0]
        events = list(session.ask(where))
        hits = next(event.hits for event in events if isinstance(event, HitsFound))
        assert [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in found.hits]
    with second_look_session(tmp_path, "reranker", reranker=lambda: ScriptedReranker("badger")) as session:
        assert Path(session.search(where, limit=2).hits[0].chunk.path).stem == "badger"


def test_what_is_measured_has_the_second_look_and_no_clock_in_it(tmp_path: Path, docs: Path) -> None:
    retrieval = RetrievalSettings(second_look="reranker", second_look_ms=1, vector_deadline_ms=1)
    with Session(
        Settings(retrieval=retrieval),
        Locations(tmp_path),
        embedder=HashingEmbedder,
        generator=ScriptedGenerator,
        reranker=lambda: ScriptedReranker("heron"),
    ) as session:
        fill(session, docs)
        with session.subject() as subject:
            asked = ask_stage_by_stage("Where does the animal stand?", subject, cancelled=lambda: False)
    assert [Path(chunk.path).stem for chunk in asked.stages["hits"]] == ["heron", "badger"]
    assert "second_look" in asked.seconds


def test_without_a_reranker_the_order_stays_and_the_answer_says_why(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        plain = session.search("the animal", limit=2).hits
    with second_look_session(tmp_path, "reranker") as session:
        found = session.search("the animal", limit=2)
        assert [hit.chunk.id for hit in found.hits] == [hit.chunk.id for hit in plain]
        assert any("There is no reranker on this machine" in note for note in found.notes)


def test_a_model_that_does_not_weigh_is_said(tmp_path: Path, docs: Path) -> None:
    with second_look_session(tmp_path, "likelihood") as session:
        fill(session, docs)
        assert any("how likely a reply is" in note for note in session.search("the animal", limit=2).notes)


def test_an_ingest_stands_still_from_the_question_to_the_hits(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
    seen: list[tuple[str, bool]] = []
    way = RightOfWay(tmp_path / "indexes" / "default")

    class Watching(HashingEmbedder):
        def embed_query(self, text: str) -> Vectors:
            seen.append(("embedding", way.is_taken()))
            return super().embed_query(text)

    with open_session(tmp_path, embedder=Watching()) as session:
        session.search("When does the badger sleep?", limit=3)
        seen.append(("found", way.is_taken()))
        events = session.ask("When does the badger sleep?")
        seen.extend((type(event).__name__, way.is_taken()) for event in events)
    way.close()
    assert [taken for name, taken in seen if name in ("embedding", "PlanMade", "HitsFound")] == [True] * 4
    assert not any(taken for name, taken in seen if name in ("found", "InstantAnswer", "AnswerDelta", "AnswerDone"))


def test_without_a_library(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        assert session.library_status() is None
        assert session.documents() == []
        with pytest.raises(LibraryMissing, match="edgerag ingest"):
            list(session.ask("Anything?"))
        with pytest.raises(LibraryMissing):
            session.remove(["x"])
    assert not (tmp_path / "indexes").exists(), "looking makes nothing"


def test_a_reader_sees_what_is_ingested_after_it_was_opened(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        assert session.search("walrus", limit=3).hits[0].chunk.path != str(docs / "walrus.md")
        (docs / "walrus.md").write_text("# Walrus\n\nThe walrus dives for clams.\n")
        fill(session, docs)
        assert session.search("walrus clams", limit=3).hits[0].chunk.path == str(docs / "walrus.md")
        assert len(session.documents()) == 3


def test_remove_by_folder_number_and_path(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        assert [d.path for d in session.remove([str(docs / "sub")])] == [str(docs / "sub" / "heron.md")]
        with pytest.raises(UsageError, match="heron"):
            session.remove([str(docs / "badger.md"), str(docs / "sub" / "heron.md")])
        (left,) = session.documents()
        assert session.remove([f"#{left.id}", left.path]) == [left]
        assert session.documents() == []
        for name in ("#²", "#", "#-1", "#" + "9" * 30, "#" + "9" * 5000):  # none of them a number of a document
            with pytest.raises(UsageError, match="No document"):
                session.remove([name])
        with pytest.raises(LibraryError, match="no documents"):
            session.search("badger", limit=5)


def test_another_embedder_is_refused(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
    with open_session(tmp_path, embedder=HashingEmbedder(dimension=32, name="other")) as session:
        for act in (
            lambda: list(session.ask("When?")),
            lambda: session.search("badger", limit=1),
            lambda: fill(session, docs),
        ):
            with pytest.raises(EmbedderMismatch, match="other"):
                act()
    with open_session(tmp_path) as session:
        assert session.search("badger", limit=1).hits, "nothing was lost"


def test_libraries_are_apart(tmp_path: Path, docs: Path) -> None:
    embedder = HashingEmbedder()
    for name, file in (("one", "badger.md"), ("two", "sub/heron.md")):
        settings = Settings(library=LibrarySettings(name=name))
        with Session(settings, Locations(tmp_path), embedder=lambda: embedder) as session:
            list(session.ingest([docs / file]))
            assert [Path(d.path).name for d in session.documents()] == [Path(file).name]


def test_a_search_looks_only_where_it_is_told(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        list(session.ingest([docs / "sub"], tags=["Birds"]))
        fill(session, docs)
        assert [document.tags for document in session.documents()] == [(), ("birds",)]
        for where in (Filter(tags=("birds",)), Filter(paths=(str(docs / "sub"),))):
            hits = session.search("badger heron", limit=5, where=where).hits
            assert {Path(hit.chunk.path).name for hit in hits} == {"heron.md"}
        *_, done = session.ask("When does the badger sleep?", where=Filter(tags=("birds",)))
        assert isinstance(done, AnswerDone)
        assert "badger.md" not in {Path(source.hit.chunk.path).name for source in done.answer.sources}
        for act in (
            lambda where: session.search("badger", limit=5, where=where),
            lambda where: list(session.ask("When?", where=where)),
        ):
            with pytest.raises(UsageError, match=r"'fish'.*birds"):
                act(Filter(tags=("fish",)))


def test_a_search_can_be_kept_to_languages(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "dachs.txt").write_text("Der Dachs schläft am Tag in seinem Bau und geht erst in der Nacht aus.")
    (folder / "badger.txt").write_text("The badger sleeps by day in its sett and leaves it when the night has come.")
    (folder / "numbers.csv").write_text("a;b\n" + "\n".join(f"{n};{n * n}" for n in range(40)))
    with open_session(tmp_path) as session:
        *_, done = session.ingest([folder])
        assert isinstance(done, IngestDone)
        assert [report.language for report in done.reports] == ["en", "de", "unknown"]
        assert [document.language for document in session.documents()] == ["en", "de", "unknown"]
        for languages, names in ((("de",), {"dachs.txt"}), (("de", "en"), {"dachs.txt", "badger.txt"})):
            hits = session.search("Dachs badger 400", limit=5, where=Filter(languages=languages)).hits
            assert {Path(hit.chunk.path).name for hit in hits} == names
        with pytest.raises(UsageError, match=r"'fr'.*de, en, unknown"):
            session.search("Dachs", limit=5, where=Filter(languages=("fr",)))


def test_a_search_by_language_says_which_documents_have_none_yet(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "dachs.txt").write_text("Der Dachs schläft am Tag in seinem Bau und geht erst in der Nacht aus.")
    (folder / "badger.txt").write_text("The badger sleeps by day in its sett and leaves it when the night has come.")

    def of_an_older_version(*, name: str) -> None:
        folder = tmp_path / "indexes" / "default"
        with (
            open_library(folder, mode="write", residency=Residency(10**8)) as library,
            library._store.writing() as db,
        ):
            db.execute("UPDATE documents SET language = 'unknown', analysis = 1 WHERE path LIKE '%' || ?", (name,))

    with open_session(tmp_path) as session:
        fill(session, folder)
    of_an_older_version(name="badger.txt")
    with open_session(tmp_path) as session:
        german = Filter(languages=("de",))
        assert any(
            "1 document was read by an older" in note for note in session.search("Dachs", limit=5, where=german).notes
        )
        *_, done = session.ask("Wann schläft der Dachs?", where=german)
        assert isinstance(done, AnswerDone)
        assert any("1 document was read by an older" in note for note in done.answer.notes)
        assert not session.search("Dachs", limit=5).notes
        assert not session.search("Dachs", limit=5, where=Filter(languages=("de", "unknown"))).notes
    with open_several(tmp_path, "new") as session:
        fill(session, folder)
    with open_several(tmp_path, "new", "default") as session:
        assert any(
            "1 document was read by an older" in note for note in answered(session, "Dachs?", where=german).notes
        )
    of_an_older_version(name="")
    with open_session(tmp_path) as session:
        with pytest.raises(UsageError, match=r"'de'.*2 documents were read by an older"):
            session.search("Dachs", limit=5, where=german)
        fill(session, folder)
        assert not session.search("Dachs", limit=5, where=german).notes


def test_ingesting_again_tags_what_did_not_change(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        *_, done = session.ingest([docs], tags=["one", "Two", "one"])
        assert isinstance(done, IngestDone)
        assert done.count("unchanged") == 2
        assert {document.tags for document in session.documents()} == {("one", "two")}
        with pytest.raises(UsageError, match="tag"):
            list(session.ingest([docs], tags=[" "]))


def test_tags_are_given_and_taken_by_name(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        (tagged,) = session.tag([str(docs / "sub")], add=["Water", "bird"])
        assert tagged.tags == ("bird", "water")
        assert session.tag([f"#{tagged.id}"], remove=["WATER"])[0].tags == ("bird",)
        with pytest.raises(UsageError, match="nowhere"):
            session.tag([str(docs), "/nowhere"], add=["x"])
        assert {document.tags for document in session.documents()} == {(), ("bird",)}


def test_all_parts_share_one_ceiling_on_memory(tmp_path: Path, docs: Path) -> None:
    settings = Settings(memory=MemorySettings(budget=Share(5)))
    with Session(settings, Locations(tmp_path), embedder=HashingEmbedder) as session:
        fill(session, docs)
        status = session.library_status()
        assert status is not None
        assert 1_000_000 <= status.budget_bytes < 10**12
        session.search("badger", limit=1)
        used = [session._residency()]
        for reader in (session._asking, session._browsing):
            with reader.use() as library:
                used.append(library.residency)
        assert len(set(map(id, used))) == 1
        assert session.library_status() == status, "decided once, at the start"
        (finding,) = [finding for finding in session.diagnose() if finding.name == "memory.budget"]
        assert "5% of what is free" in finding.message


def test_a_budget_that_cannot_be_kept_is_said(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgerag.ui.output import status_text

    with open_session(tmp_path) as session:
        fill(session, docs)
        monkeypatch.setattr(session._residency(), "limitation", "resident pages cannot be measured")
        status = session.library_status()
        assert status is not None
        assert "resident pages cannot be measured" in status_text(status)
        (finding,) = [finding for finding in session.diagnose() if finding.name == "memory.budget"]
        assert finding.severity == "warning"
        assert "resident pages cannot be measured" in finding.message


@pytest.mark.parametrize("vectors", ["f16", "f32"])
def test_vectors_are_stored_as_the_settings_say(tmp_path: Path, docs: Path, vectors: VectorType) -> None:
    embedder = HashingEmbedder()
    settings = Settings(library=LibrarySettings(vectors=vectors))
    with Session(settings, Locations(tmp_path), embedder=lambda: embedder) as session:
        fill(session, docs)
        status = session.library_status()
    assert status is not None
    (segment,) = status.segments
    header = read_header(Path(status.folder) / "segments" / segment.name, identity=embedder.identity)
    assert [section.encoding.name.lower() for section in header.sections] == [vectors]


def test_compacting_through_the_session(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        with pytest.raises(LibraryMissing):
            session.compact_library(progress=lambda _: None)
        fill(session, docs)
        session.remove([str(docs / "badger.md")])
        seen: list[MergeProgress] = []
        done = session.compact_library(progress=seen.append)
        assert (done.segments_after, done.rows_dropped, done.damaged) == (1, 1, ())
        assert seen
        assert {finding.severity for finding in session.verify_library()} == {"ok"}
        assert [Path(hit.chunk.path).name for hit in session.search("heron", limit=5).hits] == ["heron.md"]


def test_a_library_of_an_older_version_is_brought_up_when_it_is_asked(tmp_path: Path) -> None:
    from edgerag.index import migrations
    from edgerag.index.identity import write_identity
    from edgerag.index.store import Store

    folder = tmp_path / "indexes" / "default"
    (folder / "segments").mkdir(parents=True)
    store = Store(folder, mode="write", steps=migrations.STEPS[:1])
    write_identity(store, HashingEmbedder().identity)
    store.close()
    with open_session(tmp_path) as session:
        status = session.library_status()
        assert status is not None
        assert status.document_count == 0


def test_in_instant_mode_the_chat_model_is_never_made(tmp_path: Path, docs: Path) -> None:
    def forbidden() -> ScriptedGenerator:
        raise AssertionError("the model must not be loaded")

    settings = Settings(generation=GenerationSettings(mode="instant"))
    embedder = HashingEmbedder()
    with Session(settings, Locations(tmp_path), embedder=lambda: embedder, generator=forbidden) as session:
        fill(session, docs)
        session.warm()
        *_, done = session.ask("When does the badger sleep?")
        assert isinstance(done, AnswerDone)
        assert "The badger sleeps by day in its sett." in done.answer.text
        assert session.chat_model_name() == ""


# ---------------------------------------------------------------- several libraries at once


def open_several(tmp_path: Path, *names: str, embedder: HashingEmbedder | None = None, reply: str = "") -> Session:
    made = embedder or HashingEmbedder()
    settings = Settings(library=LibrarySettings(name=names[0], also=names[1:]))
    return Session(settings, Locations(tmp_path), embedder=lambda: made, generator=lambda: ScriptedGenerator(reply))


def answered(session: Session, question: str, **options: Any) -> Answer:
    *_, done = session.ask(question, **options)
    assert isinstance(done, AnswerDone)
    return done.answer


@pytest.fixture
def birds_and_beasts(tmp_path: Path, docs: Path) -> Path:
    for name, file in (("beasts", "badger.md"), ("birds", "sub/heron.md")):
        with open_several(tmp_path, name) as session:
            list(session.ingest([docs / file], tags=[name]))
    return tmp_path


def test_several_libraries_answer_together_and_sources_name_theirs(birds_and_beasts: Path) -> None:
    reply = "The heron waits for fish [1]."
    with open_several(birds_and_beasts, "beasts", "birds", "beasts", reply=reply) as session:
        answer = answered(session, "What does the heron wait for?")
        assert answer.text == reply
        first = answer.sources[0]
        assert (first.hit.chunk.library, Path(first.hit.chunk.path).name, first.cited) == ("birds", "heron.md", True)
        text = session.parsed_document(first.hit.chunk.document_id).text
        assert text[first.quote_start : first.quote_start + len(first.quote)] == first.quote
        found = session.search("badger heron", limit=9)
        assert {(hit.chunk.library, Path(hit.chunk.path).name) for hit in found.hits} == {
            ("beasts", "badger.md"),
            ("birds", "heron.md"),
        }
        assert found.notes == session.not_asked() == ()
        assert found.hits == session.search("badger heron", limit=9).hits


def test_one_library_is_named_nowhere(birds_and_beasts: Path) -> None:
    with open_several(birds_and_beasts, "birds", "birds") as session:
        assert {hit.chunk.library for hit in session.search("heron", limit=9).hits} == {""}


def test_a_conversation_goes_on_over_several_libraries(birds_and_beasts: Path) -> None:
    with open_several(birds_and_beasts, "beasts", "birds", reply="In its sett [1].") as session:
        first = answered(session, "Where does the badger sleep?")
        turn = Turn("Where does the badger sleep?", first.text, first.messages)
        second = answered(session, "And where does the heron stand?", history=[turn])
        assert second.messages[: len(first.messages)] == first.messages


def test_a_missing_library_is_named_and_the_others_answer(birds_and_beasts: Path) -> None:
    with open_several(birds_and_beasts, "fish", "birds", reply="Fish [1].") as session:
        answer = answered(session, "What does the heron wait for?")
        assert answer.found
        assert [note for note in answer.notes if "'fish'" in note and "--library fish ingest" in note]
        assert session.not_asked()
        assert session.search("heron", limit=3).notes == session.not_asked()
    with open_several(birds_and_beasts, "fish", "fowl") as session, pytest.raises(LibraryMissing, match="'fish'"):
        session.search("heron", limit=3)
    assert not (birds_and_beasts / "indexes" / "fish").exists()


def test_a_damaged_library_is_named_and_the_others_answer(birds_and_beasts: Path) -> None:
    (birds_and_beasts / "indexes" / "beasts" / "library.sqlite").write_bytes(b"no database" * 1000)
    with open_several(birds_and_beasts, "beasts", "birds") as session:
        found = session.search("heron badger", limit=9)
        assert {hit.chunk.library for hit in found.hits} == {"birds"}
        assert any("'beasts'" in note for note in found.notes)


def test_filters_hold_in_all_libraries(birds_and_beasts: Path, docs: Path) -> None:
    with open_several(birds_and_beasts, "beasts", "birds") as session:
        for where in (Filter(tags=("birds",)), Filter(paths=(str(docs / "sub"),))):
            hits = session.search("badger heron", limit=9, where=where).hits
            assert {hit.chunk.library for hit in hits} == {"birds"}
        assert len(session.search("badger heron", limit=9, where=Filter(types=("markdown",))).hits) == 2
        with pytest.raises(UsageError, match=r"'fish'.*beasts.*'fish'.*birds"):
            session.search("badger", limit=9, where=Filter(tags=("fish",)))


def test_a_library_of_another_embedder_is_asked_by_words(birds_and_beasts: Path, docs: Path) -> None:
    other = HashingEmbedder(dimension=32, name="other")
    with open_several(birds_and_beasts, "cats", embedder=other) as session:
        (docs / "cat.md").write_text("# Cats\n\nThe cat watches the heron.\n")
        list(session.ingest([docs / "cat.md"]))
    with open_several(birds_and_beasts, "cats", "birds") as session:
        found = session.search("heron", limit=9)
        assert {hit.chunk.library for hit in found.hits} == {"cats", "birds"}
        assert any("'cats'" in note and "words" in note for note in found.notes)


def test_what_writes_takes_the_first_library_alone(birds_and_beasts: Path, docs: Path) -> None:
    with open_several(birds_and_beasts, "beasts", "birds") as session:
        assert [Path(document.path).name for document in session.documents()] == ["badger.md"]
        with pytest.raises(UsageError, match="heron"):
            session.remove([str(docs / "sub" / "heron.md")])
        session.remove([str(docs / "badger.md")])
        assert {hit.chunk.library for hit in session.search("badger heron", limit=9).hits} == {"birds"}


def test_states_of_several_libraries_are_not_kept_on_the_disk(birds_and_beasts: Path) -> None:
    """Nobody would remove them there when another library drops their document."""
    with open_several(birds_and_beasts, "beasts", "birds") as session:
        answered(session, "What does the heron wait for?")
        states = session._states()
        assert states.status().disk_limit_bytes == 0


def test_changed_settings_hold_from_the_next_question_on(tmp_path: Path, docs: Path) -> None:
    made: list[ScriptedGenerator] = []

    def generator() -> ScriptedGenerator:
        made.append(ScriptedGenerator("By day [1]."))
        return made[-1]

    embedder = HashingEmbedder()
    with Session(Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=generator) as session:
        fill(session, docs)
        answered(session, "When does the badger sleep?")
        session.adopt(replace(Settings(), retrieval=RetrievalSettings(source_count=1)))
        assert len(answered(session, "When does the badger sleep, and where does the heron stand?").sources) == 1
        assert len(made) == 1, "the model need not be loaded again for that"

        session.adopt(replace(session.settings, generation=GenerationSettings(context_tokens=2048)))
        answered(session, "When does the badger sleep?")
        assert len(made) == 2

        session.adopt(replace(session.settings, generation=GenerationSettings(mode="instant")))
        assert answered(session, "When does the badger sleep?").model == ""


def test_what_needs_a_restart_stays_as_it_was_opened(tmp_path: Path, docs: Path) -> None:
    with open_session(tmp_path) as session:
        fill(session, docs)
        other = replace(Settings(), library=LibrarySettings(name="other"), memory=MemorySettings(budget=64_000_000))
        session.adopt(other)
        assert session.settings.library.name == "default"
        assert session.budget_bytes() == 256_000_000
        assert len(session.documents()) == 2


@pytest.mark.parametrize(("threads", "loads"), [(2, 2), (1, 1)])
def test_a_model_that_was_tuned_is_loaded_anew_where_that_changes_something(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch, threads: int, loads: int
) -> None:
    made: list[ScriptedGenerator] = []

    def generator() -> ScriptedGenerator:
        made.append(ScriptedGenerator("By day [1]."))
        return made[-1]

    def tuning(decode_threads: int) -> Tuning:
        choice = Choice(prefill_threads=1, decode_threads=decode_threads)
        return Tuning(choice=choice, first=choice)

    monkeypatch.setattr("edgerag.engine.tuning.tune.current", lambda *_: tuning(1))
    monkeypatch.setattr("edgerag.engine.tuning.tune.tune", lambda *_, **__: tuning(threads))
    embedder = HashingEmbedder()
    with Session(Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=generator) as session:
        session.__dict__["catalog"] = SimpleNamespace(find=lambda kind, name: None, folder=tmp_path)
        fill(session, docs)
        answered(session, "When does the badger sleep?")
        assert session.tune_model(made[0].name).choice.decode_threads == threads
        answered(session, "When does the badger sleep?")
        assert len(made) == loads


class Slow:
    """Something that takes until it is let through, and whoever waits for it."""

    def __init__(self) -> None:
        self.entered, self.let_through = threading.Event(), threading.Event()
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        self.entered.set()
        assert self.let_through.wait(60)


def stopped_answer(session: Session, slow: Slow) -> Answer:
    """Of a question that is stopped once ``slow`` has begun."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: list(session.ask("When does the badger sleep?", cancelled=stop.is_set)))
        assert slow.entered.wait(60)
        stop.set()
        last = asked.result(timeout=60)[-1]  # not before: nothing is let through
    assert isinstance(last, AnswerDone)
    return last.answer


def test_who_stops_an_answer_does_not_wait_for_the_model_and_the_next_question_uses_it(
    tmp_path: Path, docs: Path
) -> None:
    slow = Slow()

    def open_generator() -> ScriptedGenerator:
        slow()
        return ScriptedGenerator("By day [1].")

    with Session(Settings(), Locations(tmp_path), embedder=HashingEmbedder, generator=open_generator) as session:
        fill(session, docs)
        answer = stopped_answer(session, slow)
        assert (answer.stop_reason, answer.text) == ("cancelled", "")
        slow.let_through.set()
        *_, done = session.ask("When does the badger sleep?")
        assert isinstance(done, AnswerDone) and (done.answer.stop_reason, done.answer.text) == ("end", "By day [1].")
        assert slow.times == 1


def test_who_stops_an_answer_does_not_wait_for_a_model_that_was_never_read_before(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    settings = Settings(
        generation=GenerationSettings(mode="instant"), models=ModelSettings(embedder="all-minilm-l6-v2")
    )
    with Session(settings, Locations(home)) as session:
        fill(session, docs)

        def looked_at(catalog: Catalog, place: Any, kind: str) -> Any:
            slow()
            return examine(catalog, place, kind)

        examine = Catalog._tried_now
        monkeypatch.setattr(Catalog, "_tried_now", looked_at)
        monkeypatch.setattr(Catalog, "_remembered", lambda *_: None)
        assert stopped_answer(session, slow).stop_reason == "cancelled"
        monkeypatch.undo()
        slow.let_through.set()
        *_, done = session.ask("When does the badger sleep?")
        assert isinstance(done, AnswerDone) and done.answer.found
