"""The finished answer and the events on the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgerag.types.prompting import Message, Prefill, Prompt
    from edgerag.types.searching import Hit, Plan, SelectionReport, Source
    from edgerag.types.tracing import Trace


@dataclass(frozen=True, slots=True)
class StageTime:
    """Wall time of one stage of one answer."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenCounts:
    prompt: int
    answer: int


CUT = "The answer was cut"  # how the note begins that says at how many tokens
StopReason = Literal["end", "length", "cancelled", "no_sources", "no_model", "instant", "counted"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The finished answer. ``found`` is False when the documents hold nothing relevant."""

    question: str
    text: str
    found: bool
    sources: tuple[Source, ...]
    stop_reason: StopReason
    timings: tuple[StageTime, ...]
    tokens: TokenCounts
    model: str
    pending_count: int  # chunks not yet searchable by meaning
    notes: tuple[str, ...]  # what was left out or went another way, in sentences
    instant: tuple[InstantSentence, ...] = ()  # shown while the model was at work, or all there is
    sentences: tuple[AnswerSentence, ...] = ()  # of what a model wrote, in order; none for what it did not write
    thought: str = ""  # of a reasoning model; no part of the text
    messages: tuple[Message, ...] = ()  # the conversation as the model has it: what a Turn goes on from
    prefill: Prefill | None = None
    plan: Plan | None = None  # None of an answer that was cancelled before there was one
    probability: float | None = None  # that there is anything about the question; None where that was not judged
    exited_early: bool = False  # the words were sure, so that no vectors were searched
    selection: SelectionReport | None = None  # None where there was nothing to choose from
    nearest: tuple[Hit, ...] = ()  # where nothing was found: what is nearest to it, and answers nothing
    marks: tuple[tuple[int, int], ...] = ()  # as of its Prompt: with the messages, what it takes to go on writing it
    trace: Trace | None = None  # how it came about; None of one that was kept before there were any

    @property
    def can_go_on(self) -> bool:
        """Whether a model was stopped, or ran out of room, while it wrote what can be continued."""
        return bool(self.messages) and self.stop_reason in ("cancelled", "length")

    @property
    def unfinished(self) -> Unfinished:
        """What it takes to go on writing it."""
        return Unfinished(messages=self.messages, sources=self.sources, marks=self.marks, instant=self.instant)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An answer that stopped before its end: ``messages`` end with what the model has written of it."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    marks: tuple[tuple[int, int], ...]
    instant: tuple[InstantSentence, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of the conversation and its answer. ``messages`` is the conversation as the model has it,
    this answer included: what is asked next is put behind it, so that nothing of it is computed again."""

    question: str
    answer: str
    messages: tuple[Message, ...] = ()
    cited_chunks: tuple[int, ...] = ()  # ids of the chunks that the answer rests on


@dataclass(frozen=True, slots=True)
class InstantSentence:
    """A sentence of a source, word for word: ``text`` stands in the document at ``start`` to ``end``."""

    text: str
    source: int  # number of the source
    start: int
    end: int


Support = Literal["supported", "unsupported", "not_checked"]


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """What code found out about one sentence of an answer, ``answer.text[start:end]``."""

    start: int
    end: int
    sources: tuple[int, ...]  # numbers of the sources that it rests on, best first
    support: Support
    reason: str  # why it is unsupported or was not checked, in a sentence; "" when it is supported


# events of the ask flow, in the order in which they come


@dataclass(frozen=True, slots=True)
class PlanMade:
    plan: Plan


@dataclass(frozen=True, slots=True)
class HitsFound:
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class InstantAnswer:
    """What the documents themselves say: there before the chat model has read anything."""

    sentences: tuple[InstantSentence, ...]  # best first
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class PromptReady:
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """The next piece of the answer; all of them joined are the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """The next piece of what a reasoning model thinks before it answers; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerDone:
    answer: Answer


AskEvent = PlanMade | HitsFound | InstantAnswer | PromptReady | ThoughtDelta | AnswerDelta | AnswerDone
