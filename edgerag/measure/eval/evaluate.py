"""One evaluation from its questions to its result: library, warm-up, questions, and what all of it depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edgerag import __version__
from edgerag.config import Settings
from edgerag.errors import UsageError
from edgerag.measure.eval.corpus import Passages, corpus_folder, fill, is_made
from edgerag.measure.eval.result import Result
from edgerag.measure.eval.run import OWN, judge, targets_in_corpus, targets_in_library, warm_up
from edgerag.measure.eval.sets import Half, QuestionSet, evenly, half_of
from edgerag.measure.eval.stages import Subject
from edgerag.measure.facts import machine_facts
from edgerag.types import CancelCheck, Embedder, EmbedderIdentity, IngestProgress

if TYPE_CHECKING:
    from edgerag.index.library import Library


class Workplace(Protocol):
    """What an evaluation needs of a session."""

    @property
    def settings(self) -> Settings: ...

    def over(self, folder: Path) -> Workplace:
        """The same models and settings over the library in ``folder``."""
        ...

    def subject(self) -> AbstractContextManager[Subject]:
        """The parts of the ask flow over the library in use."""
        ...

    def making(self) -> AbstractContextManager[tuple[Library, Callable[[], Embedder]]]:
        """The library in use, made if it is missing, and what embeds many passages."""
        ...

    def embedder_identity(self) -> EmbedderIdentity: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """``cache`` keeps the libraries of sets. ``own_library`` asks the one in use, whatever documents the set has."""

    cache: Path
    half: Half = "all"
    limit: int | None = None  # questions of each set
    passages: Passages = "chunked"
    answers: bool = False  # let the chat model write
    own_library: bool = False


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told how far it is."""

    ingesting: Callable[[IngestProgress], None]
    asking: Callable[[int, int], None]  # done, of so many


def evaluate(
    questions: QuestionSet,
    workplace: Workplace,
    *,
    foreign: Sequence[QuestionSet] = (),
    options: Options,
    watcher: Watcher,
    cancelled: CancelCheck,
) -> Result:
    """Asks the questions of the set, and those of ``foreign`` sets, over the set's documents.

    Raises Cancelled, EdgeragError.
    """
    if options.answers and workplace.settings.generation.mode == "instant":
        raise UsageError(
            "--answers lets the chat model write, and generation.mode is instant.", remedy="Leave out --no-llm."
        )
    own = not questions.texts or options.own_library
    chosen = evenly(half_of(questions.questions, options.half), options.limit)
    if not chosen:
        raise UsageError(f"The set {questions.name!r} has no questions in this half.", remedy="Use --half all.")
    asked = {OWN: chosen} | {
        other.name: evenly(half_of(other.questions, options.half), options.limit) for other in foreign
    }
    if len(asked) <= len(foreign):
        raise UsageError("Two sets of --foreign have the same name.", remedy="Rename one of them.")
    with _subject(questions, workplace, own, options, watcher, cancelled) as subject:
        targets = targets_in_library(chosen, subject.library) if own else targets_in_corpus(chosen)
        instant = dataclasses.replace(subject, generation=dataclasses.replace(subject.generation, mode="instant"))
        judged = subject if options.answers else instant
        warm_up(instant, chosen[0].text, cancelled=cancelled)
        chat = judged.generator().name if options.answers else ""
        results = []
        for group, members in asked.items():
            results += judge(
                members,
                # What is asked of strangers is whether anything is found at all.
                subject=judged if group == OWN else instant,
                targets=targets if group == OWN else {},
                group=group,
                progress=watcher.asking,
                cancelled=cancelled,
            )
        about = _about(questions, workplace.settings, options, own=own, chat=chat, library=subject.library)
    return Result(about, tuple(results))


@contextmanager
def _subject(
    questions: QuestionSet,
    workplace: Workplace,
    own: bool,
    options: Options,
    watcher: Watcher,
    cancelled: CancelCheck,
) -> Iterator[Subject]:
    if own:
        with workplace.subject() as subject:
            yield subject
        return
    chunks = workplace.settings.chunks
    folder = corpus_folder(
        options.cache, questions, workplace.embedder_identity(), passages=options.passages, chunks=chunks
    )
    with closing(workplace.over(folder)) as there:
        if not is_made(folder):
            with there.making() as (library, embedder):
                fill(
                    library,
                    questions.texts,
                    passages=options.passages,
                    chunks=chunks,
                    embedder=embedder,
                    progress=watcher.ingesting,
                    cancelled=cancelled,
                )
        with there.subject() as subject:
            yield subject


def _about(
    questions: QuestionSet, settings: Settings, options: Options, *, own: bool, chat: str, library: Library
) -> Mapping[str, Any]:
    parts: dict[str, Any] = {"retrieval": settings.retrieval, "chunks": settings.chunks}
    if options.answers:
        parts |= {"generation": settings.generation}
    return {
        "version": __version__,
        "set": questions.name,
        "fingerprint": questions.fingerprint,
        "half": options.half,
        "limit": options.limit,
        "passages": "library" if own else options.passages,
        "documents": len(library.documents()),
        "chunks": library.chunk_count(),
        "embedder": library.identity.name,
        "chat": chat,
        "settings": {name: dataclasses.asdict(part) for name, part in parts.items()},
        "set_notes": list(questions.notes),
        "machine": machine_facts(),
    }
