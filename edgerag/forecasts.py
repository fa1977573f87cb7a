"""The latency model at work for one session: records how long answers take, forecasts the next one, and keeps answers
within ``generation.target_s``.

What is chosen for a question (how many sources, how many second looks) depends on the settings and on the calibration
alone, and that is read once, when the first question is asked; only `bench ask --calibrate` changes it. So the same
question has the same hits and the same prompt however the machine felt in between (docs/decisions/097).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from edgerag.ask.latency import FEWEST, WINDOW, calibrate, choose, forecast, observation_of, profile_of
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.engine.tuning.latency_record import LatencyRecord, LatencyRecords
from edgerag.types import (
    AnswerDone,
    AskEvent,
    Calibration,
    Forecast,
    KvMode,
    Observation,
    Plan,
    PlanMade,
    Profile,
)

FOLDER = "latency"  # in the home
_PROFILES: tuple[Profile, ...] = ("chat", "report")


class Forecasts:
    """Of one chat model. Making one reads nothing."""

    def __init__(self, home: Path, model: str) -> None:
        self.model = model
        self._records = LatencyRecords(home / FOLDER, most=WINDOW)
        self._start: LatencyRecord | None = None

    def within_target(
        self, retrieval: RetrievalSettings, generation: GenerationSettings
    ) -> tuple[RetrievalSettings, str]:
        """``retrieval`` with no more sources and second looks than fit into ``generation.target_s``, and a note where
        that is fewer; unchanged where there is no target or nothing is known."""
        calibration = self._calibration(profile_of(broad=False, answer_tokens=generation.answer_tokens))
        if not generation.target_s or calibration is None:
            return retrieval, ""
        looks = _looks(retrieval)
        chosen = choose(
            calibration, target_s=generation.target_s, most_sources=retrieval.source_count, most_looked=looks
        )
        limit = f"{generation.target_s:g} s (generation.target_s)"
        left_out = []
        if chosen.source_count < retrieval.source_count:
            left_out.append(f"at most {chosen.source_count} of {retrieval.source_count} sources")
            retrieval = replace(retrieval, source_count=chosen.source_count)
        if chosen.looked_count < looks:
            left_out.append(f"{chosen.looked_count} of {looks} second looks")
            retrieval = replace(
                retrieval,
                second_look=retrieval.second_look if chosen.looked_count else "off",
                second_look_count=max(1, chosen.looked_count),
            )
        note = f"To answer within {limit}: {' and '.join(left_out)}." if left_out else ""
        if chosen.p95_s > generation.target_s:
            note = f"{note} Even so it may take {chosen.p95_s:.1f} s.".strip()
        return retrieval, note

    def kept_states(self, retrieval: RetrievalSettings, generation: GenerationSettings) -> KvMode:
        """``generation.kv``, but where it is "auto": "exact" if an answer with all of its prompt computed, as exact
        passages nearly always are, stays within ``generation.target_s``. Then there is no need to approximate."""
        calibration = self._calibration(profile_of(broad=False, answer_tokens=generation.answer_tokens))
        if generation.kv != "auto" or not generation.target_s or calibration is None:
            return generation.kv
        looks = _looks(retrieval)
        computed = forecast(calibration, source_count=retrieval.source_count, looked_count=looks, computed_share=1.0)
        return "exact" if computed.p95_s <= generation.target_s else "auto"

    def watched(
        self,
        events: Iterator[AskEvent],
        *,
        retrieval: RetrievalSettings,
        generation: GenerationSettings,
        note: str = "",
    ) -> Iterator[AskEvent]:
        """``events`` with the forecast in the plan; what the answer took is kept behind the last one."""
        looks = _looks(retrieval)
        for event in events:
            if isinstance(event, PlanMade):
                event = replace(event, plan=self._with_forecast(event.plan, looks, generation))
            if not isinstance(event, AnswerDone):
                yield event
                continue
            answer = event.answer
            if answer.plan is not None:
                answer = replace(answer, plan=self._with_forecast(answer.plan, looks, generation))
            yield replace(event, answer=replace(answer, notes=(*answer.notes, *filter(None, [note]))))
            observation = observation_of(answer, answer_tokens=generation.answer_tokens)
            if observation is not None and answer.model:
                self._records.observe(answer.model, observation)

    def recalibrate(self, others: tuple[Observation, ...] = ()) -> tuple[Calibration, ...]:
        """Fits the model anew to the last answers, and keeps that for sessions that begin from now on. ``others`` help
        where there are too few."""
        window = self._records.find(self.model).window
        found = []
        for profile in _PROFILES:
            own = [each for each in window if each.profile == profile]
            fitted = calibrate(own if len(own) >= FEWEST else [*others, *own], profile)
            found += [fitted] if fitted is not None else []
        self._start = self._records.calibrate(self.model, tuple(found))
        return tuple(found)

    def _with_forecast(self, plan: Plan, looks: int, generation: GenerationSettings) -> Plan:
        profile = profile_of(broad=plan.broad, answer_tokens=generation.answer_tokens)
        calibration = self._calibration(profile)
        return plan if calibration is None else replace(plan, forecast=_expected(calibration, plan, looks))

    def _calibration(self, profile: Profile) -> Calibration | None:
        if self._start is None:
            self._start = self._records.find(self.model) if self._records.has_calibrations else LatencyRecord()
        return next((one for one in self._start.calibrations if one.profile == profile), None)


def _looks(retrieval: RetrievalSettings) -> int:
    """Passages that a second look reads at most."""
    return retrieval.second_look_count if retrieval.second_look != "off" else 0


def _expected(calibration: Calibration, plan: Plan, looks: int) -> Forecast:
    return forecast(calibration, source_count=plan.source_count, looked_count=looks)
