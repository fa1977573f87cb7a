"""Conversations as they are kept: threads, their exchanges, and the sources that their answers rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgerag.types.answers import Answer
    from edgerag.types.searching import Source

# "asked": the answer is being written, or its program was killed meanwhile. "stopped": it can go on.
ExchangeState = Literal["asked", "done", "stopped", "failed"]
# Of a kept source in the library of today: as it was; elsewhere in its document; its words or those around them are
# other ones; its document is not there.
SourceState = Literal["current", "moved", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class FilterText:
    """What a person typed to keep questions to some documents: entries with commas between them."""

    inside: str = ""
    tags: str = ""
    languages: str = ""
    types: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """A thread without its exchanges."""

    id: int
    library: str
    title: str
    began_ns: int  # since 1970
    changed_ns: int
    question_count: int  # in all branches


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question of a thread with its answer. Exchanges with the same parent are versions of one place in the
    conversation: asked again, or asked otherwise."""

    id: int
    thread_id: int
    parent_id: int | None  # the exchange that it follows
    asked_ns: int
    state: ExchangeState
    question: str
    text: str  # of the answer, as far as it came
    problem: str = ""  # of one that failed, in sentences
    where: FilterText = FilterText()
    # Without plan and scores; the text of its passages is left to the library ("").
    answer: Answer | None = None
    passage_hashes: tuple[str, ...] = ()  # SHA-256 of the passage of each source of the answer
    version: int = 1  # which of the versions it is
    versions: int = 1  # how many there are


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread with the exchanges of the branch that was last in use, oldest first."""

    head: ThreadHead
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class ThreadMatch:
    """A thread in which words were found, and where."""

    head: ThreadHead
    exchange_id: int | None  # None: in its title
    excerpt: str


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A kept source as it stands in the library now."""

    source: Source  # with the text of its passage, unless that is changed or gone
    state: SourceState


@dataclass(frozen=True, slots=True)
class NotKept:
    """An event beside those of an answer: what of it could not be saved, and why, in sentences."""

    reason: str
