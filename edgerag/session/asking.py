"""Asking and searching: the way of a question to its answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from edgerag.session.wiring import Wiring, never
from edgerag.types import (
    AnswerDone,
    AskEvent,
    CancelCheck,
    EmbedderIdentity,
    Filter,
    HitsFound,
    SearchResult,
    Turn,
    Unfinished,
)

if TYPE_CHECKING:
    from edgerag.ask.second_look import SecondLook
    from edgerag.index.library import Library
    from edgerag.index.shelf import Shelf


class Asking(Wiring):
    """What answers questions."""

    def ask(
        self,
        question: str,
        *,
        history: Sequence[Turn] = (),
        where: Filter | None = None,
        unfinished: Unfinished | None = None,
        cancelled: CancelCheck = never,
    ) -> Iterator[AskEvent]:
        """Answers one question from the documents of ``where``; the events come as the stages end. With ``unfinished``
        the answer to it that stopped goes on where it ended. A trace of it is kept.

        Raises EdgeragError.
        """
        began = time.perf_counter()
        from edgerag.ask.pipeline import ask
        from edgerag.ask.plan import read_question
        from edgerag.index.right_of_way import asking

        read_question(question)  # what is wrong with the question itself is said first
        self._follow_library()
        with self._tuning.at_work() if self._tunes else nullcontext(), self._asking.use() as library:
            self._look_at(library)
            self._states().begin()
            self._tokens().begin()
            self.warm()
            forecasts, generation = self.forecasts, self.settings.generation
            retrieval, note = forecasts.within_target(self.settings.retrieval, generation)
            answering = partial(
                ask,
                question,
                library=library,
                embedder=lambda: self._embedder(),  # `ready` may put another in its place
                generator=self._generator,
                retrieval=retrieval,
                generation=generation,
                history=history,
                where=where,
                second_look=None if retrieval.second_look == "off" else self._second_look(),
                unfinished=unfinished,
                cancelled=cancelled,
                ready=partial(self._check_models, library.identity),
            )
            events = self._recorder.asked(answering, began=began)
            events = forecasts.watched(events, retrieval=retrieval, generation=generation, note=note)
            events = self._with_notes(events, library, where)
            with asking(self._library_folder):  # only until there is something to see: an answer takes long
                for event in events:
                    yield event
                    if isinstance(event, HitsFound):
                        break
            yield from events

    def check_filter(self, where: Filter) -> None:
        """Raises UsageError when no document could fit it, LibraryMissing."""
        if self._viewing is None:
            with self._browsing.use() as library:
                library.check_filter(where)
        else:
            with self._viewing.use() as shelf:
                shelf.begin()
                shelf.check_filter(where)

    def search(self, query: str, *, limit: int, where: Filter | None = None) -> SearchResult:
        """The best hits for a query among the documents of ``where``. Raises EdgeragError."""
        from edgerag.ask.pipeline import search
        from edgerag.ask.plan import read_question
        from edgerag.index.right_of_way import asking

        read_question(query)
        self._follow_library()
        with self._asking.use() as library:
            self._begin(library)
            self._embedder.start()
            self._warm_second_look()
            with asking(self._library_folder):
                result = search(
                    query,
                    library=library,
                    embedder=self._embedder,
                    settings=self.settings.retrieval,
                    limit=limit,
                    where=where,
                    second_look=self._second_look(),
                )
            return replace(result, notes=(*result.notes, *self._notes(library, where)))

    def not_asked(self) -> tuple[str, ...]:
        """Of several libraries: what of them the last question could not be asked, in sentences that name them."""
        from edgerag.index.shelf import Shelf

        with self._asking.use() as library:
            return library.left_out if isinstance(library, Shelf) else ()

    def _begin(self, library: Library | Shelf) -> None:
        """Raises EmbedderMismatch if nothing in it was made with the embedder in use, LibraryError."""
        self._look_at(library)
        self._check_embedder(library.identity)

    def _look_at(self, library: Library | Shelf) -> None:
        """Raises LibraryError."""
        from edgerag.index.shelf import Shelf

        if isinstance(library, Shelf):
            library.begin()
        library.look_at_rest()

    def _check_models(self, identity: EmbedderIdentity) -> None:
        """Takes as long as reading a model where it was never used before. Raises ModelError if the one that is asked
        for by name is not there, EmbedderMismatch."""
        if self.settings.models.chat and self._own_models and self._has_model:
            self.catalog.find("chat", self.settings.models.chat)
        self._check_embedder(identity)

    def warm(self) -> None:
        """Starts loading the models in the background."""
        self._recorder.serve()
        self._embedder.start()
        if self._has_model:
            self._generator.start()
        self._warm_second_look()

    def _other_embedder_note(self, library: Library) -> str:
        return self._changeover.note(library) if self._own_models else ""

    def _notes(
        self, library: Library | Shelf, where: Filter | None, *, looks_at_models: bool = True
    ) -> tuple[str, ...]:
        """What to say beside an answer: what was not asked of several libraries; that another embedder is wanted, for
        which that may have to be read; that documents were left out because their language was never told."""
        from edgerag.index.filters import untold_note
        from edgerag.index.shelf import Shelf

        is_by_language = where is not None and where.languages and "unknown" not in where.languages
        untold = untold_note(library.analysed_before_count()) if is_by_language else ""
        traces = self._recorder.troubles()
        if isinstance(library, Shelf):
            return (*library.left_out, *filter(None, [untold, library.damage_note()]), *traces)
        own = (self._other_embedder_note(library) if looks_at_models else "", untold, library.damage_note())
        return (*filter(None, own), *traces)

    def _with_notes(
        self, events: Iterator[AskEvent], library: Library | Shelf, where: Filter | None
    ) -> Iterator[AskEvent]:
        """``events``; the last one also says the notes."""
        for event in events:
            if isinstance(event, AnswerDone):
                goes_on = event.answer.stop_reason != "cancelled"  # who stops an answer waits for no model
                notes = (*event.answer.notes, *self._notes(library, where, looks_at_models=goes_on))
                event = replace(event, answer=replace(event.answer, notes=notes))
            yield event

    def _second_look(self) -> SecondLook | None:
        from edgerag.ask.second_look import SecondLook
        from edgerag.engine.tuning.passage_cost import PassageCosts

        by = self.settings.retrieval.second_look
        if by == "off":
            return None
        costs = PassageCosts(self.catalog.folder, threads=self.settings.machine.threads)
        return SecondLook(by, self._reranker, costs)

    def _warm_second_look(self) -> None:
        if self.settings.retrieval.second_look != "off":
            self._reranker.start()

    def tune_when_idle(self) -> None:
        """From now on the chat model is tuned while nobody asks anything, until that is done or the session closes."""
        self._tunes = True
        self._tuning.wait()
