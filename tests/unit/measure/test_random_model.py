"""The models of random weights that the benches measure with: they load, compute and are what they say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edgerag.engine.generator import open_generator, plain_settings
from edgerag.engine.gguf import read_header
from edgerag.types import Message, ModelFile, Sampling

BENCH = Path(__file__).parents[3] / "bench"
GREEDY = Sampling(temperature=0, top_p=1, repeat_penalty=1, seed=0)


@pytest.fixture(scope="module")
def random_model() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield import_module("random_model")


@pytest.fixture(scope="module", params=["Q4_0", "Q8_0"])
def tiny(random_model: ModuleType, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    path: Path = random_model.write_model(tmp_path_factory.mktemp("tiny"), size="tiny", weights=request.param)
    assert read_header(path).weight_type == request.param
    return path


def model_file(path: Path) -> ModelFile:
    return ModelFile(path.stem, "chat", path, path.stat().st_size, "", "", "", (), 8192, 64)


def test_llama_cpp_loads_it_and_it_speaks(tiny: Path) -> None:
    assert read_header(tiny).vocabulary_size == 49152
    generator = open_generator(model_file(tiny), plain_settings(context_tokens=512, threads=1))
    try:
        encoded = generator.encode_chat([Message("user", ("What is the torque?",))])
        said = list(generator.generate(encoded.tokens, max_tokens=5, sampling=GREEDY, cancelled=lambda: False))
        assert said[-1].token_count == 5
        assert said[-1].stop == "length"
    finally:
        generator.close()


@pytest.mark.long
def test_no_weight_is_infinite_and_none_is_large(tiny: Path) -> None:
    """What a model computes with them stays finite, whatever its depth."""
    gguf = pytest.importorskip("gguf")
    for tensor in gguf.GGUFReader(tiny).tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.isfinite(values).all()
        if "norm" not in tensor.name:
            columns = int(tensor.shape[0])
            gain = 1 if not tensor.name.endswith(("attn_output.weight", "ffn_down.weight")) else 0.5
            assert values.std() == pytest.approx(gain / columns**0.5, rel=0.05)


def test_the_same_seed_gives_the_same_file_and_another_one_does_not(random_model: ModuleType, tmp_path: Path) -> None:
    first, second, third = (
        random_model.write_model(tmp_path, size="tiny", seed=seed).read_bytes() for seed in (0, 0, 1)
    )
    assert first == second != third


def test_a_disk_without_room_is_told_before_anything_is_written(
    random_model: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000_000))
    with pytest.raises(OSError, match=r"needs 4\.0 GB, and only 1\.0 GB are free"):
        random_model.write_model(tmp_path, size="7b")
    assert list(tmp_path.iterdir()) == []
