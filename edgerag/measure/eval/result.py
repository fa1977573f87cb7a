"""The result of one evaluation, as it is kept in a file: figures, every question, and what they depend on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.measure.eval.answers import AnswerFigures
from edgerag.measure.eval.figures import total_figures
from edgerag.measure.eval.run import QuestionResult, StageFigures

FORMAT = 1
_DIGITS = 6  # of figures of single questions; more is noise of the last bit


@dataclass(frozen=True, slots=True)
class Result:
    """``about`` says what was judged and how: set, half, documents, models, settings, machine."""

    about: Mapping[str, Any]
    questions: tuple[QuestionResult, ...]

    @property
    def fingerprint(self) -> str:
        return str(self.about["fingerprint"])


def result_record(result: Result, *, per_question: bool) -> dict[str, Any]:
    """Values for JSON."""
    record = {"format": FORMAT, **result.about, "figures": total_figures(result.questions)}
    if per_question:
        record["questions"] = [_rounded(dataclasses.asdict(question)) for question in result.questions]
    return record


def read_result(file: Path) -> Result:
    """A result with its questions. Raises UsageError for a file that is none."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{str(file)!r} cannot be read as a result: {error}.") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or "questions" not in record:
        raise UsageError(
            f"{str(file)!r} is no result with its questions.",
            remedy="Give result.json of a folder that `edgerag eval SET --out FOLDER` wrote.",
        )
    try:
        questions = tuple(_question(item) for item in record["questions"])
        about = {key: value for key, value in record.items() if key not in ("format", "figures", "questions")}
        result = Result(about, questions)
        _ = (result.fingerprint, about["set"], about["half"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"{str(file)!r} is damaged: {error}.", remedy="Run `edgerag eval` again.") from error
    return result


def _question(item: Mapping[str, Any]) -> QuestionResult:
    stages = {name: StageFigures(**stage) for name, stage in item["stages"].items()}
    answer = None if item["answer"] is None else AnswerFigures(**item["answer"])
    return QuestionResult(**{**item, "stages": stages, "answer": answer, "notes": tuple(item["notes"])})


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(item) for item in value]
    return value
