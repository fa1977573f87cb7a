"""From a question to its sources: plan, search, order, choose; or count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgerag.ask.aggregate import CollectionQuestion, of_types, scanned_words
from edgerag.ask.asked import Asked
from edgerag.ask.count_text import MOST_DOCUMENTS, scan_sources, scan_text, unfollowed_text
from edgerag.ask.follow_up import Earlier, SelfContained, self_contained
from edgerag.ask.instant import instant_sentences
from edgerag.ask.joined_words import alone
from edgerag.ask.language import guess_language
from edgerag.ask.plan import make_plan, outline, read_question
from edgerag.ask.question_vector import QuestionVector
from edgerag.ask.quotes import to_sources
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.relevance import judged_count, probabilities_of
from edgerag.ask.second_look import look_again
from edgerag.ask.select import select
from edgerag.ask.stitch import stitched
from edgerag.errors import LibraryEmpty
from edgerag.types import (
    AskEvent,
    HitsFound,
    InstantAnswer,
    Plan,
    WordQuery,
)

if TYPE_CHECKING:
    from collections.abc import Generator as GeneratorOf

    from edgerag.types import Library

_NEAREST = 3  # hits named where nothing was found


class LookingUp(Asked):
    """The half of an answer that needs no chat model."""

    def _plan(self) -> Plan:
        with self._stopwatch.measure("plan") as facts:
            facts["language"] = guess_language(self._question.text) or "unknown"
            refuse_empty(self._library)
            if self._where is not None:
                self._where = self._library.check_filter(self._where)
            languages = self._library.identity.languages
            searched = self._self_contained()
            if self._collection is not None and self._collection.leans and not searched.added:
                self._collection = None
            outlined = outline(
                searched.question,
                languages=languages,
                added=searched.added,
                aggregate=self._collection is not None,
            )
            if outlined.embeds_at_once and self._collection is None:
                self._question_vector = QuestionVector(outlined.searched, self._embedder, self._stopwatch)
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
                outlined=outlined,
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
            limit=max(judged_count(plan), self._hit_limit, self._retrieval.second_look_count),
            embedding=self._question_vector,
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
            judged = ranked.hits[: judged_count(plan)]
            # Of a question that was cut the embedder read a part, and the vector says little.
            probabilities = probabilities_of(judged, script=plan.script, has_vectors=not self._question.cut)
            self._probabilities = probabilities
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


def refuse_empty(library: Library) -> None:
    if library.is_empty():
        raise LibraryEmpty("The library holds no documents yet.", remedy="Put some in with `edgerag ingest FOLDER`.")
