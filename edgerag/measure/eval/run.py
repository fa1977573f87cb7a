"""Asks the questions of a set and judges what comes back. Same library, same settings: same figures, but for times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.errors import Cancelled, UsageError
from edgerag.measure.eval.answers import AnswerFigures, answer_figures
from edgerag.measure.eval.corpus import path_of
from edgerag.measure.eval.matching import Target, even, fits, ranking
from edgerag.measure.eval.metrics import first_rank, ranking_figures
from edgerag.measure.eval.sets import Expected, Question
from edgerag.measure.eval.stages import LEGS, SOURCES, Asked, Subject, ask_stage_by_stage
from edgerag.types import CancelCheck

if TYPE_CHECKING:
    from edgerag.index.library import Library

OWN = ""  # the group of a set's own questions


@dataclass(frozen=True, slots=True)
class StageFigures:
    """One stage of one question: rank of the first that is relevant, and the figures of the ranking."""

    first_rank: int | None
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question, judged. ``stages`` and ``answer`` are of answerable ones about their own documents."""

    id: str
    text: str
    group: str  # OWN, or the name of the set it was taken from
    answerable: bool  # from these documents
    found: bool  # whether it was answered
    stages: Mapping[str, StageFigures]
    answer_text: str
    answer: AnswerFigures | None
    stop_reason: str
    seconds: Mapping[str, float]
    notes: tuple[str, ...]


def judge(
    questions: Sequence[Question],
    *,
    subject: Subject,
    targets: Mapping[str, Sequence[Target]],
    group: str,
    progress: Callable[[int, int], None],
    cancelled: CancelCheck,
) -> list[QuestionResult]:
    """Asks each question once. ``targets`` by question id; questions of another group than OWN have none.

    Raises Cancelled, EdgeragError.
    """
    results = []
    for number, question in enumerate(questions):
        if cancelled():
            raise Cancelled("The evaluation was cancelled.")
        progress(number, len(questions))
        asked = ask_stage_by_stage(question.text, subject, cancelled=cancelled)
        if asked.answer.stop_reason == "cancelled":
            raise Cancelled("The evaluation was cancelled.")
        written = subject.generation.mode == "model"
        results.append(_result(question, asked, targets.get(question.id, ()), group, written=written))
    progress(len(questions), len(questions))
    return results


def warm_up(subject: Subject, question: str, *, cancelled: CancelCheck) -> None:
    """Asks once without looking, so that no figure holds the loading of a model."""
    ask_stage_by_stage(question, subject, cancelled=cancelled)


def targets_in_corpus(questions: Sequence[Question]) -> dict[str, tuple[Target, ...]]:
    """What is expected of each question, where the library is made of the set's own documents."""
    return {
        question.id: tuple(
            _target(expected, frozenset({path_of(expected.document)}) if expected.document else frozenset())
            for expected in question.expected
        )
        for question in questions
    }


def targets_in_library(questions: Sequence[Question], library: Library) -> dict[str, tuple[Target, ...]]:
    """The same for a library of the user's. Raises UsageError for an expected file that it does not hold."""
    paths = [document.path for document in library.documents()]
    named: dict[str, frozenset[str]] = {"": frozenset()}
    found: dict[str, tuple[Target, ...]] = {}
    for question in questions:
        for expected in question.expected:
            if expected.document not in named:
                fitting = frozenset(path for path in paths if fits(path, expected.document))
                if not fitting:
                    raise UsageError(
                        f"{question.origin}: the library holds no document {expected.document!r}.",
                        remedy="`edgerag status --files` lists them. Name a file by its path or the end of it.",
                    )
                named[expected.document] = fitting
        found[question.id] = tuple(_target(expected, named[expected.document]) for expected in question.expected)
    return found


def _target(expected: Expected, paths: frozenset[str]) -> Target:
    return Target(paths, expected.page, even(expected.text), expected.grade)


def _result(
    question: Question, asked: Asked, targets: Sequence[Target], group: str, *, written: bool
) -> QuestionResult:
    answerable = group == OWN and question.answerable
    stages = {}
    if answerable and targets:
        grades = [target.grade for target in targets]
        for name, found in asked.stages.items():
            ranks = ranking(found, targets)
            stages[name] = StageFigures(first_rank(ranks), ranking_figures(ranks, grades))
    return QuestionResult(
        id=question.id,
        text=question.text,
        group=group,
        answerable=answerable,
        found=asked.answer.found,
        stages=stages,
        answer_text=asked.answer.text,
        answer=answer_figures(
            asked.answer.text if asked.answer.found else "",
            written=written,
            sources=asked.sources,
            gold=question.answers,
            targets=targets,
        )
        if answerable
        else None,
        stop_reason=asked.answer.stop_reason,
        seconds=asked.seconds,
        notes=asked.answer.notes,
    )


def stage_names(results: Sequence[QuestionResult]) -> tuple[str, ...]:
    """The stages in the order of the flow. One that never changed what the stage before it had is left out: it is
    switched off, or only passes the hits on."""
    names = list(dict.fromkeys(name for result in results for name in result.stages))
    kept = [name for name in names if name in LEGS]
    for name in names:
        if name not in (*LEGS, SOURCES) and (
            len(kept) == len(LEGS) or any(result.stages[name] != result.stages[kept[-1]] for result in results)
        ):
            kept.append(name)
    return (*kept, SOURCES) if SOURCES in names else tuple(kept)
