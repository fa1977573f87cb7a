"""What is measured is kept per machine, file and engine, survives damage, and never stops anything."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tuning_fakes import FIRST

from edgerag.engine.tuning import record
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.record import (
    Gate,
    Measurement,
    RecipeAnswers,
    RequantisedFile,
    Tuning,
    Tunings,
    Verdict,
    tuning_key,
)
from edgerag.machine.cores import Core
from edgerag.machine.topology import Topology, read_topology
from edgerag.types import ModelFile

MODEL = ModelFile(
    name="one",
    kind="chat",
    path=Path("/models/one.gguf"),
    size_bytes=1,
    sha256="a" * 64,
    weights_sha256="b" * 64,
    licence="",
    languages=(),
    context_tokens=2048,
    dimension=64,
)
FULL = Tuning(
    choice=dataclasses.replace(FIRST, weights="one.tuned-Q8_0.gguf", cache_type="q8_0"),
    first=FIRST,
    measurements=(Measurement("weights", "Q8_0", "Q4_1", "abc", 1.5, 2, verdict="taken", why="The answer 5% faster."),),
    finished=True,
    seconds=12,
    weights=RequantisedFile("one.tuned-Q8_0.gguf", 10, 20, "c" * 64, "Q8_0"),
    gate=Gate(
        20,
        7,
        "x",
        (RecipeAnswers(-1, "none", "1011"), RecipeAnswers(0, "none", "1", given_up=True)),
        passages="spliced",
    ),
)


def test_the_speed_is_that_of_what_was_chosen_last() -> None:
    def measured(verdict: Verdict, prefill_tps: float) -> Measurement:
        return Measurement("x", "1", "2", "s", prefill_tps=prefill_tps, verdict=verdict)

    lines = (measured("measured", 100.0), measured("taken", 150.0), measured("taken", 0.0), measured("refused", 90.0))
    assert dataclasses.replace(FULL, measurements=lines).prefill_tps == 150.0
    assert dataclasses.replace(FULL, measurements=()).prefill_tps == 0.0


def test_what_is_kept_is_found_by_another_process(tmp_path: Path) -> None:
    assert Tunings(tmp_path).find("k") is None
    assert Tunings(tmp_path).keep("k", FULL)
    assert Tunings(tmp_path).find("k") == FULL
    assert Tunings(tmp_path).find("other") is None
    assert Tunings(tmp_path).files_in_use() == {"one.tuned-Q8_0.gguf"}


def test_another_machine_keeps_its_own(tmp_path: Path) -> None:
    plain = Tuning(choice=FIRST, first=FIRST)
    Tunings(tmp_path).keep("here", FULL)
    Tunings(tmp_path).keep("there", plain)
    assert Tunings(tmp_path).find("here") == FULL
    assert Tunings(tmp_path).find("there") == plain


def test_only_so_many_are_kept_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_MOST_KEPT", 3)
    tunings = Tunings(tmp_path)
    for number in range(5):
        tunings.keep(f"k{number}", FULL)
        tunings.keep("k0", FULL)  # in use
    fresh = Tunings(tmp_path)
    assert [number for number in range(5) if fresh.find(f"k{number}")] == [0, 3, 4]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"version": 99, "tunings": {}}',
        b'{"version": 1}',
        b'{"version": 1, "tunings": {"k": 3}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_kept_aside_and_measured_again(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "tuning.json"
    file.write_bytes(damage)
    tunings = Tunings(tmp_path)
    assert tunings.find("k") is None
    assert tunings.keep("k", FULL)
    assert Tunings(tmp_path).find("k") == FULL
    assert (tmp_path / "tuning.json.damaged").read_bytes() == damage


@given(data=st.data())
def test_no_value_in_the_file_is_trusted(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands in the place of one value: what is found is a tuning like any other, or nothing."""
    folder = tmp_path_factory.mktemp("t")
    Tunings(folder).keep("k", FULL)
    file = folder / "tuning.json"
    value = json.loads(file.read_text())
    part = value["tunings"]["k"]
    while True:
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if isinstance(part[key], (dict, list)) and part[key] and data.draw(st.booleans()):
            part = part[key]
            continue
        part[key] = data.draw(
            st.sampled_from([None, -1, 0, 3.5, True, "x", "../../x", [], {}, [1], 10**30, {"a": 1}, "q8_0"])
        )
        break
    file.write_text(json.dumps(value))
    found = Tunings(folder).find("k")
    if found is not None:
        assert found.choice.prefill_threads >= 1
        assert "/" not in found.choice.weights
        assert dataclasses.replace(found) == found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_keeps_it_for_this_process_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    _keeps_it_alone(tmp_path)


def test_a_folder_that_cannot_be_keeps_it_for_this_process_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    _keeps_it_alone(file / "models")


def _keeps_it_alone(folder: Path) -> None:
    tunings = Tunings(folder)
    assert not tunings.keep("k", FULL)
    assert tunings.find("k") == FULL
    assert Tunings(folder).find("k") is None


def test_the_key_follows_machine_and_file() -> None:
    here = read_topology()
    larger = Topology(
        cores=tuple(Core((cpu,), "performance", 0) for cpu in range(97)),
        nodes=(),
        quota_cores=None,
        has_cpuset=False,
        can_pin=True,
    )
    assert tuning_key(MODEL) == tuning_key(MODEL, here)
    keys = {
        tuning_key(MODEL, here),
        tuning_key(MODEL, larger),
        tuning_key(MODEL, dataclasses.replace(here, quota_cores=0.5)),
        tuning_key(dataclasses.replace(MODEL, sha256="d" * 64), here),
    }
    assert len(keys) == 4
    # Another name or place is the same file.
    assert tuning_key(dataclasses.replace(MODEL, name="two", path=Path("/x")), here) == tuning_key(MODEL, here)


@pytest.mark.parametrize(
    "changes",
    [
        {"prefill_threads": 0},
        {"decode_threads": -1},
        {"micro_batch_tokens": 10**9},
        {"weights": "../secret.gguf"},
        {"weights": "/etc/passwd"},
    ],
)
def test_a_choice_that_cannot_be_run_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cannot be run"):
        Choice(**{"prefill_threads": 1, "decode_threads": 1, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"batch_tokens": 3, "micro_batch_tokens": 3},
        {"micro_batch_tokens": 1024},
        {"flash_attention": False, "cache_type": "q8_0"},
    ],
)
def test_a_choice_that_no_generator_runs_is_known_as_such(change: dict[str, object]) -> None:
    runnable = dataclasses.replace(FIRST, cache_type="f16", flash_attention=True)
    assert runnable.can_answer
    assert not dataclasses.replace(runnable, **change).can_answer  # type: ignore[arg-type]


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tuning.json")
    assert Tunings(tmp_path).find("key") is None
