"""From sources to an answer: the prompt, what the model writes, and what of it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, cast

from edgerag.ask.captions import CaptionStop
from edgerag.ask.check import check_answer
from edgerag.ask.cite import CitationFilter
from edgerag.ask.count_text import counted
from edgerag.ask.going_on import with_texts
from edgerag.ask.instant import instant_text
from edgerag.ask.looking_up import LookingUp
from edgerag.ask.prompt import assemble
from edgerag.ask.repetition import is_looping
from edgerag.ask.thoughts import ThoughtFilter
from edgerag.errors import ModelError
from edgerag.safe_text import SafeText
from edgerag.types import (
    AnswerDelta,
    AskEvent,
    Generated,
    Generator,
    Message,
    Passage,
    Prompt,
    Sampling,
    ThoughtDelta,
    TokenCounts,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Generator as GeneratorOf


# Sentences in a row that only repeat earlier ones: two can be meant, the third is a loop.
_REPEATS_OF_A_LOOP = 3


class Writing(LookingUp):
    """The half of an answer that a chat model writes."""

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
            self._notes.append(f"{counted(len(prompt.dropped), 'source')} did not fit in {limit}.")
        if prompt.shortened:
            numbers = ", ".join(f"[{number}]" for number in prompt.shortened)
            self._notes.append(f"Of {numbers} the model has read the sentences that fit best.")
        if prompt.history_dropped:
            turns = counted(prompt.history_dropped, "earlier question")
            self._notes.append(f"{turns} of the conversation did not fit in the prompt.")
        if prompt.question_cut and not self._question.cut:
            self._notes.append("The question was cut to fit in the model's context.")
        return prompt

    def _current_history(self) -> tuple[Turn, ...]:
        """The turns whose sources stand in the library as they were read: words of a document that was removed or
        edited since are not put before the model again. Those of a conversation that was kept get their words back."""
        read = {part.chunk_id: part.key for turn in self._history for part in passages_of(turn.messages)}
        chunks = {chunk.id: chunk for chunk in self._library.chunks(list(read))}
        current = {chunk.id: chunk.kv_key for chunk in chunks.values()}
        turns = []
        for turn in self._history:
            stale = {part for part in passages_of(turn.messages) if current.get(part.chunk_id) != part.key}
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


def passages_of(messages: Sequence[Message]) -> Iterator[Passage]:
    return (part for message in messages for part in message.parts if isinstance(part, Passage) and part.key)
