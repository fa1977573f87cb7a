"""The trial of embedding backends: what is tried, what wins, and what is remembered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgerag.engine.catalog import Catalog
from edgerag.engine.embed_torch import torch_version
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.tuning import embed_trial
from edgerag.engine.tuning.budget import Stopped
from edgerag.engine.tuning.embed_trial import (
    PassagePlan,
    Trial,
    Trials,
    Tried,
    choose,
    measure,
    plans,
    remembered_trial,
    run_trial,
    trial_key,
)
from edgerag.errors import ModelError
from edgerag.types import ModelFile

if TYPE_CHECKING:
    from edgerag.types import Vectors

LLAMA, ONE, TORCH = PassagePlan("llama.cpp", 2, 1), PassagePlan("llama.cpp", 1, 2), PassagePlan("torch", 2, 1, "bf16")
PASSAGES = [f"Passage number {number} says little." for number in range(40)]
PLENTY = 10**10


@pytest.fixture(scope="module")
def model(catalog: Catalog) -> ModelFile:
    return catalog.find("embedder", "all-minilm-l6-v2")


@pytest.fixture(scope="module")
def header(model: ModelFile) -> Header:
    return read_header(model.path)


def test_torch_is_tried_where_it_is_installed_and_has_room(header: Header) -> None:
    bf16 = ("AVX-512F", "AVX-512BF16")
    wanted = plans(header, threads=2, torch=True, features=bf16, free_bytes=PLENTY)
    assert wanted == (LLAMA, ONE, TORCH, PassagePlan("torch", 1, 2, "bf16"))
    assert plans(header, threads=2, torch=True, features=("AVX2",), free_bytes=PLENTY)[2].arithmetic == "f32"
    assert plans(header, threads=2, torch=False, features=bf16, free_bytes=PLENTY) == (LLAMA, ONE)
    assert plans(header, threads=2, torch=True, features=bf16, free_bytes=300_000_000) == (LLAMA, ONE)
    other = dataclasses.replace(header, metadata={**header.metadata, "general.architecture": "nomic-bert"})
    assert plans(other, threads=2, torch=True, features=bf16, free_bytes=PLENTY) == (LLAMA, ONE)


def test_many_cores_share_few_workers(header: Header) -> None:
    assert plans(header, threads=1, torch=False, features=(), free_bytes=0) == (PassagePlan("llama.cpp", 1, 1),)
    assert plans(header, threads=64, torch=False, features=(), free_bytes=0)[0] == PassagePlan("llama.cpp", 8, 8)


def test_only_what_is_clearly_faster_takes_the_place() -> None:
    assert choose([Tried(LLAMA, gain=1), Tried(ONE, gain=1.05), Tried(TORCH, gain=1.08)]) == LLAMA
    assert choose([Tried(LLAMA, gain=1), Tried(ONE, gain=1.2), Tried(TORCH, gain=2)]) == TORCH
    assert choose([Tried(LLAMA, gain=1), Tried(TORCH, gain=9, why="Its vectors differ.")]) == LLAMA


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def unit(texts: Sequence[str]) -> Vectors:
    vectors = np.array([[len(text), 1.0, 2.0] for text in texts], dtype=np.float32)
    unit_vectors: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit_vectors


def test_times_are_compared_in_turns_and_other_vectors_are_refused() -> None:
    clock = Clock()

    def ready(plan: PassagePlan) -> Callable[[Sequence[str]], Vectors]:
        if plan == ONE:
            raise ModelError("It cannot be loaded.")

        def run(texts: Sequence[str]) -> Vectors:
            clock.now += len(texts) / (50 if plan == LLAMA else 100)
            return unit(texts) if plan != wrong else unit(texts)[:, ::-1]

        return run

    wrong = PassagePlan("torch", 1, 2, "f32")
    llama, one, torch, other = measure([LLAMA, ONE, TORCH, wrong], ready, PASSAGES, seconds=60, clock=clock)
    assert (llama.passages_per_s, torch.passages_per_s, torch.gain) == (50, 100, 2)
    assert torch.cosine == pytest.approx(1) and not torch.why
    assert one.why == "It cannot be loaded." and not one.gain
    assert "cosine" in other.why and not other.gain
    assert choose([llama, one, torch, other]) == TORCH


def test_a_slow_machine_is_asked_for_less() -> None:
    clock, asked = Clock(), 0

    def run(texts: Sequence[str]) -> Vectors:
        nonlocal asked
        asked += len(texts)
        clock.now += len(texts)  # one passage per second
        return unit(texts)

    measure([LLAMA, ONE], lambda _: run, PASSAGES, seconds=5, clock=clock)
    assert asked == 2 * len(PASSAGES) + 3 * 16


def test_the_first_backend_must_work() -> None:
    def broken(_: PassagePlan) -> Callable[[Sequence[str]], Vectors]:
        raise ModelError("llama.cpp cannot load it.")

    with pytest.raises(ModelError, match="cannot load"):
        measure([LLAMA, TORCH], broken, PASSAGES, seconds=1)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Trials that take no time; how many passages each was given."""
    given: list[int] = []

    def run(model: ModelFile, passages: Sequence[str], *, threads: int) -> Trial:
        given.append(len(passages))
        return Trial(TORCH, (Tried(LLAMA, 50.0, 1.0, 1.0), Tried(TORCH, 100.0, 2.0, 0.99998)))

    monkeypatch.setattr(embed_trial, "run_trial", run)
    yield given


def test_a_trial_is_made_once_per_machine_model_and_libraries(
    model: ModelFile, runs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(threads: int = 2) -> PassagePlan:
        return remembered_trial(model, PASSAGES, trials=Trials(tmp_path), threads=threads, fallback=LLAMA)

    assert decide() == decide() == TORCH
    assert len(runs) == 1
    decide(threads=1)
    assert len(runs) == 2
    monkeypatch.setattr(embed_trial, "torch_version", lambda: "99.0")
    decide()
    assert len(runs) == 3, "another torch is tried anew"
    key = trial_key(model, threads=2)
    found = Trials(tmp_path).find(key)
    assert found is not None and found.tried[1] == Tried(TORCH, 100.0, 2.0, 0.99998)


def test_a_damaged_memory_is_measured_again(model: ModelFile, runs: list[int], tmp_path: Path) -> None:
    (tmp_path / "embedding.json").write_text('{"version": 1, "embeddings": {"a": {"plan": {"workers": "many"}}}}')
    assert remembered_trial(model, PASSAGES, trials=Trials(tmp_path), threads=2, fallback=LLAMA) == TORCH
    assert (tmp_path / "embedding.json.damaged").exists()


def test_a_trial_that_hangs_is_not_made_again_and_one_that_crashes_is(
    model: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    trouble: type[Exception] = ModelError

    def fail(*_: object, **__: object) -> Trial:
        nonlocal count
        count += 1
        raise trouble("It went wrong.")

    monkeypatch.setattr(embed_trial, "run_trial", fail)
    for _ in range(2):
        assert remembered_trial(model, PASSAGES, trials=Trials(tmp_path), threads=2, fallback=LLAMA) == LLAMA
    assert count == 2
    trouble = Stopped
    for _ in range(2):
        assert remembered_trial(model, PASSAGES, trials=Trials(tmp_path), threads=2, fallback=LLAMA) == LLAMA
    assert count == 3


def test_a_real_trial_in_a_process_of_its_own(model: ModelFile) -> None:
    found = run_trial(model, PASSAGES, threads=2, seconds=0)
    assert [one.plan.backend for one in found.tried] == ["llama.cpp"] * 2 + ["torch"] * 2 * bool(torch_version())
    assert all(one.passages_per_s > 0 and one.cosine >= 0.999 and not one.why for one in found.tried)
    assert found.plan in [one.plan for one in found.tried]


@pytest.mark.parametrize(
    "changes", [{"workers": 0}, {"workers": 9}, {"threads": 0}, {"backend": "torch"}, {"arithmetic": "f32"}]
)
def test_what_stands_in_a_file_is_not_trusted(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cannot be run"):
        dataclasses.replace(LLAMA, **changes)
