from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pytest
from fakes import HashingEmbedder

from edgerag.ask import question_vector
from edgerag.ask.pipeline import ask
from edgerag.ask.plan import make_plan
from edgerag.ask.question_vector import QuestionVector
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.retrieve import retrieve
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import ModelMissing
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import AnswerDone, Embedder, Generator, StoredChunk

if TYPE_CHECKING:
    from edgerag.types import Vectors

TEXTS = {
    "/pump.txt": "The lid screws of the pump need a torque of 12 newton metres.",
    "/codes.txt": "Error E-1042 means that the inlet filter of the pump is blocked.",
    "/more-codes.txt": "Error E-1043 means that the outlet filter of the pump is blocked.",
    "/leave.txt": "Employees have thirty days of leave.",
}
QUESTION = "Which torque do the lid screws of the pump need?"
EXACT = "What does the error E-1042 of the pump mean?"
HELD_S = 30  # before a test gives up


class HeldEmbedder(HashingEmbedder):
    """Tells when it is asked for a question, and embeds it once it is let go on."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def embed_query(self, text: str) -> Vectors:
        if "pump" in text:  # not what is measured of it beforehand
            self.begun.set()
            assert self.may_go_on.wait(HELD_S)
        return super().embed_query(text)


@pytest.fixture
def library(library_of: Callable[..., Library]) -> Library:
    return library_of(TEXTS, embedder=HashingEmbedder(dimension=64))


def answer_of(question: str, library: Library, embedder: Callable[[], Embedder]) -> AnswerDone:
    def no_model() -> Generator:
        raise ModelMissing("There is no chat model.")

    *_, done = ask(
        question,
        library=library,
        embedder=embedder,
        generator=no_model,
        retrieval=RetrievalSettings(vector_deadline_ms=0),
        generation=GenerationSettings(mode="instant"),
        cancelled=lambda: False,
    )
    assert isinstance(done, AnswerDone)
    return done


def test_the_question_is_embedded_while_its_words_are_weighed(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, weigh = HeldEmbedder(), library.term_weights

    def weighed(query: str) -> Mapping[str, float]:
        assert embedder.begun.wait(HELD_S)
        embedder.may_go_on.set()
        return weigh(query)

    monkeypatch.setattr(library, "term_weights", weighed)
    done = answer_of(QUESTION, library, lambda: embedder)
    assert done.answer.trace is not None and done.answer.trace.vector_leg == "searched"


@pytest.mark.parametrize("question", ["E-1042", "How many documents mention the pump?"])
def test_what_may_need_no_vector_begins_none(question: str, library: Library) -> None:
    def never_called() -> Embedder:
        raise AssertionError("the embedder was asked for")

    assert not answer_of(question, library, never_called).answer.notes


def test_the_vector_leg_has_its_time_from_when_the_search_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(question_vector.time, "monotonic", lambda: now)
    vector = QuestionVector("pump", lambda: HashingEmbedder(dimension=64), Stopwatch())
    vector.model(lambda: False)
    now = 100.25
    assert vector.is_late(200) and not vector.is_late(300) and not vector.is_late(0)
    vector.needed()
    assert not vector.is_late(200)
    now = 100.5
    assert vector.is_late(200)


def test_texts_are_read_while_the_question_is_embedded_and_no_longer(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []
    embedder, chunks = HeldEmbedder(), library.chunks

    def noted(chunk_ids: Sequence[int]) -> list[StoredChunk]:
        read.append(list(chunk_ids))
        embedder.may_go_on.set()
        while not vector.is_there():
            threading.Event().wait(0.001)
        return chunks(chunk_ids)

    monkeypatch.setattr(library, "chunks", noted)
    monkeypatch.setattr("edgerag.ask.retrieve._TEXTS_AT_ONCE", 1)
    plan = make_plan(EXACT, settings=RetrievalSettings(), languages=("*",), terms=library.query_terms)
    vector = QuestionVector(plan.question, lambda: embedder, Stopwatch())
    found = retrieve(
        plan,
        library=library,
        embedder=lambda: embedder,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
        early_texts=True,
        embedding=vector,
    )
    assert len(found.keyword) == 3 and found.vector
    best = found.keyword[0].chunk_id
    assert read == [[best]] and found.texts == {best: chunks([best])[0]}


@pytest.mark.parametrize("question", [QUESTION, EXACT])
def test_what_is_read_early_changes_no_hit(question: str, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(question, settings=RetrievalSettings(), languages=("*",), terms=library.query_terms)

    def ranked(*, early: bool) -> Ranked:
        monkeypatch.setattr(QuestionVector, "is_there", lambda _: not early)
        return rank(
            plan,
            library=library,
            embedder=lambda: HashingEmbedder(dimension=64),
            settings=RetrievalSettings(vector_deadline_ms=0),
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )

    assert ranked(early=True).hits == ranked(early=False).hits
    assert len(ranked(early=True).hits) == len(TEXTS)
    best = ranked(early=True).hits[0].chunk
    assert best.path == ("/pump.txt" if question == QUESTION else "/codes.txt")
