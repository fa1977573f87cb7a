"""The tuning guide: its numbers stand in results, its commands work, and where nothing is wrong it says nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest

from edgerag.config import MemorySettings, RetrievalSettings, Settings
from edgerag.settings.effective import all_settings
from edgerag.settings.keep import parsed_value
from edgerag.settings.tuning_guide import GUIDE, Advice, MachineState, fitting
from edgerag.ui.cli import build_parser

RESULTS = Path(__file__).parents[3] / "bench" / "results"
SETTINGS = {setting.name: setting for setting in all_settings()}
GOOD = MachineState(8_000_000_000, has_chat_model=True, is_tuned=True, is_gated=True, reading_tps=800.0)


@pytest.mark.parametrize("advice", GUIDE, ids=lambda advice: advice.key)
def test_each_number_was_measured(advice: Advice) -> None:
    assert advice.numbers and advice.effect.count("{}") == len(advice.numbers)
    for number in advice.numbers:
        record = json.loads((RESULTS / number.file).read_text(encoding="utf-8"))
        value = reduce(lambda part, key: part[key], number.path, record)
        assert number.form.format(value * number.scale) == number.text, number


@pytest.mark.parametrize("advice", GUIDE, ids=lambda advice: advice.key)
def test_each_command_can_be_typed(advice: Advice) -> None:
    build_parser().parse_args(advice.does_it.split()[1:])
    if advice.knob:
        parsed_value(SETTINGS[advice.knob], advice.value)


def test_a_machine_with_everything_as_it_should_be_gets_no_advice() -> None:
    assert fitting(Settings(), GOOD) == ()


@pytest.mark.parametrize(
    ("settings", "machine", "key"),
    [
        (Settings(), replace(GOOD, is_tuned=False, is_gated=False), "tune"),
        (Settings(), replace(GOOD, is_gated=False), "splice"),
        (Settings(), replace(GOOD, reading_tps=20.0), "instant"),
        (Settings(memory=MemorySettings(budget=4_000_000_000)), GOOD, "budget"),
        (Settings(), replace(GOOD, free_bytes=1_500_000_000), "context"),
        (Settings(retrieval=RetrievalSettings(vector_deadline_ms=5)), GOOD, "deadline"),
        (Settings(retrieval=RetrievalSettings(ef_search=10)), GOOD, "width"),
        (Settings(retrieval=RetrievalSettings(source_count=2)), GOOD, "sources"),
        (Settings(retrieval=RetrievalSettings(found_probability=0.9)), GOOD, "refusal"),
    ],
)
def test_what_fits_is_suggested_with_the_command_that_does_it(
    settings: Settings, machine: MachineState, key: str
) -> None:
    (suggestion,) = fitting(settings, machine)
    assert suggestion.key == key and suggestion.why and suggestion.effect
    assert suggestion.command.startswith("edgerag ")


def test_nothing_is_said_of_a_model_that_does_not_answer() -> None:
    instant = replace(Settings(), generation=replace(Settings().generation, mode="instant"))
    assert fitting(instant, replace(GOOD, is_tuned=False, free_bytes=1_500_000_000)) == ()
