"""A few of the random faults of bench/injected_faults.py, with its own judgement; `make faults` draws many."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from faults.harness import why_not

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_random_faults_lose_nothing_and_have_nothing_wrong_said(tmp_path: Path) -> None:
    bench = CHECKOUT / "bench" / "injected_faults.py"
    command = [sys.executable, str(bench), "--faults", "21", "--seed", "2", "--json", str(tmp_path / "faults.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    figures = json.loads((tmp_path / "faults.json").read_text(encoding="utf-8"))["figures"]
    judged = {name: figures[name] for name in ("lost", "wrong", "unwhole", "raw")}
    assert judged == dict.fromkeys(judged, 0), [point for point in figures["each"] if judged.keys() & point.keys()]
    assert len(figures["by_kind"]) == 7
    assert done.returncode == 0
