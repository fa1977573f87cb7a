"""The real small model: requantised, measured, gone on with, and stopped."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import time
from pathlib import Path

import pytest

from edgerag.engine.catalog import Catalog
from edgerag.engine.files import sha256_of
from edgerag.engine.gguf import read_header
from edgerag.engine.llama import Model, quantize
from edgerag.engine.tuning import perplexity, requantise
from edgerag.engine.tuning.apply import first_choice, processors
from edgerag.engine.tuning.background import BackgroundTuning
from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.engine.tuning.measure import open_bench
from edgerag.engine.tuning.perplexity import read_prose
from edgerag.engine.tuning.record import Measurement, Tuning, Tunings, tuning_key
from edgerag.engine.tuning.requantise import describe_twin, is_as_it_was, make_twin, remove_twin
from edgerag.engine.tuning.tune import current, needs_tuning, tune
from edgerag.errors import ModelError, ModelWrongKind, StorageFull, UsageError
from edgerag.machine.topology import read_topology
from edgerag.types import ModelFile

CPUS = processors(read_topology())


def budget(seconds: float = 600) -> Budget:
    return Budget(seconds, cancelled=lambda: False)


@pytest.fixture(scope="session")
def small_file(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chat model in Q4_1, as its package ships it."""
    target = tmp_path_factory.mktemp("q4") / "small.gguf"
    source = catalog.find("chat", "smollm2-135m-instruct").path
    quantize(source, target, weight_type="Q4_1", threads=2, metadata={})
    return target


@pytest.fixture
def model(tiny_chat_file: Path, tmp_path: Path) -> ModelFile:
    return model_in(tmp_path, tiny_chat_file)


@pytest.fixture
def real_model(small_file: Path, tmp_path: Path) -> ModelFile:
    return model_in(tmp_path, small_file)


def model_in(folder: Path, file: Path) -> ModelFile:
    path = folder / "small.gguf"
    shutil.copy(file, path)
    header = read_header(path)
    return ModelFile(
        name="small",
        kind="chat",
        path=path,
        size_bytes=path.stat().st_size,
        sha256=sha256_of(path),
        weights_sha256="f" * 64,
        licence="",
        languages=("en",),
        context_tokens=header.context_tokens,
        dimension=header.dimension,
    )


def test_the_bundled_text_is_long_enough(catalog: Catalog) -> None:
    opened = Model(catalog.find("chat", "smollm2-135m-instruct").path, vocabulary_only=True)
    assert 2000 <= opened.count_tokens(read_prose()) <= 3500
    opened.close()


# ---------------------------------------------------------------- requantising


def make(model: ModelFile, weight_type: str = "Q8_0", *, asked: bool = True, time: Budget | None = None) -> Path:
    header = read_header(model.path)
    return make_twin(model, header, weight_type, threads=2, budget=time or budget(), asked=asked)


def test_a_twin_lies_beside_the_model_and_knows_where_it_comes_from(model: ModelFile) -> None:
    before = model.path.read_bytes()
    twin = make(model)
    assert twin == model.path.with_name("small.tuned-Q8_0.gguf")
    header = read_header(twin)
    assert header.weight_type == "Q8_0"
    assert header.metadata["edgerag.weights_sha256"] == model.weights_sha256
    assert header.chat_template == read_header(model.path).chat_template
    assert model.path.read_bytes() == before
    assert sorted(path.name for path in model.path.parent.iterdir()) == ["small.gguf", "small.tuned-Q8_0.gguf"]
    # It is not made again.
    stamp = twin.stat().st_mtime_ns
    assert make(model) == twin
    assert twin.stat().st_mtime_ns == stamp
    file = describe_twin(model, twin.name)
    assert is_as_it_was(model, file)
    remove_twin(model, twin.name)
    assert not twin.exists()
    assert not is_as_it_was(model, file)


def test_nothing_is_written_over(model: ModelFile) -> None:
    other = model.path.with_name("small.tuned-Q8_0.gguf")
    shutil.copy(model.path, other)
    with pytest.raises(ModelError, match="in the way"):
        make(model)
    assert other.read_bytes() == model.path.read_bytes()
    remove_twin(model, other.name)
    assert other.exists()  # not one of ours


def test_a_full_disk_is_told_and_leaves_nothing(model: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(model.path.parent)
    monkeypatch.setattr(requantise.shutil, "disk_usage", lambda _: usage._replace(free=100_000_000))
    with pytest.raises(StorageFull, match="are free"):
        make(model)
    assert [path.name for path in model.path.parent.iterdir()] == ["small.gguf"]


def test_a_quantiser_that_fails_leaves_nothing(model: ModelFile) -> None:
    header = read_header(model.path)
    model.path.write_bytes(model.path.read_bytes()[: model.size_bytes // 2])
    with pytest.raises(ModelError):
        make_twin(model, header, "Q8_0", threads=2, budget=budget(), asked=True)
    assert [path.name for path in model.path.parent.iterdir()] == ["small.gguf"]


def test_requantising_can_be_stopped(model: ModelFile) -> None:
    # Twice it is looked: before the child is waited for the first time it has not even begun.
    looks = itertools.count()
    with pytest.raises(Stopped):
        make(model, time=Budget(600, cancelled=lambda: next(looks) >= 1))
    assert [path.name for path in model.path.parent.iterdir()] == ["small.gguf"]


def test_what_would_take_long_waits_until_it_is_asked_for(real_model: ModelFile) -> None:
    with pytest.raises(ModelError, match="--requantise Q8_0"):
        make(real_model, asked=False, time=budget(1.0))


# ---------------------------------------------------------------- measuring


@pytest.mark.long
def test_speed_and_quality_of_the_real_model(real_model: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    beginning = read_prose()[:1500]
    monkeypatch.setattr(perplexity, "read_prose", lambda: beginning)
    monkeypatch.setattr(perplexity, "FEWEST_TOKENS", 64)  # however slow the machine is just now
    first = first_choice(CPUS)
    twin = make(real_model)
    candidate = dataclasses.replace(first, weights=twin.name)
    with open_bench(real_model, CPUS, budget=budget(), provide=lambda _: None, context_tokens=512) as bench:
        assert bench.first(first).prefill_tps > bench.first(first).decode_tps > 0
        rounds = list(itertools.islice(bench.rounds(first, candidate, "answer"), 2))
        for one in rounds:
            assert min(one.standing.prefill_tps, one.candidate.prefill_tps) > 0
        before, after = bench.perplexity(first), bench.perplexity(candidate)
        assert 5 < before < 100  # plain English, a small model
        assert after != before
        assert abs(after / before - 1) < 0.05
        assert bench.others() >= 0


@pytest.mark.long
@pytest.mark.parametrize("change", [{"wait_policy": "brief"}, {"speculation": "off"}])
def test_what_needs_another_way_of_measuring(model: ModelFile, change: dict[str, str]) -> None:
    first = first_choice(CPUS)
    candidate = dataclasses.replace(first, **change)  # type: ignore[arg-type]
    with open_bench(model, CPUS, budget=budget(), provide=lambda _: None, context_tokens=512) as bench:
        one = next(bench.rounds(first, candidate, "decode"))
        assert one.standing.decode_tps > 0
        assert one.candidate.decode_tps > 0


def test_tuning_is_stopped_and_goes_on(model: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    beginning = read_prose()[:1500]
    monkeypatch.setattr(perplexity, "read_prose", lambda: beginning)
    monkeypatch.setattr(perplexity, "FEWEST_TOKENS", 64)
    tunings = Tunings(model.path.parent)
    assert needs_tuning(model, tunings)
    told: list[Measurement] = []
    found = tune(model, tunings, seconds=600, report=told.append, cancelled=lambda: len(told) == 1)
    assert not found.finished
    assert [measured.what for measured in found.measurements] == ["as it came"]
    assert told == list(found.measurements)
    assert current(model, Tunings(model.path.parent)) == found
    assert needs_tuning(model, tunings)
    again = tune(model, tunings, seconds=600, report=told.append, cancelled=lambda: len(told) == 2)
    assert [(measured.what, measured.value) for measured in again.measurements] == [
        ("as it came", ""),
        ("weights", "Q8_0"),
    ]
    assert again.measurements[0] == found.measurements[0]
    assert again.seconds > found.seconds
    weights = again.measurements[1]
    if weights.verdict == "taken":  # as on every processor of the last ten years
        assert again.weights is not None
        assert (model.path.parent / again.weights.name).stat().st_size == again.weights.size_bytes
        assert weights.perplexity > 0


def test_no_time_is_no_measurement(model: ModelFile) -> None:
    found = tune(model, Tunings(model.path.parent), seconds=0.0)
    assert (found.measurements, found.finished) == ((), False)
    assert found.choice == first_choice(CPUS)


def test_a_twin_that_is_gone_is_noticed(model: ModelFile) -> None:
    tunings, key = Tunings(model.path.parent), tuning_key(model)
    twin = make(model)
    first = first_choice(CPUS)
    choice = dataclasses.replace(first, weights=twin.name)
    done = Tuning(choice=choice, first=first, finished=True, weights=describe_twin(model, twin.name))
    tunings.keep(key, done)
    assert not needs_tuning(model, tunings)
    twin.unlink()
    assert current(model, tunings) is None
    assert needs_tuning(model, tunings)


def test_what_cannot_be_tuned_is_told(model: ModelFile) -> None:
    tunings = Tunings(model.path.parent)
    with pytest.raises(ModelWrongKind):
        tune(dataclasses.replace(model, kind="embedder"), tunings)
    with pytest.raises(UsageError, match="Q8_0"):
        tune(model, tunings, requantise="Q99")


# ---------------------------------------------------------------- in the background


@pytest.mark.long
def test_background_tuning_is_gone_when_somebody_asks_and_goes_on_later(model: ModelFile) -> None:
    folder = model.path.parent
    background = BackgroundTuning(model, folder, context_tokens=2048, seconds=120)
    assert background.start()
    assert background.start()  # once is enough
    process = background._process
    assert process is not None
    _until(lambda: current(model, Tunings(folder)) is not None)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    with pytest.raises(ModelError, match="Another process"):
        tune(model, Tunings(folder), seconds=1)
    background.pause()
    assert not background.is_running
    _until(lambda: process.poll() is not None)
    kept = current(model, Tunings(folder))
    assert kept is not None
    assert kept.measurements
    assert background.start()
    assert background.is_running
    background.stop()
    assert not background.is_running
    assert not background.start()  # for good


def test_background_tuning_has_nothing_to_do_where_all_is_measured(model: ModelFile) -> None:
    first = first_choice(CPUS)
    Tunings(model.path.parent).keep(tuning_key(model), Tuning(choice=first, first=first, finished=True))
    assert not BackgroundTuning(model, model.path.parent, context_tokens=2048).start()
    other = dataclasses.replace(model, sha256="0" * 64)
    assert not BackgroundTuning(other, model.path.parent, context_tokens=2048, seconds=0).start()


def _until(condition: object) -> None:
    for _ in range(600):
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within a minute")
