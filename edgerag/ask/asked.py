"""One question at work: what is known of its answer so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from edgerag.ask.aggregate import CollectionQuestion, collection_question
from edgerag.ask.plan import read_question
from edgerag.ask.question_vector import QuestionVector
from edgerag.ask.rank import Ranked
from edgerag.ask.second_look import SecondLook
from edgerag.ask.trace import prompt_budget, traced_hits
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import Cancelled
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    CUT,
    Answer,
    AnswerDelta,
    AnswerSentence,
    AskEvent,
    CancelCheck,
    Embedder,
    Filter,
    Generator,
    Hit,
    InstantSentence,
    Message,
    Plan,
    Prefill,
    Prompt,
    PromptBudget,
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
)

if TYPE_CHECKING:
    from edgerag.types import Library

_LEAST_SHOWN_NS = 500_000  # of showing what was found: less is no time of anybody's
UNCONFIRMED = "No source confirms this answer; read the passages themselves."


class Asked:
    """What the steps of an answer have in common."""

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
        self._question_vector: QuestionVector | None = None
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
            yield f"{CUT} at {self._tokens.answer} tokens ({limit})."
        checked = [sentence.support for sentence in self._sentences if sentence.support != "not_checked"]
        if not self._cited or (checked and "supported" not in checked):
            yield UNCONFIRMED

    def _delta(self, text: str) -> AnswerDelta:
        self._text.append(text)
        return AnswerDelta(text)

    def _check_cancelled(self) -> None:
        if self._cancelled():
            raise Cancelled("The answer was cancelled.")

    def _spent(self, generator: Generator, prompt: Prompt, written: str) -> PromptBudget:
        return prompt_budget(
            prompt,
            generator=generator,
            context_tokens=min(self._generation.context_tokens, generator.context_tokens),
            prefill=self._prefill,
            written=written,
        )


class _Remembering:
    """A supplier that can be asked what it made, without waiting for it."""

    def __init__(self, supplier: Callable[[], Embedder]) -> None:
        self._supplier = supplier
        self.made: Embedder | None = None

    def __call__(self) -> Embedder:
        self.made = self._supplier()
        return self.made
