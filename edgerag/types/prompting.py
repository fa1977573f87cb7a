"""What the chat model is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgerag.types.searching import Hit, Source


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message whose computed state is worth keeping: a chunk behind the line that introduces it."""

    header: str  # as it stands in this prompt: its number and title
    home_header: str  # as it would stand if it were the first of the first message
    text: str  # "": it stands in the library
    key: str  # names its state; "" keeps none
    chunk_id: int = 0

    def __str__(self) -> str:
        return self.header + self.text


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation sent to the chat model. Every part is plain text and can never
    become a control token; parts are tokenised apart so that their tokens can be re-used."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Passage, ...]


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """Where the text of a passage lies in a prompt, and what stands before it at home: behind the system message,
    as the first passage. Its state is computed there, and exact there; anywhere else it is an approximation."""

    key: str
    start: int  # of its text, in tokens; the header is before
    end: int
    home: tuple[int, ...]  # the tokens before it at home
    home_header_tokens: int = 0  # the last of them, which are kept with its state


@dataclass(frozen=True, slots=True)
class EncodedChat:
    """A conversation in a model's tokens."""

    tokens: tuple[int, ...]
    passages: tuple[PassageSpan, ...] = ()  # in their order
    opening: str = ""  # what the format writes last, before the reply; it may open a thought there


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given, already in tokens."""

    tokens: tuple[int, ...]
    passages: tuple[PassageSpan, ...]
    messages: tuple[Message, ...]  # what the tokens say
    sources: tuple[Source, ...]  # by number; in the prompt the best one stands last, next to the question
    marks: tuple[tuple[int, int], ...]  # (number that a source has in the prompt, number of the source)
    dropped: tuple[Hit, ...]  # hits for which there was no room, or no time
    shortened: tuple[int, ...]  # numbers of the sources of which only some sentences are given
    short_of_time: bool  # there would have been room for more
    reading_s: float | None  # that it will take, as expected; None where the speed is not known
    history_dropped: int  # turns of the conversation that did not fit
    answer_room: int  # tokens left for the answer
    question_cut: bool  # the question itself was longer than the context
    opening: str = ""  # what the chat format writes last, before the reply


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen; None leaves it to the model's file, and where that says nothing to the engine."""

    temperature: float | None  # 0 is greedy
    top_p: float | None
    repeat_penalty: float | None
    seed: int
    top_k: int | None = None  # 0 is all
    min_p: float | None = None


@dataclass(frozen=True, slots=True)
class PrefillBatch:
    """Tokens of a prompt that were computed together."""

    tokens: int
    start_s: float  # since the prefill began
    seconds: float


@dataclass(frozen=True, slots=True)
class StateRestore:
    """A saved state of a passage that was looked for; without ``tokens`` it was not there, or not worth restoring."""

    start_s: float  # since the prefill began
    seconds: float
    tokens: int = 0
    size_bytes: int = 0
    tier: str = ""  # where it was: "ram" or "disk"


@dataclass(frozen=True, slots=True)
class StateSave:
    """A state of a passage that was copied to be kept; writing it is the work of another thread."""

    start_s: float  # since the prefill began
    seconds: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Prefill:
    """How the prompt came into the model: what was there, what was restored, what had to be computed."""

    kept_tokens: int  # of the question before
    restored_tokens: int  # exactly as they would have been computed
    approximate_tokens: int  # in another place than they were computed in, whenever that was
    computed_tokens: int
    seconds: float
    notes: tuple[str, ...] = ()  # what went another way, in sentences
    approximate_spans: tuple[tuple[int, int], ...] = ()  # the approximate tokens, by their places in the prompt
    batches: tuple[PrefillBatch, ...] = ()
    restores: tuple[StateRestore, ...] = ()
    saves: tuple[StateSave, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenTiming:
    """Where the time of one token went, in nanoseconds. Of drafted tokens the first has the decoding of all."""

    sampling_ns: int
    decode_ns: int
    detokenise_ns: int


@dataclass(frozen=True, slots=True)
class Generated:
    """One step of generation. ``text`` is whole characters only and may be empty."""

    text: str
    token_count: int  # tokens decoded so far
    stop: Literal["end", "length", "cancelled"] | None  # set on the last one
    prefill: Prefill | None = None  # set on the first one
    timing: TokenTiming | None = None  # of the token that was decoded last, where it was measured
