"""`edgerag bench embed | ask`: on a machine with nothing ingested, and nothing is left behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def environ(tmp_path: Path, models_folder: Path) -> dict[str, str]:
    """A home without a library, and a folder for temporary files that can be looked into."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models_folder)
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "EDGERAG_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}


def edgerag(*arguments: str, check: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgerag", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, **options)
    assert done.returncode == check, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.long
def test_embedding_is_measured_told_and_compared(tmp_path: Path, environ: dict[str, str]) -> None:
    first = edgerag("bench", "embed", "--quick", "--json", env=environ).stdout
    record = json.loads(first)
    assert {"embedding.together", "embedding.one_by_one", "embedding.question"} <= set(record["series"])
    assert record["machine"]["logical_cores"] >= 1 and record["models"]["embedder"]
    (tmp_path / "first.json").write_text(first)
    page = tmp_path / "page.html"
    told = edgerag(
        "bench", "embed", "--quick", "--html", str(page), "--against", str(tmp_path / "first.json"), env=environ
    )
    assert "passages/s" in told.stdout and "Against the earlier run" in told.stdout
    assert "<svg" in page.read_text(encoding="utf-8")
    assert not list((tmp_path / "tmp").glob("edgerag-bench-*"))
    assert not (tmp_path / "home" / "indexes").exists(), "nothing of the user's is touched"


def test_without_models_it_says_what_to_do(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "bare").mkdir()
    done = edgerag("bench", "embed", "--quick", check=1, env={**environ, "EDGERAG_HOME": str(tmp_path / "bare")})
    assert "models pull" in done.stderr and not list((tmp_path / "tmp").iterdir())


@pytest.mark.long
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_that_is_ended_leaves_nothing_behind(
    tmp_path: Path, environ: dict[str, str], by: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "edgerag", "bench", "ask", "--quick"], env=environ, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "tmp").glob("edgerag-bench-*/library/*")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.send_signal(by)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in said
    assert not list((tmp_path / "tmp").glob("edgerag-bench-*"))
