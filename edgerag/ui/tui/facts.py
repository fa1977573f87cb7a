"""What the status line knows, and how it is said."""

from __future__ import annotations

from dataclasses import dataclass

from edgerag.types import Answer, BringingUp, GenerationMode, LibraryStatus
from edgerag.ui.output import size


@dataclass(frozen=True, slots=True)
class Facts:
    """The state of model, library and machine as last looked at. ``known`` is False before the first look."""

    known: bool = False
    answers: GenerationMode = "model"  # what is to answer
    model: str = ""  # "" when there is no chat model
    chat_models: tuple[str, ...] = ()  # all that are at hand
    library_name: str = ""
    also: tuple[str, ...] = ()  # libraries that are asked together with it
    library: LibraryStatus | None = None
    resident_bytes: int = 0
    last_answer: Answer | None = None
    upgrade: BringingUp | None = None  # while a library of an older version is brought up

    @property
    def has_documents(self) -> bool:
        return self.library is not None and self.library.document_count > 0

    @property
    def ready(self) -> bool:
        return (bool(self.model) or self.answers == "instant") and self.has_documents


def model_figure(facts: Facts) -> str:
    return facts.model or ("no model" if facts.answers == "model" else "without a model")


def library_figure(facts: Facts) -> str:
    """``default: 112 documents, 2,310 chunks, 12 pending``"""
    library = facts.library
    also = f", and {', '.join(facts.also)}" if facts.also else ""
    if library is None:
        return f"{facts.library_name}: no documents{also}"
    figure = (
        f"{facts.library_name}: {counted(library.document_count, 'document')}, {counted(library.chunk_count, 'chunk')}"
    )
    return (f"{figure}, {library.pending_count:,} pending" if library.pending_count else figure) + also


def short_library_figure(facts: Facts) -> str:
    """``112 docs, 12 pending``"""
    library = facts.library
    if library is None:
        return "no documents"
    figure = f"{library.document_count:,} docs/{library.chunk_count:,} chunks"
    return f"{figure} ({library.pending_count:,} pending)" if library.pending_count else figure


def memory_figure(facts: Facts) -> str:
    return size(facts.resident_bytes)


def index_figure(facts: Facts) -> str:
    """``index 12.0 of 256.0 MB``: the part of the index that is in memory, and its ceiling."""
    library = facts.library
    return f"index {size(library.resident_bytes)} of {size(library.budget_bytes)}" if library else ""


def timing_figure(answer: Answer | None) -> str:
    """``first token 0.31 s · 74 tok/s · 1.6 s``"""
    if answer is None:
        return ""
    seconds = {time.stage: time.seconds for time in answer.timings}
    parts = []
    if "first_token" in seconds:
        # As the user waited for it: everything up to the first token, search and loading included.
        waited = seconds["total"] - seconds.get("generate", 0.0)
        parts.append(f"first token {waited:.2f} s")
    if answer.tokens.answer and seconds.get("generate"):
        parts.append(f"{answer.tokens.answer / seconds['generate']:.0f} tok/s")
    if "total" in seconds:
        parts.append(f"{seconds['total']:.1f} s")
    if answer.prefill is not None and answer.prefill.approximate_tokens:
        parts.append("passages spliced")  # an approximation is never silent
    return " · ".join(parts)


def counted(number: int, noun: str) -> str:
    """Such as 1 chunk, 2,000 chunks."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
