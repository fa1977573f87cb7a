"""Forecasts of a session: what is chosen depends on the calibration that it began with, and on nothing since."""

from __future__ import annotations

import dataclasses
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.ask.test_latency import answers, seen

from edgerag.ask.latency import FEWEST, WINDOW
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.engine.tuning.latency_record import LatencyRecords
from edgerag.forecasts import FOLDER, Forecasts
from edgerag.types import Answer, AnswerDone, AskEvent, Plan, PlanMade, Prefill, StageTime, TokenCounts

PLAN = Plan("q", "latin", (), 4, 40, 1.0, 1.0, 80)
ANSWER = Answer(
    question="q",
    text="It is 40 Nm.",
    found=True,
    sources=(),
    stop_reason="end",
    timings=(
        StageTime("vector", 0.01),
        StageTime("first_token", 0.5),
        StageTime("generate", 0.4),
        StageTime("total", 1.0),
    ),
    tokens=TokenCounts(prompt=800, answer=40),
    model="small",
    pending_count=0,
    notes=(),
    prefill=Prefill(0, 0, 0, 800, 0.5),
    plan=PLAN,
)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A home in which some answers were kept."""
    LatencyRecords(tmp_path / FOLDER, most=WINDOW).observe("small", *answers(60))
    return tmp_path


def watched(forecasts: Forecasts, answer: Answer = ANSWER, note: str = "") -> list[AskEvent]:
    def events() -> Iterator[AskEvent]:
        yield PlanMade(PLAN)
        yield AnswerDone(answer)

    return list(forecasts.watched(events(), retrieval=RetrievalSettings(), generation=GenerationSettings(), note=note))


def test_without_a_calibration_nothing_is_forecast_and_nothing_left_out(known: Path) -> None:
    forecasts = Forecasts(known, "small")
    retrieval = RetrievalSettings()
    assert forecasts.within_target(retrieval, GenerationSettings(target_s=0.1)) == (retrieval, "")
    made, done = watched(forecasts)
    assert isinstance(made, PlanMade) and made.plan.forecast is None
    assert isinstance(done, AnswerDone) and done.answer == ANSWER


def test_answers_are_kept_and_do_not_change_what_is_chosen(known: Path) -> None:
    Forecasts(known, "small").recalibrate()
    forecasts = Forecasts(known, "small")
    target = GenerationSettings(target_s=3.0)
    first = forecasts.within_target(RetrievalSettings(), target)
    assert first[0].source_count < RetrievalSettings().source_count and "generation.target_s" in first[1]
    slow = dataclasses.replace(ANSWER, timings=(StageTime("first_token", 500.0), StageTime("total", 500.0)))
    for _ in range(FEWEST):
        watched(forecasts, slow)
    assert forecasts.within_target(RetrievalSettings(), target) == first
    assert Forecasts(known, "small").within_target(RetrievalSettings(), target) == first, "and after a restart"
    assert len(LatencyRecords(known / FOLDER, most=WINDOW).find("small").window) == 60 + FEWEST
    Forecasts(known, "small").recalibrate()
    assert Forecasts(known, "small").within_target(RetrievalSettings(), target) != first


def test_the_forecast_stands_in_the_plan_and_beside_the_answer(known: Path) -> None:
    Forecasts(known, "small").recalibrate()
    made, done = watched(Forecasts(known, "small"), note="At most 4 sources.")
    assert isinstance(made, PlanMade) and made.plan.forecast is not None
    assert made.plan.forecast.source_count == PLAN.source_count and made.plan.forecast.seconds > 0
    assert isinstance(done, AnswerDone) and done.answer.plan == made.plan
    assert "At most 4 sources." in done.answer.notes


def test_a_target_that_cannot_be_met_is_said(known: Path) -> None:
    forecasts = Forecasts(known, "small")
    forecasts.recalibrate()
    retrieval, note = forecasts.within_target(
        RetrievalSettings(second_look="likelihood"), GenerationSettings(target_s=0.01)
    )
    assert retrieval.source_count == 1 and retrieval.second_look == "off"
    assert "Even so" in note and "second looks" in note


def test_passages_are_exact_where_there_is_time_for_it(known: Path) -> None:
    forecasts = Forecasts(known, "small")
    retrieval = RetrievalSettings()
    assert forecasts.kept_states(retrieval, GenerationSettings(target_s=60)) == "auto", "nothing is known yet"
    forecasts.recalibrate()
    assert forecasts.kept_states(retrieval, GenerationSettings(target_s=60)) == "exact"
    assert forecasts.kept_states(retrieval, GenerationSettings(target_s=0.5)) == "auto"
    assert forecasts.kept_states(retrieval, GenerationSettings()) == "auto"
    assert forecasts.kept_states(retrieval, GenerationSettings(target_s=60, kv="spliced")) == "spliced"


def test_too_few_answers_are_helped_by_those_of_a_bench(tmp_path: Path) -> None:
    forecasts = Forecasts(tmp_path, "small")
    assert forecasts.recalibrate() == ()
    (calibration,) = forecasts.recalibrate(tuple(answers(20)))
    assert calibration.profile == "chat" and calibration.count == 20


def test_what_is_kept_is_private_and_holds_numbers_only(known: Path) -> None:
    watched(Forecasts(known, "small"))
    assert stat.S_IMODE((known / FOLDER).stat().st_mode) == 0o700
    text = (known / FOLDER / "latency.json").read_text(encoding="utf-8")
    assert "40 Nm" not in text and json.loads(text)


@pytest.mark.parametrize(
    "answer",
    [
        dataclasses.replace(ANSWER, prefill=None),
        dataclasses.replace(ANSWER, stop_reason="cancelled"),
        dataclasses.replace(ANSWER, stop_reason="instant"),
    ],
)
def test_an_answer_that_no_model_wrote_to_its_end_tells_nothing(tmp_path: Path, answer: Answer) -> None:
    watched(Forecasts(tmp_path, "small"), answer)
    assert not (tmp_path / FOLDER).exists()


def test_the_oldest_go(tmp_path: Path) -> None:
    records = LatencyRecords(tmp_path / FOLDER, most=5)
    for count in range(1, 9):
        records.observe("small", seen(count))
    assert [each.source_count for each in records.find("small").window] == [4, 5, 6, 7, 8]


def test_a_damaged_file_is_begun_anew(known: Path) -> None:
    (known / FOLDER / "latency.json").write_text("{")
    assert LatencyRecords(known / FOLDER, most=5).find("small").window == ()
    watched(Forecasts(known, "small"))
    assert len(LatencyRecords(known / FOLDER, most=5).find("small").window) == 1
