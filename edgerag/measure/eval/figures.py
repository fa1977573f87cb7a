"""What the results of single questions come to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from edgerag.measure.eval.answers import AnswerFigures
from edgerag.measure.eval.metrics import mean, percentile
from edgerag.measure.eval.run import OWN, QuestionResult, stage_names

_CURVE_RANKS = 20  # as far as a curve of hit@k is drawn
_PERCENTILES = (50, 95, 99)
_MOST_NOTES = 5
ANSWER_MEASURES: Mapping[str, Callable[[AnswerFigures], float | None]] = {
    "exact_match": lambda answer: answer.exact,
    "f1": lambda answer: answer.f1,
    "holds_gold": lambda answer: answer.holds,
    "sources_hold_gold": lambda answer: answer.sources_hold,
    "citation_precision": lambda answer: answer.citation_precision,
    "citation_recall": lambda answer: answer.citation_recall,
}


def total_figures(results: Sequence[QuestionResult]) -> dict[str, Any]:
    """Values for JSON, by name: ``stages``, ``hit_curve``, ``refusal``, ``answers``, ``latency_ms``, ``notes``."""
    judged = [result for result in results if result.stages]
    names = stage_names(judged)
    return {
        "questions": len(results),
        "judged": len(judged),
        "stages": {
            name: _means(result.stages[name].figures for result in judged if name in result.stages) for name in names
        },
        "hit_curve": {
            name: [
                _rounded(mean([_within(result, name, rank) for result in judged]))
                for rank in range(1, _CURVE_RANKS + 1)
            ]
            for name in names
        },
        "refusal": refusal_figures(results),
        "answers": answer_means(results),
        "latency_ms": latency_figures(results),
        "notes": dict(Counter(note for result in results for note in result.notes).most_common(_MOST_NOTES)),
    }


def refusal_figures(results: Sequence[QuestionResult]) -> dict[str, Any]:
    """The two errors: refused though the answer is there, answered though it is not. None where nothing was asked."""
    own = [result for result in results if result.group == OWN]
    groups = dict.fromkeys(result.group for result in results if result.group != OWN)
    return {
        "answerable": sum(result.answerable for result in own),
        "answerable_refused": _share(not result.found for result in own if result.answerable),
        "unanswerable": sum(not result.answerable for result in own),
        "unanswerable_answered": _share(result.found for result in own if not result.answerable),
        "foreign": {
            group: {
                "questions": sum(result.group == group for result in results),
                "answered": _share(result.found for result in results if result.group == group),
            }
            for group in groups
        },
    }


def answer_means(results: Sequence[QuestionResult]) -> dict[str, float]:
    """Means over the answerable questions to which a measure applies; a refusal counts as an empty answer."""
    answers = [result.answer for result in results if result.answer is not None]
    known = {name: [v for a in answers if (v := value(a)) is not None] for name, value in ANSWER_MEASURES.items()}
    return {name: _rounded(mean(values)) for name, values in known.items() if values}


def answer_value(result: QuestionResult, name: str) -> float | None:
    """One of the measures of :func:`answer_means` of one question; None where it does not apply."""
    return None if result.answer is None else ANSWER_MEASURES[name](result.answer)


def latency_figures(results: Sequence[QuestionResult]) -> dict[str, dict[str, float]]:
    """Milliseconds by stage, in the order of the flow, over the set's own questions that came to it."""
    own = [result for result in results if result.group == OWN]
    figures = {}
    for name in dict.fromkeys(name for result in own for name in result.seconds):
        values = [result.seconds[name] * 1000 for result in own if name in result.seconds]
        figures[name] = {f"p{percent}": round(percentile(values, percent), 3) for percent in _PERCENTILES}
    return figures


def _means(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    rows = list(figures)
    return {name: _rounded(mean([row[name] for row in rows])) for name in rows[0]} if rows else {}


def _within(result: QuestionResult, stage: str, rank: int) -> float:
    first = result.stages[stage].first_rank if stage in result.stages else None
    return float(first is not None and first <= rank)


def _share(flags: Iterable[bool]) -> float | None:
    values = [float(flag) for flag in flags]
    return _rounded(mean(values)) if values else None


def _rounded(value: float) -> float:
    return round(value, 4)
