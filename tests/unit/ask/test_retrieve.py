from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from fakes import HashingEmbedder

from edgerag.ask import confidence
from edgerag.ask.plan import make_plan
from edgerag.ask.rank import candidate_words, fused_candidates, rerank_all
from edgerag.ask.retrieve import Retrieved, retrieve
from edgerag.config import RetrievalSettings
from edgerag.errors import Cancelled, ModelMissing
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import CancelCheck, Embedder, LegHit, Plan, Scores, WordEvidence

if TYPE_CHECKING:
    from edgerag.types import Vectors

TEXTS = {
    "/pump.txt": "The lid screws of the pump need a torque of 12 newton metres.",
    "/codes.txt": "Error E-1042 means that the inlet filter is blocked.",
    "/leave.txt": "Employees have thirty days of leave.",
}


class SlowEmbedder(HashingEmbedder):
    """Embeds a question once it is let go on."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self.may_go_on = threading.Event()

    def embed_query(self, text: str) -> Vectors:
        if "torque" in text:  # not what is measured of it beforehand
            self.may_go_on.wait(30)
        return super().embed_query(text)


@pytest.fixture
def library(library_of: Callable[..., Library]) -> Library:
    return library_of(TEXTS, embedder=HashingEmbedder(dimension=64))


def plan_for(question: str, library: Library) -> Plan:
    return make_plan(question, settings=RetrievalSettings(), languages=("*",), terms=library.query_terms)


def search(
    question: str,
    library: Library,
    embedder: Callable[[], Embedder],
    *,
    deadline_ms: int = 0,
    cancelled: CancelCheck = lambda: False,
    plan: Plan | None = None,
) -> Retrieved:
    return retrieve(
        plan or plan_for(question, library),
        library=library,
        embedder=embedder,
        stopwatch=Stopwatch(),
        cancelled=cancelled,
        deadline_ms=deadline_ms,
        early_words=2,
    )


def test_both_legs_find(library: Library) -> None:
    found = search("Which torque do the lid screws need?", library, lambda: HashingEmbedder(dimension=64))
    assert found.keyword and len(found.vector) == 3 and found.query_vector is not None and not found.notes


def test_words_read_while_the_question_is_embedded_change_no_order(library: Library) -> None:
    question = "Which torque do the lid screws of the inlet filter need, and how many days?"
    plan = plan_for(question, library)
    found = search(question, library, lambda: HashingEmbedder(dimension=64))
    few = found.keyword[:1]
    early = library.word_evidence(question, [hit.chunk_id for hit in few])

    candidates = fused_candidates(plan, found, exact=frozenset(), rrf_k=60)

    def order(early: WordEvidence | None) -> list[tuple[int, Scores]]:
        words = candidate_words(question, [each.chunk_id for each in candidates], library=library, early=early)
        return rerank_all(candidates, words=words, nearness=None, latent_of=lambda _words, _ids: None)

    assert len(order(None)) == 3
    assert order(found.words) == order(None) == order(early)


def test_past_the_deadline_the_keyword_leg_serves_and_it_is_said(library: Library) -> None:
    embedder = SlowEmbedder()
    try:
        found = search("Which torque do the lid screws need?", library, lambda: embedder, deadline_ms=30)
    finally:
        embedder.may_go_on.set()
    assert found.keyword and not found.vector and found.query_vector is None
    assert "not ready within 30 ms (retrieval.vector_deadline_ms)" in found.notes[0]


def test_a_model_that_loads_slowly_is_not_late(library: Library) -> None:
    loaded = threading.Event()
    threading.Timer(0.2, loaded.set).start()

    def load() -> Embedder:
        loaded.wait(30)
        return HashingEmbedder(dimension=64)

    found = search("Which torque do the lid screws need?", library, load, deadline_ms=10_000)
    assert found.vector and not found.notes


def test_time_that_runs_out_before_a_segment_is_searched_is_told(library: Library) -> None:
    with pytest.raises(Exception, match="not ready in time"):
        vector = HashingEmbedder(dimension=64).embed_query("pump")
        library.seal()
        library.search_vectors(vector, limit=3, ef_search=10, out_of_time=lambda: True)


def test_waiting_for_the_question_can_be_cancelled(library: Library) -> None:
    embedder = SlowEmbedder()
    try:
        with pytest.raises(Cancelled):
            search("Which torque is it?", library, lambda: embedder, cancelled=lambda: True)
    finally:
        embedder.may_go_on.set()


def test_without_a_model_words_alone_find(library: Library) -> None:
    def missing() -> Embedder:
        raise ModelMissing("There is no embedder.", remedy="Pull one.")

    found = search("Which torque do the lid screws need?", library, missing)
    assert found.keyword and not found.vector and "There is no embedder" in found.notes[0]


def test_words_of_which_the_keyword_leg_is_sure_load_no_embedder(library: Library) -> None:
    def never_called() -> Embedder:
        raise AssertionError("the embedder was asked for")

    plan = plan_for("E-1042", library)
    assert plan.words_first
    found = search("E-1042", library, never_called, plan=plan)
    assert found.exited_early and [hit.chunk_id for hit in found.keyword][:1]
    asked = replace(plan, words_first=False)
    assert not search("E-1042", library, lambda: HashingEmbedder(dimension=64), plan=asked).exited_early


def test_words_of_which_it_is_not_sure_are_looked_for_by_both(library: Library) -> None:
    found = search("xylophone", library, lambda: HashingEmbedder(dimension=64))
    assert not found.exited_early and found.vector


def test_confidence_is_a_lead() -> None:
    assert not confidence.is_confident([], term_count=2)
    assert confidence.is_confident([LegHit(1, 9.0)], term_count=2)
    assert not confidence.is_confident([LegHit(1, 9.0), LegHit(2, 8.9)], term_count=2)
    assert confidence.is_confident([LegHit(1, 9.0), LegHit(2, 1.0)], term_count=2)
    assert not confidence.is_confident([LegHit(1, 0.0), LegHit(2, 0.0)], term_count=2)
