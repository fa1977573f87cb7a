"""How the passages stood at each stage of one question: each leg by itself, then stage by stage as the ask flow has it.

A stage that comes to the flow shows up here by itself when its score is a field of :class:`~edgerag.types.Scores`. One
that leaves no score but another order of the hits shows up as ``hits``.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from edgerag.ask.pipeline import ask
from edgerag.ask.retrieve import retrieve
from edgerag.ask.second_look import SecondLook
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    Answer,
    AnswerDone,
    CancelCheck,
    Embedder,
    EmbedderIdentity,
    Generator,
    Hit,
    HitsFound,
    InstantAnswer,
    Plan,
    PlanMade,
    Source,
    StoredChunk,
)

if TYPE_CHECKING:
    from edgerag.index.library import Library
    from edgerag.types import Vectors

LEGS = ("keyword", "vector")
SCORES = ("fused", "reranked")  # those of Scores that put all hits in an order
HITS, SOURCES = "hits", "sources"
# Not a stage of the flow: from the question until it is known what is shown.
TO_SOURCES = "to_sources"
_HITS = 1_000  # all that both legs find: more than are shown, as several can be of one document


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the parts of the ask flow, as a session has them."""

    library: Library
    embedder: Callable[[], Embedder]
    generator: Callable[[], Generator]
    retrieval: RetrievalSettings
    generation: GenerationSettings
    second_look: SecondLook | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, answered. ``seconds`` by stage, in the order of the flow."""

    answer: Answer
    sources: tuple[Source, ...]  # of the answer, cited or not
    stages: Mapping[str, Sequence[StoredChunk]]  # best first
    seconds: Mapping[str, float]


def ask_stage_by_stage(question: str, subject: Subject, *, cancelled: CancelCheck) -> Asked:
    """Asks as `edgerag ask` does, and both legs once more by themselves. Raises EdgeragError."""
    embedder = RememberingQuery(subject.embedder)
    plan: Plan | None = None
    hits: tuple[Hit, ...] = ()
    answer: Answer | None = None
    shown: float | None = None
    began = time.perf_counter()
    for event in ask(
        question,
        library=subject.library,
        embedder=embedder,
        generator=subject.generator,
        retrieval=subject.retrieval,
        generation=subject.generation,
        second_look=subject.second_look,
        hit_limit=_HITS,
        cancelled=cancelled,
    ):
        match event:
            case PlanMade():
                plan = event.plan
            case HitsFound():
                hits = event.hits
            case InstantAnswer():
                shown = time.perf_counter() - began
            case AnswerDone():
                answer = event.answer
                shown = shown or time.perf_counter() - began
    assert plan is not None and answer is not None and shown is not None, "every question has a plan and an answer"
    return Asked(
        answer=answer,
        sources=answer.sources,
        stages={
            **_legs(plan, subject.library, embedder, cancelled),
            **_by_score(hits),
            HITS: [hit.chunk for hit in hits],
            SOURCES: [source.hit.chunk for source in answer.sources],
        },
        seconds={**{each.stage: each.seconds for each in answer.timings}, TO_SOURCES: shown},
    )


def _legs(
    plan: Plan, library: Library, embedder: Callable[[], Embedder], cancelled: CancelCheck
) -> dict[str, list[StoredChunk]]:
    """Each leg in full, whatever weight the plan gives it."""
    both = dataclasses.replace(plan, keyword_weight=1.0, vector_weight=1.0, words_first=False)
    found = retrieve(both, library=library, embedder=embedder, stopwatch=Stopwatch(), cancelled=cancelled)
    legs = {"keyword": found.keyword, "vector": found.vector}
    chunks = {c.id: c for c in library.chunks(list({hit.chunk_id for leg in legs.values() for hit in leg}))}
    return {name: [chunks[hit.chunk_id] for hit in leg if hit.chunk_id in chunks] for name, leg in legs.items()}


def _by_score(hits: Sequence[Hit]) -> dict[str, list[StoredChunk]]:
    """The order that each score gives the hits. Among equal scores, and where a hit has none, the order of the flow
    holds."""
    return {name: [hit.chunk for hit in sorted(hits, key=partial(_descending, name))] for name in SCORES}


def _descending(name: str, hit: Hit) -> float:
    score = getattr(hit.scores, name)
    return -float(score) if isinstance(score, int | float) else math.inf


class RememberingQuery:
    """A supplier whose embedder embeds the same question once."""

    def __init__(self, supplier: Callable[[], Embedder]) -> None:
        self._supplier = supplier
        self._made: _Remembering | None = None

    def __call__(self) -> Embedder:
        if self._made is None:
            self._made = _Remembering(self._supplier())
        return self._made


class _Remembering:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._last: tuple[str, Vectors] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    def embed_query(self, text: str) -> Vectors:
        if self._last is None or self._last[0] != text:
            self._last = (text, self._embedder.embed_query(text))
        return self._last[1]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed_passages(texts)
