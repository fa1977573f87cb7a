"""How an answer came about: what was found and what became of it, what the model was given, when what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgerag.types.searching import Hit, LeftOutWhy

if TYPE_CHECKING:
    from edgerag.types.prompting import Message

# What is counted while a stage runs.
Fact = bool | int | float | str

# What became of the vector leg: it was searched, has no weight for this question, was not needed as the words were
# sure, was not ready by its deadline, or could not be searched.
VectorLeg = Literal["searched", "no_weight", "words_sure", "late", "failed"]

# What became of a hit: a source; left out by the selection; a source for which the prompt had no room, or the model no
# time; too far down to be looked at; or nothing found was about the question.
HitOutcome = Literal["source", LeftOutWhy, "prompt_full", "no_time", "too_low", "refused"]


@dataclass(frozen=True, slots=True)
class StageSpan:
    """When one run of a stage was. Spans overlap where stages run beside each other or one in another."""

    stage: str
    start_s: float  # since the question was asked
    seconds: float
    facts: tuple[tuple[str, Fact], ...] = ()  # what was counted meanwhile, by name; never text of anybody


@dataclass(frozen=True, slots=True)
class TokenTime:
    """Where the time of one token of an answer went, in nanoseconds: ``present_ns`` is what whoever shows it took. Of
    drafted tokens the first has the decoding of all."""

    sampling_ns: int
    decode_ns: int
    detokenise_ns: int
    present_ns: int


@dataclass(frozen=True, slots=True)
class TracedHit:
    """A hit with its places, which count from 1."""

    hit: Hit
    fused_rank: int
    reranked_rank: int | None  # by the features alone; None for those that were not reranked
    probability: float | None  # that it is about the question; None where that was not judged
    outcome: HitOutcome
    source: int | None = None  # its number


@dataclass(frozen=True, slots=True)
class SecondLookReport:
    """What was read once more."""

    model: str
    read_count: int
    candidate_count: int
    seconds: float
    limit_ms: int  # 0: none


PromptPartKind = Literal["instruction", "earlier", "source", "best_words", "question", "written", "format"]


@dataclass(frozen=True, slots=True)
class PromptPart:
    """What one part takes of the prompt, in the model's own tokens."""

    kind: PromptPartKind
    tokens: int
    source: int | None = None  # its number
    approximate_tokens: int = 0  # of them computed in another place than they stand in


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """The context of the model by parts, in the order in which they are named."""

    parts: tuple[PromptPart, ...]
    context_tokens: int
    answer_room: int

    @property
    def prompt_tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def free_tokens(self) -> int:
        """Of the context, behind prompt and answer."""
        return max(0, self.context_tokens - self.prompt_tokens - self.answer_room)


@dataclass(frozen=True, slots=True)
class Trace:
    """What explains one answer beside what the answer itself says."""

    spans: tuple[StageSpan, ...]  # by their beginning
    token_ns: tuple[int, ...] = ()  # when each token of the answer came, in nanoseconds since the question was asked
    hits: tuple[TracedHit, ...] = ()  # in their order after rerank and second look
    vector_leg: VectorLeg | None = None  # None where nothing was searched
    second_look: SecondLookReport | None = None
    budget: PromptBudget | None = None  # None without a prompt
    messages: tuple[Message, ...] = ()  # the prompt as it was
    began_ns: int = 0  # when the question was asked, in nanoseconds since 1970
    tokens: tuple[TokenTime, ...] = ()  # as many as ``token_ns`` where the model measures, else none
