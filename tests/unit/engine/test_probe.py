"""A file that kills llama.cpp kills a child process only."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgerag.engine.llama.library import library
from edgerag.engine.probe import probe
from edgerag.errors import EngineUnavailable, ModelDamaged, ModelError, ModelTooLarge
from edgerag.types import ModelFile

MODEL = ModelFile("m", "chat", Path("/m.gguf"), 10, "", "", "", (), 512, 64)


@pytest.mark.parametrize(
    ("code", "error", "what"),
    [
        (-signal.SIGILL, EngineUnavailable, "another processor"),
        (-signal.SIGABRT, ModelDamaged, "crashed (SIGABRT) on /m.gguf: GGML_ASSERT(x) failed"),
        (-signal.SIGBUS, ModelDamaged, "crashed (SIGBUS)"),
        (-signal.SIGKILL, ModelTooLarge, "want of memory"),
        (1, ModelDamaged, "exit code 1"),
    ],
)
def test_its_death_becomes_a_sentence(
    monkeypatch: pytest.MonkeyPatch, code: int, error: type[ModelError], what: str
) -> None:
    def died(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, code, b"", b"loading\nGGML_ASSERT(x) failed\n\n")

    monkeypatch.setattr(subprocess, "run", died)
    with pytest.raises(error) as caught:
        probe(MODEL)
    assert what in caught.value.message


def test_a_child_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(ModelError, match="did not load within"):
        probe(MODEL)


def test_a_thread_that_cannot_be_had_is_no_damage_of_the_file() -> None:
    """It would be remembered, and the model refused for good."""
    loaded = library()
    loaded.mark()
    loaded._log(4, b"llama_model_load: error loading model: Resource temporarily unavailable\n", None)
    assert loaded.lacked_memory()
    loaded.mark()
