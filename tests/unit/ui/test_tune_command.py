"""The table explains what was tried and what was taken; the JSON says the same."""

from __future__ import annotations

import json
from pathlib import Path

from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.record import Gate, Measurement, RecipeAnswers, Tuning
from edgerag.types import ModelFile
from edgerag.ui.cli import build_parser
from edgerag.ui.tune_command import tuning_record, tuning_text

MODEL = ModelFile("small", "chat", Path("/m/small.gguf"), 1, "a", "b", "", (), 2048, 64)
FIRST = Choice(prefill_threads=2, decode_threads=2)
TUNING = Tuning(
    choice=Choice(prefill_threads=2, decode_threads=1, weights="small.tuned-Q8_0.gguf", wait_policy="brief"),
    first=FIRST,
    measurements=(
        Measurement("as it came", "", "", "x", 375.2, 97.04, why="What all others are compared with."),
        Measurement(
            "weights", "Q8_0", "Q4_1", "x", 637, 99, 375, 97, 1.6, 13.59, 0.003, 3, "taken", "Prompt 60% faster."
        ),
        Measurement("KV cache", "q8_0", "f16", "x", verdict="impossible", why="It cannot be."),
    ),
    finished=True,
    seconds=41.4,
    gate=Gate(
        100,
        1,
        "x",
        (RecipeAnswers(-1, "none", "1" * 70 + "0" * 30), RecipeAnswers(0, "none", "0" * 34, given_up=True)),
        finished=True,
        why="No recipe comes near.",
    ),
)


def test_the_table_explains() -> None:
    text = tuning_text(TUNING, name=MODEL.name, file_name=MODEL.path.name)
    assert "small: tuned in 41 s, finished" in text
    weights = next(line for line in text.splitlines() if line.startswith("weights") and "Q8_0" in line)
    for words in ("Q4_1", "637 / 375", "99.0 / 97.0", "1.60", "taken", "Prompt 60% faster."):
        assert words in weights
    assert "It cannot be." in text
    assert "2 for the prompt, 1 for the answer" in text
    assert any(line.split() == ["waiting", "threads", "spin", "briefly"] for line in text.splitlines())
    assert "exact: No recipe comes near." in text
    assert any(line.split() == ["exact", "70", "100"] for line in text.splitlines())
    assert "given up: too many wrong" in text


def test_what_is_not_finished_says_how_to_go_on() -> None:
    text = tuning_text(Tuning(choice=FIRST, first=FIRST), name=MODEL.name, file_name=MODEL.path.name)
    assert "not finished: the same command goes on" in text
    assert "small.gguf as it is" in text
    assert "models tune --kv" in text


def test_the_json_says_the_same() -> None:
    record = json.loads(json.dumps(tuning_record(MODEL, TUNING)))
    assert record["model"] == "small"
    assert record["finished"] is True
    assert record["choice"]["weights"] == "small.tuned-Q8_0.gguf"
    assert record["measurements"][1]["perplexity"] == 13.59
    assert record["gate"]["accuracy_exact"] == 0.7


def test_the_command_line() -> None:
    parsed = build_parser().parse_args(["models", "tune", "small", "--kv", "--seconds", "30", "--requantise", "Q4_0"])
    assert (parsed.action, parsed.name, parsed.kv, parsed.seconds) == ("tune", "small", True, 30)
    assert parsed.requantise == "Q4_0"
