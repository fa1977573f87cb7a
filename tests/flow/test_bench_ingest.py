from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KEYS = {
    *("passages_per_s", "baseline_passages_per_s", "ratio", "overhead_share", "files_per_s_unchanged"),
    *("peak_rss_bytes", "failed", "machine"),
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edgerag", "bench", "ingest", "--quick", *arguments],
        # The trial has tests of its own, and would be remembered beside the checkout's models.
        env={**os.environ, "EDGERAG_INGEST_EMBED_WITH": "llama.cpp"},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_the_figures_of_a_folder(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    sections = [f"## Pump {n}\n\n" + f"The lid of pump {n} has four screws and one seal. " * 9 for n in range(8)]
    (docs / "pumps.md").write_text("# Pumps\n\n" + "\n\n".join(sections), encoding="utf-8")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7\n" + b"\0" * 400)
    done = bench("--docs", str(docs), "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.keys() >= KEYS
    assert figures["failed"] == 1 and figures["files"] == 2 and figures["chunks"] >= 8
    assert figures["passages_per_s"] == figures["llama_passages_per_s"] > 0
    assert figures["unchanged_files"] == 200 and figures["unchanged_embedded"] == 0
    assert 0 < figures["overhead_share"] < 1 and figures["peak_rss_bytes"] > 50_000_000
    if figures["baseline_passages_per_s"] is None:
        assert figures["ratio"] is None and "no baseline" in figures["notes"][0]
    else:
        assert figures["ratio"] > 0
    assert not list(docs.parent.glob("**/*.sqlite")), "the measured libraries are gone"


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_what_cannot_be_measured_is_told(tmp_path: Path) -> None:
    done = bench("--docs", str(tmp_path / "nowhere"))
    assert done.returncode == 2 and "nowhere" in done.stderr and not done.stdout
    (tmp_path / "empty").mkdir()
    done = bench("--docs", str(tmp_path / "empty"))
    assert done.returncode == 2 and "no text" in done.stderr and not done.stdout
