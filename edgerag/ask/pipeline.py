"""The ask flow: plan, retrieve, fuse, select, instant, assemble, generate, cite, check, as a stream of events.

Events come in this order: PlanMade, HitsFound, InstantAnswer, PromptReady, ThoughtDelta..., AnswerDelta...,
AnswerDone. An answer without sources has neither InstantAnswer nor PromptReady, one without a model and one that was
counted (aggregate.py) no PromptReady; a cancelled one ends with AnswerDone wherever it was. The deltas joined are
the answer's text, always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from edgerag.ask.going_on import current_sources, resume
from edgerag.ask.looking_up import refuse_empty
from edgerag.ask.plan import VECTOR_WEIGHT, make_plan, read_question
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.second_look import SecondLook, look_again
from edgerag.ask.waiting import start, wait
from edgerag.ask.writing import Writing, passages_of
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import Cancelled, ModelError
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    AnswerDone,
    AskEvent,
    CancelCheck,
    Embedder,
    Filter,
    Generator,
    HitsFound,
    InstantAnswer,
    Plan,
    PlanMade,
    PromptReady,
    SearchResult,
    Turn,
    Unfinished,
)

if TYPE_CHECKING:
    from edgerag.types import Library

NOT_FOUND = "This is not in these documents."

_TOLD_HITS = 20  # hits whose text is read, so that they can be looked at: more than are judged


def search(
    query: str,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    settings: RetrievalSettings,
    limit: int,
    where: Filter | None = None,
    second_look: SecondLook | None = None,
) -> SearchResult:
    """The ``limit`` best hits among the documents of ``where``.

    Raises UsageError for an empty query or a filter that fits nothing, LibraryError.
    """
    question = read_question(query)
    refuse_empty(library)
    where = None if where is None else library.check_filter(where)
    settings = dataclasses.replace(settings, candidate_count=max(settings.candidate_count, limit))
    plan = make_plan(question.text, settings=settings, languages=library.identity.languages, terms=library.query_terms)

    def ranked_by(plan: Plan) -> Ranked:
        return rank(
            plan,
            library=library,
            embedder=embedder,
            settings=settings,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
            where=where,
            limit=max(limit, settings.second_look_count),
        )

    ranked = ranked_by(plan)
    if ranked.exited_early and len(ranked.hits) < limit:  # more are wanted than have the words
        ranked = ranked_by(dataclasses.replace(plan, words_first=False))
    ranked = look_again(
        plan,
        ranked,
        second_look=second_look,
        settings=settings,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
    )
    return SearchResult(ranked.hits[:limit], ranked.notes)


def ask(
    question: str,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    generator: Callable[[], Generator],
    retrieval: RetrievalSettings,
    generation: GenerationSettings,
    history: Sequence[Turn] = (),
    where: Filter | None = None,
    second_look: SecondLook | None = None,
    unfinished: Unfinished | None = None,
    hit_limit: int = _TOLD_HITS,
    cancelled: CancelCheck,
    ready: Callable[[], None] | None = None,
    stopwatch: Stopwatch | None = None,
) -> Iterator[AskEvent]:
    """Answers ``question`` from the documents of ``library`` that ``where`` lets through. Of the hits
    ``hit_limit`` are told, and those that are judged in any case. With ``unfinished`` nothing
    is looked up: that answer goes on where it ended, and the first AnswerDelta says again what there was of it.
    ``ready`` is called first, in another thread, and may take as long as a model takes to be read: what it raises is
    raised. ``stopwatch``: where the times of the stages are noted, for who wants them of an answer that fails, too.

    The suppliers are called only when needed, and in another thread, so that they may wait for a
    model to load. Without an embedder words alone are searched; without a chat model, or with
    ``generation.mode`` "instant", the best sentences of the sources are the answer. Raises UsageError for an
    empty question and for a filter that fits nothing, and LibraryError.
    """
    asking = _Asking(
        question,
        library=library,
        embedder=embedder,
        generator=generator,
        retrieval=retrieval,
        generation=generation,
        history=history,
        where=where,
        second_look=second_look,
        unfinished=unfinished,
        hit_limit=hit_limit,
        cancelled=cancelled,
        stopwatch=stopwatch or Stopwatch(),
    )
    try:
        if ready is not None:
            wait(start(ready, name="ready-to-ask"), cancelled)
        for event in asking.events():
            began_ns = perf_counter_ns()
            yield event
            asking.shown(event, perf_counter_ns() - began_ns)
    except Cancelled:
        asking.stop_reason = "cancelled"
    yield AnswerDone(asking.answer())


class _Asking(Writing):
    """One question at work: what is known of its answer so far."""

    def events(self) -> Iterator[AskEvent]:
        if self._unfinished is not None:
            yield from self._go_on(self._unfinished)
            return
        plan = self._plan()
        yield PlanMade(plan)
        self._check_cancelled()
        if self._collection is not None and (yield from self._counted(self._collection, plan)):
            return
        ranked = self._rank(plan)
        yield HitsFound(ranked.hits)
        self._check_cancelled()
        self._select(plan, ranked)
        if not self._sources:
            self.stop_reason = "no_sources"
            yield self._delta(NOT_FOUND)
            return
        yield InstantAnswer(self._instant, self._sources)
        if self._generation.mode == "instant":
            self.stop_reason = "instant"
            yield self._extract()
            return
        try:
            with self._stopwatch.measure("model_load"):
                generator = wait(start(self._generator, name="generator-supplier"), self._cancelled)
        except ModelError as error:
            self.stop_reason = "no_model"
            self._notes.append(f"No answer was written: {error}")
            yield self._extract()
            return
        self._model = generator.name
        prompt = self._assemble(generator)
        yield PromptReady(prompt)
        self._check_cancelled()
        yield from self._generate(generator, prompt)
        self._check(weighs_meaning=plan.vector_weight >= VECTOR_WEIGHT)

    def _go_on(self, unfinished: Unfinished) -> Iterator[AskEvent]:
        with self._stopwatch.measure("plan"):
            refuse_empty(self._library)
            ids = {source.hit.chunk.id for source in unfinished.sources}
            ids |= {part.chunk_id for part in passages_of(unfinished.messages)}
            chunks = {chunk.id: chunk for chunk in self._library.chunks(sorted(ids))}
            self._sources = current_sources(unfinished, chunks)
            self._instant = unfinished.instant
        with self._stopwatch.measure("model_load"):
            generator = wait(start(self._generator, name="generator-supplier"), self._cancelled)
        self._model = generator.name
        with self._stopwatch.measure("prompt"):
            resumed = resume(
                unfinished, sources=self._sources, chunks=chunks, generator=generator, settings=self._generation
            )
        yield PromptReady(resumed.prompt)
        yield from self._generate(generator, resumed.prompt, written=resumed.written)
        self._check(weighs_meaning=True)

    # ------------------------------------------------------------ stages

    # ------------------------------------------------------------ small change
