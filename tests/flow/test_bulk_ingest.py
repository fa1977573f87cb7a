"""An ingest of many passages, with the real embedder: it looks once for the fastest way, and says when that fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from edgerag.config import load_settings
from edgerag.engine import opening
from edgerag.engine.bulk import MANY_PASSAGES
from edgerag.engine.embed_torch import torch_version
from edgerag.engine.tuning import embed_trial
from edgerag.engine.tuning.embed_trial import PassagePlan, Trial, Tried
from edgerag.errors import EngineUnavailable, UsageError
from edgerag.locations import locate
from edgerag.session import Session
from edgerag.types import IngestDone, ModelFile

FILES = MANY_PASSAGES + 60


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"Station {number} has a pump of its own.", encoding="utf-8")
    return folder


@pytest.fixture
def own_models(home: Path, models_folder: Path) -> Path:
    """A folder of the test's own, with the models of the checkout: what is remembered there is not the checkout's."""
    folder = home / "models"
    folder.unlink()
    folder.mkdir()
    for file in models_folder.iterdir():
        if file.suffix in (".gguf", ".toml"):
            (folder / file.name).symlink_to(file)
    return folder


def ingest(docs: Path, **settings: object) -> IngestDone:
    locations = locate(os.environ)
    with Session(load_settings(locations.config_file, {}, {"ingest": settings}), locations) as session:
        done = list(session.ingest([docs]))[-1]
        assert session.search("pump of station 17", limit=1).hits[0].chunk.path.endswith("17.txt")
    assert isinstance(done, IngestDone)
    return done


@pytest.mark.long
def test_many_passages_are_tried_once_and_a_backend_that_fails_is_named(
    docs: Path, own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PassagePlan("torch", 1, 1, "f32")
    trials: list[int] = []

    def run_trial(model: ModelFile, passages: Sequence[str], *, threads: int) -> Trial:
        trials.append(len(passages))
        return Trial(plan, (Tried(plan, 100.0, 2.0, 1.0),))

    def refuse(*_: object) -> None:
        raise EngineUnavailable("torch is not usable: it is broken.")

    monkeypatch.setattr(embed_trial, "run_trial", run_trial)
    monkeypatch.setattr(opening, "plans", lambda *_, **__: (PassagePlan("llama.cpp", 1, 1), plan))
    monkeypatch.setattr(opening, "open_torch", refuse)
    done = ingest(docs)
    assert done.chunks_embedded == FILES and done.count("ingested") == FILES
    assert trials == [32] and (own_models / "embedding.json").is_file()
    assert any("llama.cpp" in note and "it is broken" in note for note in done.notes)
    again = ingest(docs)
    assert again.chunks_embedded == 0 and not again.notes and len(trials) == 1


def test_few_passages_are_not_worth_a_trial(docs: Path, own_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_trial, "run_trial", lambda *_, **__: pytest.fail("nothing is tried"))
    for file in list(docs.iterdir()):
        if int(file.stem) % 20 != 17:
            file.unlink()
    assert ingest(docs).chunks_embedded == FILES // 20
    assert not (own_models / "embedding.json").exists()


@pytest.mark.skipif(bool(torch_version()), reason="torch is installed")
@pytest.mark.usefixtures("own_models")
def test_torch_that_is_asked_for_and_not_there_is_told(docs: Path) -> None:
    with pytest.raises(UsageError, match="not installed"):
        ingest(docs, embed_with="torch")


@pytest.mark.skipif(not torch_version(), reason="torch is not installed")
@pytest.mark.usefixtures("own_models")
def test_torch_that_is_asked_for_embeds_from_the_start(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_trial, "run_trial", lambda *_, **__: pytest.fail("nothing is tried"))
    done = ingest(docs, embed_with="torch")
    assert done.chunks_embedded == FILES and not done.notes
