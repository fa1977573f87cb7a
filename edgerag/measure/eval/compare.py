"""Two results side by side: every measure that both have, question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edgerag.errors import UsageError
from edgerag.measure.eval.figures import ANSWER_MEASURES, answer_value
from edgerag.measure.eval.result import Result
from edgerag.measure.eval.run import OWN, QuestionResult, stage_names
from edgerag.measure.eval.significance import Difference, holm, paired

# One that looks at the first rank, one at the order of all, one at what is there at all.
RANKING_MEASURES = ("hit@1", "ndcg@10", "recall@10")
_SEED = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of both. ``p_together`` is the p-value as it counts among all rows (Holm)."""

    measure: str
    first: float
    second: float
    difference: Difference
    p_together: float


@dataclass(frozen=True, slots=True)
class Comparison:
    rows: tuple[Row, ...]
    questions: int  # that both have
    only_first: int
    only_second: int


def compare(first: Result, second: Result) -> Comparison:
    """The second beside the first. Raises UsageError when they are of different sets, or share no question."""
    if first.fingerprint != second.fingerprint:
        raise UsageError(
            f"The results are of different sets: {first.about['set']!r} and {second.about['set']!r}, or of one that "
            "was changed in between.",
            remedy="Run both on the same files.",
        )
    one, other = ({(q.group, q.id): q for q in result.questions} for result in (first, second))
    shared = [key for key in one if key in other]
    if not shared:
        raise UsageError("The results share no question.", remedy="Run both with the same --half and --limit.")
    pairs = [(one[key], other[key]) for key in shared]
    found = []
    for measure, value in _measures(pairs):
        values = [(a, b) for x, y in pairs if (a := value(x)) is not None and (b := value(y)) is not None]
        if values:
            before, after = ([pair[n] for pair in values] for n in (0, 1))
            found.append(
                (measure, sum(before) / len(before), sum(after) / len(after), paired(before, after, seed=_SEED))
            )
    together = holm([difference.p for _, _, _, difference in found])
    rows = tuple(Row(*each, p_together=p) for each, p in zip(found, together, strict=True))
    return Comparison(rows, len(shared), len(one) - len(shared), len(other) - len(shared))


def _measures(
    pairs: list[tuple[QuestionResult, QuestionResult]],
) -> Iterator[tuple[str, Callable[[QuestionResult], float | None]]]:
    """(name, how it is read from a question; None where it does not apply). Of refusals lower is better."""
    before, after = (stage_names([pair[n] for pair in pairs if pair[n].stages]) for n in (0, 1))
    for stage in before:
        if stage in after:
            for measure in RANKING_MEASURES:
                yield f"{stage} {measure}", _of_stage(stage, measure)
    yield "answerable refused", lambda q: float(not q.found) if q.answerable else None
    yield "unanswerable answered", lambda q: float(q.found) if q.group == OWN and not q.answerable else None
    for group in dict.fromkeys(pair[0].group for pair in pairs if pair[0].group != OWN):
        yield f"{group} answered", _answered(group)
    for name in ANSWER_MEASURES:
        yield f"answer {name}", _of_answer(name)


def _of_stage(stage: str, measure: str) -> Callable[[QuestionResult], float | None]:
    return lambda question: question.stages[stage].figures[measure] if stage in question.stages else None


def _answered(group: str) -> Callable[[QuestionResult], float | None]:
    return lambda question: float(question.found) if question.group == group else None


def _of_answer(name: str) -> Callable[[QuestionResult], float | None]:
    return lambda question: answer_value(question, name)
