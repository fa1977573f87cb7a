from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from edgerag.measure.sets import clustered

KEYS = {
    *("recall", "qps", "qps_hnswlib", "ratio_qps", "rss_bytes", "rss_hnswlib_bytes", "budget_bytes"),
    *("resident_max_bytes", "p50_ms", "p99_ms", "open_ms", "machine"),
}


def bench(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edgerag", "bench", "index", *arguments],
        env={**os.environ, "EDGERAG_HOME": str(home)},
        capture_output=True,
        text=True,
    )


def test_the_figures_of_a_small_file_of_vectors(tmp_path: Path) -> None:
    base, _ = clustered(600, dimension=24, queries=1, seed=1)
    np.save(tmp_path / "v.npy", base)
    done = bench(tmp_path, "--set", str(tmp_path / "v.npy"), "--budget", "8 MB", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures.keys() >= KEYS
    assert figures["rows"] == 588 and figures["queries"] == 12 and figures["budget_bytes"] == 8_000_000
    for level in figures["at"]:
        assert 1 >= level["recall"] >= level["target"] and 1 >= level["recall_hnswlib"] >= level["target"]
    assert figures["qps"] > 0 and figures["qps_hnswlib"] > 0 and figures["open_ms"] > 0


def test_for_people_it_says_the_same_in_words(tmp_path: Path) -> None:
    base, _ = clustered(300, dimension=8, queries=1, seed=1)
    np.save(tmp_path / "v.npy", base)
    done = bench(tmp_path, "--set", str(tmp_path / "v.npy"))
    assert done.returncode == 0, done.stderr
    assert "294 vectors of 8 dimensions" in done.stdout and "queries/s, hnswlib" in done.stdout


def test_a_file_that_holds_no_vectors_and_a_budget_that_is_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(b"no")
    done = bench(tmp_path, "--set", str(tmp_path / "v.npy"))
    assert done.returncode == 2 and "cannot be read as a .npy file" in done.stderr and not done.stdout
    done = bench(tmp_path, "--budget", "plenty")
    assert done.returncode == 2 and "--budget" in done.stderr and not done.stdout
