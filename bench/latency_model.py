"""Does the latency model say how long answers take? Forecasts beside answers, the simulated tail beside the measured.

    python bench/latency_model.py [--chat MODEL] [--questions 120] [--json FILE]

Questions about made-up manuals are answered one after the other, every third of them one that was asked before, so that
some prompts find kept states; about half of them get four sources at most. The stages' distributions are fitted to the
odd answers and simulated, and the 95th percentile of the even ones is measured; and the other way round. With the
stages tied as they were seen, and as if they were independent.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from record import CHECKOUT, record

from edgerag.ask.latency import calibrate, expected_s
from edgerag.config import load_settings
from edgerag.engine.catalog import Catalog
from edgerag.measure.field.answering import answered
from edgerag.measure.field.scratch import THOROUGH, scratch
from edgerag.measure.latency_tail import STAGES, simulate
from edgerag.types import Observation

_FEWER_SOURCES = 4
_SEED = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges the latency model.")
    parser.add_argument("--chat", default="", help="a name from `models list`, or a file")
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    settings = load_settings(CHECKOUT / "config.toml", os.environ, {"models": {"chat": arguments.chat}})
    with scratch(catalog, settings, THOROUGH) as place:
        answered(place, place.questions[0].question)  # loads the models
        place.observations.clear()
        chance = random.Random(_SEED)
        retrieval = place.settings.retrieval
        fewer = dataclasses.replace(retrieval, source_count=_FEWER_SOURCES)
        for number in range(arguments.questions):
            asked = number // 2 if number % 3 == 2 else number
            question = place.questions[asked % len(place.questions)].question
            chosen = fewer if chance.random() < 0.5 else retrieval
            place.settings = dataclasses.replace(place.settings, retrieval=chosen)
            answered(place, question)
            if number % 10 == 9:
                print(f"{number + 1} of {arguments.questions}", flush=True)
        seen = list(place.observations)
        chat = place.chat_model.name
    figures = figures_of(seen)
    for name, value in figures.items():
        print(f"{name}: {value}", flush=True)
    parameters = {"questions": arguments.questions, "chat": chat, "seed": _SEED}
    print(record("latency_model", figures, parameters=parameters, file=arguments.json))


def figures_of(seen: Sequence[Observation]) -> dict[str, Any]:
    calibration = calibrate(seen, "chat")
    assert calibration is not None, "more than a dozen questions were asked"
    totals = np.array([each.total_s for each in seen])
    fitted = np.array(
        [
            expected_s(
                calibration,
                retrieve_s=each.retrieve_s,
                rerank_s=each.rerank_s,
                generate_s=each.generate_s,
                computed_tokens=each.computed_tokens,
            )
            for each in seen
        ]
    )
    tails = [tail_of(seen[0::2], seen[1::2]), tail_of(seen[1::2], seen[0::2])]
    return {
        "answers": len(seen),
        "weights": dataclasses.asdict(calibration.weights),
        "mean_total_s": round(float(totals.mean()), 4),
        "p95_s": round(float(np.quantile(totals, 0.95)), 4),
        # Once the stages are known: how well the sum explains the whole.
        "explained_error": round(float(np.median(np.abs(fitted - totals) / totals)), 4),
        # Before anything is searched, each from the answers before it.
        "forecast_error": round(calibration.error, 4),
        "forecast_tail": round(calibration.tail, 4),
        "tail": tails,
        "p95_error": round(max(abs(tail["error"]) for tail in tails), 4),
        "p95_error_independent": round(max(abs(tail["error_independent"]) for tail in tails), 4),
        "observations": [_rounded(each) for each in seen],
    }


def _rounded(observation: Observation) -> dict[str, Any]:
    values = dataclasses.asdict(observation)
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in values.items()}


def tail_of(fitted_to: Sequence[Observation], measured: Sequence[Observation]) -> dict[str, Any]:
    """The simulated 95th percentile of some answers beside the measured one of others."""
    tail = simulate(fitted_to)
    p95 = float(np.quantile([each.total_s for each in measured], 0.95))
    return {
        "measured_p95_s": round(p95, 4),
        "simulated_p95_s": round(tail.p95_s, 4),
        "error": round(tail.p95_s / p95 - 1, 4),
        "independent_p95_s": round(tail.independent_p95_s, 4),
        "error_independent": round(tail.independent_p95_s / p95 - 1, 4),
        "families": dict(zip(STAGES, tail.families, strict=True)),
    }


if __name__ == "__main__":
    main()
