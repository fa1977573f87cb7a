"""The ask flow: plan, retrieve, fuse, select, instant, assemble, generate, cite, check, as a stream of events.

Events come in this order: PlanMade, HitsFound, InstantAnswer, PromptReady, ThoughtDelta..., AnswerDelta...,
AnswerDone. An answer without sources has neither InstantAnswer nor PromptReady, one without a model and one that was
counted (aggregate.py) no PromptReady; a cancelled one ends with AnswerDone wherever it was. The deltas joined are
the answer's text, always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, cast

from edgerag.ask.aggregate import CollectionQuestion, collection_question, of_types, scanned_words
from edgerag.ask.captions import CaptionStop
from edgerag.ask.check import check_answer
from edgerag.ask.cite import CitationFilter
from edgerag.ask.count_text import MOST_DOCUMENTS, scan_sources, scan_text, unfollowed_text
from edgerag.ask.follow_up import Earlier, SelfContained, self_contained
from edgerag.ask.going_on import current_sources, resume, with_texts
from edgerag.ask.instant import instant_sentences, instant_text
from edgerag.ask.joined_words import alone
from edgerag.ask.language import guess_language
from edgerag.ask.plan import VECTOR_WEIGHT, make_plan, read_question
from edgerag.ask.prompt import assemble
from edgerag.ask.quotes import to_sources
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.relevance import chunk_probability
from edgerag.ask.repetition import is_looping
from edgerag.ask.second_look import SecondLook, look_again
from edgerag.ask.select import select
from edgerag.ask.stitch import stitched
from edgerag.ask.thoughts import ThoughtFilter
from edgerag.ask.trace import prompt_budget, traced_hits
from edgerag.ask.waiting import start, wait
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import Cancelled, LibraryError, ModelError
from edgerag.safe_text import SafeText
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    AnswerSentence,
    AskEvent,
    CancelCheck,
    Embedder,
    Filter,
    Generated,
    Generator,
    Hit,
    HitsFound,
    InstantAnswer,
    InstantSentence,
    Message,
    Passage,
    Plan,
    PlanMade,
    Prefill,
    Prompt,
    PromptBudget,
    PromptReady,
    Sampling,
    SearchResult,
    SelectionReport,
    Source,
    StageTime,
    StopReason,
    ThoughtDelta,
    TokenCounts,
    TokenTime,
    TokenTiming,
    Trace,
    Turn,
    Unfinished,
    WordQuery,
)

if TYPE_CHECKING:
    from collections.abc import Generator as GeneratorOf

    from edgerag.types import Library

NOT_FOUND = "This is not in these documents."
UNCONFIRMED = "No source confirms this answer; read the passages themselves."

_TOLD_HITS = 20  # hits whose text is read, so that they can be looked at: more than are judged
_JUDGED_HITS = 10  # hits looked at for whether they are relevant; sources come from the first of them
_LEAST_SHOWN_NS = 500_000  # of showing what was found: less is no time of anybody's
_NEAREST = 3  # hits named where nothing was found
# Sentences in a row that only repeat earlier ones: two can be meant, the third is a loop.
_REPEATS_OF_A_LOOP = 3


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
    _refuse_empty(library)
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
    stopwatch: Stopwatch | None = None,
) -> Iterator[AskEvent]:
    """Answers ``question`` from the documents of ``library`` that ``where`` lets through. Of the hits
    ``hit_limit`` are told, and those that are judged in any case. With ``unfinished`` nothing
    is looked up: that answer goes on where it ended, and the first AnswerDelta says again what there was of it.
    ``stopwatch``: where the times of the stages are noted, for who wants them of an answer that fails, too.

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
        for event in asking.events():
            began_ns = perf_counter_ns()
            yield event
            asking.shown(event, perf_counter_ns() - began_ns)
    except Cancelled:
        asking.stop_reason = "cancelled"
    yield AnswerDone(asking.answer())


class _Asking:
    """One question at work: what is known of its answer so far."""

    def __init__(
        self,
        question: str,
        *,
        library: Library,
        embedder: Callable[[], Embedder],
        generator: Callable[[], Generator],
        retrieval: RetrievalSettings,
        generation: GenerationSettings,
        history: Sequence[Turn],
        where: Filter | None,
        second_look: SecondLook | None,
        unfinished: Unfinished | None,
        hit_limit: int,
        cancelled: CancelCheck,
        stopwatch: Stopwatch,
    ) -> None:
        self._stopwatch = stopwatch
        self._original = question.strip()
        with stopwatch.measure("plan"):
            self._question = read_question(question)
            self._collection: CollectionQuestion | None = collection_question(self._question.text)
        self._made: Plan | None = None
        self._library = library
        self._embedder = _Remembering(embedder)
        self._generator = generator
        self._retrieval = retrieval
        self._generation = generation
        self._history = history
        self._where = where
        self._second_look = second_look
        self._unfinished = unfinished
        self._hit_limit = hit_limit
        self._cancelled = cancelled
        self._text: list[str] = []
        self._thought: list[str] = []
        self._instant: tuple[InstantSentence, ...] = ()
        self._sentences: tuple[AnswerSentence, ...] = ()
        self._notes: list[str] = []
        self._sources: tuple[Source, ...] = ()
        self._cited: frozenset[int] = frozenset()
        self._pending_count = 0
        self._probability: float | None = None
        self._nearest: tuple[Hit, ...] = ()
        self._exited_early = False
        self._selection: SelectionReport | None = None
        self._fell_back = False
        self._model = ""
        self._tokens = TokenCounts(prompt=0, answer=0)
        self._prefill: Prefill | None = None
        self._messages: tuple[Message, ...] = ()
        self._marks: tuple[tuple[int, int], ...] = ()
        self._ranked: Ranked | None = None
        self._probabilities: dict[int, float] = {}
        self._prompt: Prompt | None = None
        self._budget: PromptBudget | None = None
        self._token_ns: list[int] = []
        self._timings: list[TokenTiming] = []
        self._shown_ns: list[int] = []  # what who shows it took, for each token so far
        self.stop_reason: StopReason = "end"

    def shown(self, event: AskEvent, took_ns: int) -> None:
        """Notes what whoever reads the events took to show this one."""
        if isinstance(event, AnswerDelta | ThoughtDelta) and self._shown_ns:
            self._shown_ns[-1] += took_ns
        elif took_ns >= _LEAST_SHOWN_NS:
            end_s = self._stopwatch.elapsed()
            self._stopwatch.add_span("present", end_s - took_ns / 1e9, end_s)

    def answer(self) -> Answer:
        return Answer(
            question=self._original,
            text="".join(self._text),
            found=bool(self._sources),
            sources=tuple(dataclasses.replace(s, cited=s.number in self._cited) for s in self._sources),
            stop_reason=self.stop_reason,
            timings=(*self._stopwatch.times(), StageTime("total", self._stopwatch.elapsed())),
            tokens=self._tokens,
            model=self._model,
            pending_count=self._pending_count,
            notes=(*self._notes, *self._doubts()),
            instant=tuple(s for s in self._instant if s.source <= len(self._sources)),  # others did not fit
            sentences=self._sentences,
            thought="".join(self._thought),
            messages=self._messages,
            marks=self._marks,
            prefill=self._prefill,
            probability=self._probability,
            nearest=self._nearest,
            exited_early=self._exited_early,
            selection=self._selection,
            plan=self._made,
            trace=self._trace(),
        )

    def _trace(self) -> Trace:
        ranked, prompt = self._ranked, self._prompt
        hits = (
            ()
            if ranked is None or self._probability is None
            else traced_hits(
                ranked.hits,
                probabilities=self._probabilities,
                selection=self._selection,
                sources=self._sources,
                dropped=() if prompt is None else prompt.dropped,
                short_of_time=prompt is not None and prompt.short_of_time,
            )
        )
        return Trace(
            spans=self._stopwatch.spans(),
            token_ns=tuple(self._token_ns),
            hits=hits,
            vector_leg=None if ranked is None else ranked.vector_leg,
            second_look=None if ranked is None else ranked.second_look,
            budget=self._budget,
            messages=() if prompt is None else prompt.messages,
            began_ns=self._stopwatch.began_ns,
            tokens=tuple(
                TokenTime(timing.sampling_ns, timing.decode_ns, timing.detokenise_ns, shown_ns)
                for timing, shown_ns in zip(self._timings, self._shown_ns, strict=False)
            ),
        )

    def _doubts(self) -> Iterator[str]:
        if not self._sources or self.stop_reason not in ("end", "length"):
            return
        if self.stop_reason == "length":
            full = self._tokens.answer < self._generation.answer_tokens
            limit = "the context is full" if full else "generation.answer_tokens"
            yield f"The answer was cut at {self._tokens.answer} tokens ({limit})."
        checked = [sentence.support for sentence in self._sentences if sentence.support != "not_checked"]
        if not self._cited or (checked and "supported" not in checked):
            yield UNCONFIRMED

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
            _refuse_empty(self._library)
            ids = {source.hit.chunk.id for source in unfinished.sources}
            ids |= {part.chunk_id for part in _passages(unfinished.messages)}
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

    def _plan(self) -> Plan:
        with self._stopwatch.measure("plan") as facts:
            facts["language"] = guess_language(self._question.text) or "unknown"
            _refuse_empty(self._library)
            if self._where is not None:
                self._where = self._library.check_filter(self._where)
            languages = self._library.identity.languages
            searched = self._self_contained()
            if self._collection is not None and self._collection.leans and not searched.added:
                self._collection = None
            plan = self._made = make_plan(
                searched.question,
                settings=self._retrieval,
                languages=languages,
                terms=self._library.query_terms,
                room_tokens=self._generation.context_tokens
                - min(self._generation.answer_tokens, self._generation.context_tokens // 2),
                weigh=self._library.term_weights,
                added=searched.added,
                aggregate=self._collection is not None,
            )
            self._pending_count = self._library.pending_count()
        if self._question.cut:
            used = len(self._question.text)
            self._notes.append(f"The question is very long: only its first {used} characters were used.")
        if plan.added_words and (self._collection is None or self._collection.leans):
            words = ", ".join(f"“{word}”" for word in plan.added_words)
            self._notes.append(f"Searched together with {words} from the conversation.")
        if plan.vector_weight == 0:
            self._notes.append("Searched by words only: the embedder was not trained for the language of the question.")
        elif self._pending_count and self._collection is None:
            self._notes.append(
                f"{self._pending_count} of {self._library.chunk_count()} passages can so far be found by words only."
            )
        return plan

    def _self_contained(self) -> SelfContained:
        """The question with what it needs of the conversation to be searched for."""
        if not self._history:
            return self_contained(self._question.text, earlier=(), weigh=self._library.term_weights)
        cited = {chunk_id for turn in self._history for chunk_id in turn.cited_chunks}
        about = {chunk.id: (chunk.title, *chunk.chunk.heading_path) for chunk in self._library.chunks(sorted(cited))}
        earlier = [
            Earlier(
                read_question(turn.question).text,
                turn.answer,
                tuple(dict.fromkeys(text for chunk_id in turn.cited_chunks for text in about.get(chunk_id, ()))),
            )
            for turn in self._history
        ]
        return self_contained(self._question.text, earlier=earlier, weigh=self._library.term_weights)

    def _counted(self, collection: CollectionQuestion, plan: Plan) -> GeneratorOf[AskEvent, None, bool]:
        """Answers a question about the collection by counting; False when it is better answered like any other."""
        with self._stopwatch.measure("scan") as facts:
            collection = self._typed(collection)
            words = scanned_words(collection, plan.added_words)
            where = of_types(self._where, collection.types)
            unfollowed = collection.unfollowed if where is not None else (*collection.unfollowed, *collection.types)
            if unfollowed:
                words = alone(words.words, without=unfollowed)
            scan = self._library.scan_keywords(
                words, document_limit=0 if unfollowed else MOST_DOCUMENTS, where=where or self._where
            )
            facts["hits"] = scan.passage_count
            if not scan.passage_count and not collection.of_documents:
                self._notes.append(
                    "No complete list: no passage holds all of the words; this is from those that fit best."
                )
                return False
            chunks = {chunk.id: chunk for chunk in self._library.chunks([match.chunk_id for match in scan.documents])}
            self._sources = scan_sources(scan, chunks, question=" ".join(words.held))
        self.stop_reason = "counted"
        self._cited = frozenset(source.number for source in self._sources)
        yield HitsFound(tuple(source.hit for source in self._sources))
        if self._sources:
            yield InstantAnswer((), self._sources)
        if unfollowed:
            yield self._delta(unfollowed_text(scan, unfollowed))
        else:
            yield self._delta(scan_text(scan, self._sources, types=collection.types))
        return True

    def _typed(self, collection: CollectionQuestion) -> CollectionQuestion:
        """The question about files of a type, where its word for them may be one and there are such files."""
        typed = collection.as_type
        if typed is None or (where := of_types(self._where, typed.types)) is None:
            return collection
        there = self._library.scan_keywords(WordQuery(), document_limit=0, where=where).document_total
        return typed if there else collection

    def _rank(self, plan: Plan) -> Ranked:
        ranked = rank(
            plan,
            library=self._library,
            embedder=self._embedder,
            settings=self._retrieval,
            stopwatch=self._stopwatch,
            cancelled=self._cancelled,
            where=self._where,
            limit=max(_judged_count(plan), self._hit_limit, self._retrieval.second_look_count),
        )
        ranked = look_again(
            plan,
            ranked,
            second_look=self._second_look,
            settings=self._retrieval,
            stopwatch=self._stopwatch,
            cancelled=self._cancelled,
        )
        self._notes.extend(ranked.notes)
        self._exited_early = ranked.exited_early
        self._ranked = ranked
        return ranked

    def _select(self, plan: Plan, ranked: Ranked) -> None:
        with self._stopwatch.measure("select"):
            judged = ranked.hits[: _judged_count(plan)]
            probabilities = self._probabilities = {
                hit.chunk.id: chunk_probability(
                    # Of a question that was cut the embedder read a part, and the vector says little.
                    nearness=None if self._question.cut else hit.scores.nearness,
                    covered=hit.scores.covered,
                    together=hit.scores.together,
                    script=plan.script,
                )
                for hit in judged
            }
            self._probability = max(probabilities.values(), default=0.0)
            if self._probability >= self._retrieval.found_probability:
                selection = select(
                    judged,
                    probabilities=probabilities,
                    question=plan.question,
                    count=plan.source_count,
                    most=max(plan.source_count, plan.most_sources),
                    room_tokens=plan.room_tokens,
                    likeness=ranked.likeness,
                )
                self._selection = selection.report
                whole = [hit for hit in selection.hits if hit.chunk.id not in selection.spans]
                longer = {hit.chunk.id: hit for hit in stitched(whole, around=self._library.text_around)}
                hits = [longer.get(hit.chunk.id, hit) for hit in selection.hits]
                self._sources = to_sources(hits, question=plan.question, spans=selection.spans)
            else:
                self._nearest = judged[:_NEAREST]
        with self._stopwatch.measure("instant"):
            self._instant = instant_sentences(self._sources, question=plan.question, relevance=probabilities)

    def _assemble(self, generator: Generator) -> Prompt:
        with self._stopwatch.measure("prompt"):
            prompt = assemble(
                self._question.text,
                sources=self._sources,
                history=self._current_history(),
                generator=generator,
                settings=self._generation,
                question_cut=self._question.cut,
            )
        self._sources = prompt.sources
        self._tokens = TokenCounts(prompt=len(prompt.tokens), answer=0)
        limit = "the model's context"
        if prompt.short_of_time:
            limit = f"the {self._generation.reading_s:g} s that the model may read (generation.reading_s)"
        if prompt.dropped:
            self._notes.append(f"{_count(len(prompt.dropped), 'source')} did not fit in {limit}.")
        if prompt.shortened:
            numbers = ", ".join(f"[{number}]" for number in prompt.shortened)
            self._notes.append(f"Of {numbers} the model has read the sentences that fit best.")
        if prompt.history_dropped:
            turns = _count(prompt.history_dropped, "earlier question")
            self._notes.append(f"{turns} of the conversation did not fit in the prompt.")
        if prompt.question_cut and not self._question.cut:
            self._notes.append("The question was cut to fit in the model's context.")
        return prompt

    def _current_history(self) -> tuple[Turn, ...]:
        """The turns whose sources stand in the library as they were read: words of a document that was removed or
        edited since are not put before the model again. Those of a conversation that was kept get their words back."""
        read = {part.chunk_id: part.key for turn in self._history for part in _passages(turn.messages)}
        chunks = {chunk.id: chunk for chunk in self._library.chunks(list(read))}
        current = {chunk.id: chunk.kv_key for chunk in chunks.values()}
        turns = []
        for turn in self._history:
            stale = {part for part in _passages(turn.messages) if current.get(part.chunk_id) != part.key}
            own = turn.messages[-2].parts if len(turn.messages) > 1 else ()
            if not stale.intersection(part for part in own if isinstance(part, Passage)):
                messages = () if stale else with_texts(turn.messages, chunks)
                turns.append(dataclasses.replace(turn, messages=messages))
        return tuple(turns)

    def _generate(self, generator: Generator, prompt: Prompt, *, written: str = "") -> Iterator[AskEvent]:
        """What the model writes behind the prompt, which ends with ``written``."""
        self._marks = prompt.marks
        self._prompt = prompt
        safe = SafeText()
        thoughts = ThoughtFilter(opening=prompt.opening)
        captions = CaptionStop()
        citations = CitationFilter(prompt.sources, question=self._question.text, marks=dict(prompt.marks))
        raw = written
        looped = False
        if shown := citations.feed(captions.feed(thoughts.feed(written)[0])):
            yield self._delta(shown)
        began = self._stopwatch.elapsed()
        first: float | None = None
        steps = generator.generate(
            prompt.tokens,
            passages=prompt.passages,
            max_tokens=prompt.answer_room,
            sampling=Sampling(
                temperature=self._generation.temperature,
                top_k=self._generation.top_k,
                top_p=self._generation.top_p,
                min_p=self._generation.min_p,
                repeat_penalty=self._generation.repeat_penalty,
                seed=self._generation.seed,
            ),
            cancelled=self._cancelled,
        )
        # Closed at once when the model is stopped early, not when the garbage collector comes by.
        with closing(cast("GeneratorOf[Generated, None, None]", steps)):
            for step in steps:
                if step.prefill is not None:
                    self._prefill = step.prefill
                    self._stopwatch.add_span("prefill", began, self._stopwatch.elapsed())
                    self._notes.extend(step.prefill.notes)
                    continue
                now = self._stopwatch.elapsed()
                if first is None:
                    first = now
                    self._stopwatch.add("first_token", began, first)
                if step.token_count > len(self._token_ns):
                    self._token_ns.append(round(now * 1e9))
                    self._shown_ns.append(0)
                    if step.timing is not None:
                        self._timings.append(step.timing)
                self._tokens = TokenCounts(prompt=len(prompt.tokens), answer=step.token_count)
                text = safe.feed(step.text)
                raw += text
                text, thought = thoughts.feed(text)
                if thought:
                    self._thought.append(thought)
                    yield ThoughtDelta(thought)
                if shown := citations.feed(captions.feed(text)):
                    self._cited = citations.cited
                    yield self._delta(shown)
                if step.stop is not None:
                    self.stop_reason = step.stop
                looped = citations.repeats >= _REPEATS_OF_A_LOOP or is_looping(raw)
                if looped or captions.reached:
                    break
        text, thought = thoughts.finish()
        if thought:
            self._thought.append(thought)
            yield ThoughtDelta(thought)
        tail = captions.feed(text) + captions.finish()
        rest = citations.abandon() if looped else citations.feed(tail) + citations.finish()
        self._cited = citations.cited
        if rest:
            yield self._delta(rest)
        self._stopwatch.add("generate", began if first is None else first, self._stopwatch.elapsed())
        with self._stopwatch.measure_beside("account"):
            self._budget = self._spent(generator, prompt, written)
        if looped:
            self._notes.append("The model began to repeat itself and was stopped.")
        if thoughts.thinking and self.stop_reason != "cancelled":
            self._notes.append("The model was still thinking when it had to stop (generation.answer_tokens).")
        unusable = not any(c.isalnum() for c in "".join(self._text)) or (looped and citations.sentences_shown == 0)
        if not (unusable or looped or self._thought):  # what the user did not read is nothing to go on from
            self._messages = (*prompt.messages, Message("assistant", (raw,)))
        if unusable and self.stop_reason != "cancelled":
            yield self._fall_back()

    def _spent(self, generator: Generator, prompt: Prompt, written: str) -> PromptBudget:
        return prompt_budget(
            prompt,
            generator=generator,
            context_tokens=min(self._generation.context_tokens, generator.context_tokens),
            prefill=self._prefill,
            written=written,
        )

    def _fall_back(self) -> AnswerDelta:
        """The best passage in place of an answer that says nothing."""
        best = self._sources[0]
        self._fell_back = True
        self._cited = frozenset({best.number})
        self._notes.append("The model gave no usable answer; the passage that fits best is quoted instead.")
        quote = " ".join(SafeText().feed(best.quote).split())
        return self._delta(f"{chr(10) * 2 if self._text else ''}“{quote}” [{best.number}]")

    def _extract(self) -> AnswerDelta:
        """The documents' own sentences in place of an answer that a model writes."""
        self._cited = frozenset(sentence.source for sentence in self._instant)
        return self._delta(instant_text(self._instant))

    def _check(self, *, weighs_meaning: bool) -> None:
        """Looks up what the model wrote. What it did not write stands in a source anyway."""
        if self.stop_reason == "cancelled" or self._fell_back:
            return
        with self._stopwatch.measure("check"):
            check = partial(
                check_answer,
                "".join(self._text),
                sources=self._sources,
                question=self._question.text,
                instant=[s for s in self._instant if s.source <= len(self._sources)],
            )
            embedder = self._embedder.made if weighs_meaning else None
            try:
                self._sentences = check(embed=None if embedder is None else embedder.embed_passages)
            except ModelError as error:
                self._sentences = check()
                self._notes.append(f"The answer was looked up by words only: {error}")
        self._cited |= {number for sentence in self._sentences for number in sentence.sources}

    # ------------------------------------------------------------ small change

    def _delta(self, text: str) -> AnswerDelta:
        self._text.append(text)
        return AnswerDelta(text)

    def _check_cancelled(self) -> None:
        if self._cancelled():
            raise Cancelled("The answer was cancelled.")


class _Remembering:
    """A supplier that can be asked what it made, without waiting for it."""

    def __init__(self, supplier: Callable[[], Embedder]) -> None:
        self._supplier = supplier
        self.made: Embedder | None = None

    def __call__(self) -> Embedder:
        self.made = self._supplier()
        return self.made


def _passages(messages: Sequence[Message]) -> Iterator[Passage]:
    return (part for message in messages for part in message.parts if isinstance(part, Passage) and part.key)


def _judged_count(plan: Plan) -> int:
    return max(_JUDGED_HITS, 2 * plan.source_count)


def _refuse_empty(library: Library) -> None:
    if library.is_empty():
        raise LibraryError("The library holds no documents yet.", remedy="Put some in with `edgerag ingest FOLDER`.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
