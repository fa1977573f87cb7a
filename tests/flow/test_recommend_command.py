"""`edgerag models recommend` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").symlink_to(models_folder)
    monkeypatch.setenv("EDGERAG_HOME", str(tmp_path))
    return tmp_path


def recommend(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgerag", "models", "recommend", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_people_get_the_models_at_hand_the_size_classes_and_one_conclusion(home: Path) -> None:
    done = recommend()
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Measured with")
    assert any(line.startswith("smollm2-135m-instruct  Q8_0") for line in lines)
    assert any(line.startswith("8B ") and "Q4_K_M" in line for line in lines)
    assert "tokens per second" in lines[-1]
    assert done.stderr == ""


def test_programs_get_figures_that_agree_with_each_other(home: Path) -> None:
    told = json.loads(recommend("--json").stdout)
    assert told["machine"]["bytes_per_s"] > 0
    assert [model["name"] for model in told["models"]] == ["smollm2-135m-instruct"]
    for found in [*told["models"], *told["classes"]]:
        parts = ("weights_bytes", "cache_bytes", "state_bytes", "compute_bytes", "other_bytes")
        assert found["memory_bytes"] == sum(found[part] for part in parts)
        if found["verdict"] != "too large":
            fast = found["decode_tokens_per_s"] >= told["wanted_tokens_per_s"]
            assert (found["verdict"] == "fast enough") == fast


def test_a_longer_context_is_counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGERAG_GENERATION_CONTEXT_TOKENS", "2048")
    short = json.loads(recommend("--json").stdout)
    monkeypatch.setenv("EDGERAG_GENERATION_CONTEXT_TOKENS", "16384")
    long = json.loads(recommend("--json").stdout)
    assert long["context_tokens"] == 16384
    assert long["classes"][-1]["cache_bytes"] == 8 * short["classes"][-1]["cache_bytes"]


def test_a_home_without_models_still_gets_the_size_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGERAG_HOME", str(tmp_path))
    told = json.loads(recommend("--json").stdout)
    assert told["models"] == []
    assert told["classes"]
