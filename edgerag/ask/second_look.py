"""The best candidates are read once more by a model that sees question and passage together.

A reranker or the chat model (chat_judges.py) judges one passage after the other, best first, as many as fit into a
time. What it says is added to what the features said, as log odds; passages that were not looked at keep their order
behind.

How many fit is told by the clock for a model's first questions, and from then on by what a passage took in these
(remembered per model and machine), with some time to spare, so that the same question gives the same hits; the clock
then only ends a look that takes far longer. Whatever keeps the model from judging leaves the order as it was, and is
said.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from edgerag.ask.rank import RERANKED, Ranked
from edgerag.ask.waiting import start, wait
from edgerag.config import RetrievalSettings
from edgerag.errors import ModelError
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import CancelCheck, Hit, Judgement, PassageCost, Plan, Reranker, SecondLookBy, SecondLookReport

# What the model's log odds count for beside those of the features, where the setting does not say: see
# docs/decisions/063. Of a chat model, by bench/second_look.py; a reranker was trained for nothing else.
WEIGHTS: dict[SecondLookBy, float] = {"reranker": 1.0, "likelihood": 0.5, "yes_no": 0.1}
# Of the time, so much is planned for. Passages differ in length, and what was planned shall fit every time.
_PLANNED_SHARE = 0.8
# What a passage takes is learned from so many questions. The shortest time counts: another program only lengthens it.
LEARNED_FROM = 5
# Questions for which fewer passages were read do not count: a machine that was busy then would be believed for ever.
_LEAST_TIMED = 3
# After that it is learned anew when a passage takes less than such a part of it: another file has that name now. Longer
# times change nothing, as the clock ends a look in any case.
_SHORTER = 1 / 3
_LEAST_SHARE = 1e-30  # a probability that became 0 in float


class Costs(Protocol):
    """What is remembered of how long models take for a passage, by their names."""

    def find(self, name: str) -> PassageCost | None: ...

    def keep(self, name: str, cost: PassageCost) -> None: ...


@dataclass(frozen=True, slots=True)
class SecondLook:
    """Who looks, and what is remembered of the time that takes. ``reranker`` may wait for a model to load."""

    by: SecondLookBy
    reranker: Callable[[], Reranker]
    costs: Costs


def look_again(
    plan: Plan,
    ranked: Ranked,
    *,
    second_look: SecondLook | None,
    settings: RetrievalSettings,
    stopwatch: Stopwatch,
    cancelled: CancelCheck,
    clock: Callable[[], float] = time.perf_counter,
) -> Ranked:
    """``ranked`` with the first hits in the order of both judgements. Raises Cancelled."""
    # An exact string is found or not: no model knows part numbers better.
    if second_look is None or plan.kind == "identifier":
        return ranked
    most = min(settings.second_look_count, RERANKED)
    candidates = [hit for hit in ranked.hits[:most] if hit.scores.reranked is not None]
    if len(candidates) < 2:  # there is nothing to put in order
        return ranked
    try:
        with stopwatch.measure("model_load"):
            reranker = wait(start(second_look.reranker, name="reranker-supplier"), cancelled)
        with stopwatch.measure("second_look") as facts:
            # A chat model takes another time for each way to judge.
            name = f"{reranker.name} by {second_look.by}"
            looked = _look(plan.question, candidates, reranker, name, second_look.costs, settings, cancelled, clock)
            facts |= {"model": reranker.name, "read": len(looked.judgements), "candidates": len(candidates)}
    except ModelError as error:
        return replace(ranked, notes=(*ranked.notes, f"The passages were not looked at a second time: {error}"))
    weight = WEIGHTS[second_look.by] if settings.second_look_weight is None else settings.second_look_weight
    count = len(looked.judgements)
    hits = (*fused(candidates[:count], looked.judgements, weight=weight), *candidates[count:])
    rest = ranked.hits[len(candidates) :]
    report = SecondLookReport(reranker.name, count, len(candidates), looked.seconds, settings.second_look_ms)
    return replace(ranked, hits=(*hits, *rest), notes=(*ranked.notes, _note(report)), second_look=report)


def fused(hits: Sequence[Hit], judgements: Sequence[Judgement], *, weight: float) -> tuple[Hit, ...]:
    """``hits`` by the sum of two logarithms of odds: what the features gave each, and ``weight`` times what the model
    did. Equal ones keep their order. Pure."""
    best = max((judgement.log_odds for judgement in judgements), default=0.0)
    shares = [math.exp(judgement.log_odds - best) for judgement in judgements]
    judged = []
    for hit, judgement, share in zip(hits, judgements, shares, strict=True):
        score = math.log(max(hit.scores.reranked or 0.0, _LEAST_SHARE)) + weight * judgement.log_odds
        judged.append((score, replace(hit, scores=replace(hit.scores, second_look=share / sum(shares)))))
    return tuple(hit for _, hit in sorted(judged, key=lambda pair: -pair[0]))


def planned_count(count: int, *, budget_s: float, cost: PassageCost | None) -> int:
    """How many of ``count`` passages are looked at: all where there is no budget, or where too little is known of what
    one takes and the clock has to tell. None rather than one, which has nothing to be put in order with. Pure."""
    if not budget_s or cost is None or cost.questions < LEARNED_FROM:
        return count
    fitting = min(count, int(_PLANNED_SHARE * budget_s / cost.seconds))
    return fitting if fitting > 1 else 0


def learned_cost(known: PassageCost | None, measured_s: float) -> PassageCost:
    """What is known of a passage's time after one more question. Pure."""
    if known is None or measured_s < _SHORTER * known.seconds:
        return PassageCost(measured_s, questions=1)
    if known.questions >= LEARNED_FROM:
        return known
    return PassageCost(min(known.seconds, measured_s), known.questions + 1)


@dataclass(frozen=True, slots=True)
class _Looked:
    judgements: tuple[Judgement, ...]  # of the first candidates, in their order
    seconds: float


def _look(
    question: str,
    candidates: Sequence[Hit],
    reranker: Reranker,
    cost_name: str,
    costs: Costs,
    settings: RetrievalSettings,
    cancelled: CancelCheck,
    clock: Callable[[], float],
) -> _Looked:
    budget_s = settings.second_look_ms / 1000
    known = costs.find(cost_name)
    planned = planned_count(len(candidates), budget_s=budget_s, cost=known)
    is_settled = known is not None and known.questions >= LEARNED_FROM
    judgements: list[Judgement] = []
    times: list[float] = []  # of those that had to be computed whole
    began = before = clock()
    longest = 0.0
    for hit in candidates[:planned]:
        # Where it was not planned for, one more is begun only where the longest so far would fit.
        needed = 0.0 if is_settled else longest
        if budget_s and before - began + needed >= budget_s:
            break
        judgement = reranker.judge(question, hit.chunk, cancelled=cancelled)
        now = clock()
        longest = max(longest, now - before)
        if judgement.is_whole:
            times.append(now - before)
        judgements.append(judgement)
        before = now
    measured_s = statistics.median(times) if len(times) >= _LEAST_TIMED else 0.0
    if measured_s > 0 and (learned := learned_cost(known, measured_s)) != known:
        costs.keep(cost_name, learned)
    return _Looked(tuple(judgements), before - began)


def _note(report: SecondLookReport) -> str:
    count, most = report.read_count, report.candidate_count
    read = f"{'all' if count == most else count} of the first {most} passages were read"
    limit = "" if count == most else f"; more do not fit in {report.limit_ms} ms (retrieval.second_look_ms)"
    return f"Second look: {read} by {report.model} in {report.seconds * 1000:.0f} ms{limit}."
