"""Results are opened as plots, walked through, and written as pictures."""

from __future__ import annotations

import json
from pathlib import Path

from driving import running

from edgerag.ui.tui.screens.plots import PlotsScreen

STAGE = {"hit@1": 0.5, "hit@5": 0.8, "recall@10": 0.8, "mrr@10": 0.6, "ndcg@10": 0.7}
EVAL = {
    "set": "scifact",
    "figures": {
        "stages": {"keyword": STAGE, "fused": STAGE},
        "hit_curve": {"keyword": [0.5, 0.6, 0.7], "fused": [0.55, 0.7, 0.75]},
        "latency_ms": {"embed": {"p50": 5.0, "p95": 9.0}},
    },
}


async def test_a_result_is_opened_by_its_path_and_walked_through(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(EVAL))
    async with running(size=(100, 30)) as driver:
        driver.app.action_plots()
        await driver.see("A result: result.json")
        await driver.press(*str(file), "enter")
        await driver.see("scifact: ranking", "1 of 3", "hit@1", "keyword █", "0.5")
        await driver.press("n")
        await driver.see("scifact: hit@k", "2 of 3", "fused")
        await driver.press("right")
        await driver.see("scifact: times", "embed")
        await driver.press("p", "w")
        await driver.see("6 pictures written")
        assert (tmp_path / "result-charts" / "ranking.png").read_bytes().startswith(b"\x89PNG")
        await driver.press("escape")
        await driver.see("Type a question below")


async def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("[]")
    async with running(size=(200, 30)) as driver:
        driver.app.open_screen(PlotsScreen(file))
        await driver.see("is no result")
