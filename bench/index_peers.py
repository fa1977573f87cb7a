"""edgerag's index beside its peers, in one run: hnswlib all in memory, usearch with mapped f32 vectors.

    python bench/index_peers.py [--sets c200k,text100k] [--budget SIZE] [--without usearch,...] [--sweep]

Each index is opened in a process of its own, pinned to one core, with one thread; only one of them works at a
time. For each recall of 0.95 and 0.99: the smallest ef that reaches it, queries per second (median of 5 runs,
each all queries in one call, the runs of the indexes taking turns; hnswlib is compiled for this processor), and
the memory that the process gained by opening and searching. ``--sweep`` adds recall and speed over a range of ef.
usearch is optional (usearch_peer.py): where it is absent the result says so. Results go to
bench/results/index_peers-<sha12>.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import usearch_peer
from native_hnswlib import native_hnswlib
from record import CHECKOUT, record
from segment_cache import index_files
from vector_sets import NAMES, cache_folders, vector_set

from edgerag.config import Settings, parse_size
from edgerag.measure import hnswlib_peer
from edgerag.measure.index import EDGERAG, RECALLS, RUNS
from edgerag.measure.pinned import PinnedProcess
from edgerag.measure.search_width import smallest_ef
from edgerag.measure.sets import VectorSet

SWEPT = (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320)
_PEERS = ("hnswlib", "usearch")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures edgerag's index beside its peers.")
    parser.add_argument("--sets", default="c200k,text100k", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--budget", type=parse_size, default=Settings().memory.budget, help="of edgerag's index")
    parser.add_argument("--without", default="", help=f"peers to leave out, of {', '.join(_PEERS)}")
    parser.add_argument("--sweep", action="store_true", help="also a range of ef for each")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    left_out = {name: "left out by the command" for name in arguments.without.split(",") if name}
    figures = {
        name: measure(vector_set(name), budget_bytes=arguments.budget, left_out=left_out, sweep=arguments.sweep)
        for name in arguments.sets.split(",")
    }
    parameters = {"budget_bytes": arguments.budget, "runs": RUNS}
    print(record("index_peers", figures, parameters=parameters, file=arguments.json))


def measure(data: VectorSet, *, budget_bytes: int, left_out: Mapping[str, str], sweep: bool) -> dict[str, Any]:
    """The figures of one set, by index; a peer that is not there has its reason in ``missing``."""
    files, missing = index_files(data), dict(left_out)
    opened = {"edgerag": (EDGERAG, files.segment, files.small_segment)}
    if "hnswlib" not in missing:
        opened["hnswlib"] = (hnswlib_peer.OPENER, files.hnswlib, files.small_hnswlib)
    if reason := usearch_peer.missing():
        missing["usearch"] = reason
    if "usearch" not in missing:
        opened["usearch"] = (usearch_peer.OPENER, usearch_peer.usearch_file(data), _small_usearch(data))
    for name, reason in missing.items():
        print(f"{data.name}: {name} is not measured: {reason}")
    # The openers of the peers, and an hnswlib that is as fast as it can be here.
    folders = [str(CHECKOUT / "bench"), str(native_hnswlib()), os.environ.get("PYTHONPATH", "")]
    environ = {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    with ExitStack() as stack:
        running: dict[str, PinnedProcess] = {}
        figures: dict[str, Any] = {}
        for name, (opener, file, small) in opened.items():
            process = stack.enter_context(PinnedProcess(data.queries, data.truth, environ=environ))
            facts = process.load(
                opener, file, dimension=data.base.shape[1], budget_bytes=budget_bytes, warmed_with=small
            )
            running[name] = process
            figures[name] = {
                "walk": facts["walk"],
                "open_ms": round(facts["open_ms"], 2),
                "file_bytes_on_disk": file.stat().st_size,
            }
        levels = [at_recall(running, target) for target in RECALLS]
        for name, process in running.items():
            figures[name] |= process.memory()
            if sweep:
                figures[name]["sweep"] = swept(process)
    for level in levels:
        print_level(data.name, level)
    return {"rows": len(data.base), **figures, "at": levels, "missing": missing}


def at_recall(running: Mapping[str, PinnedProcess], target: float) -> dict[str, Any]:
    """Every index with its smallest ef for that recall; edgerag's speed over each peer's, run by run."""
    widths = {name: smallest_ef(process.recall, target) for name, process in running.items()}
    runs = [{name: process.rate(widths[name][0]) for name, process in running.items()} for _ in range(RUNS)]
    level: dict[str, Any] = {"target": target}
    for name, (ef, found) in widths.items():
        level[name] = {"ef": ef, "recall": round(found, 4)}
        level[name] |= {key: round(statistics.median(r[name][key] for r in runs), 1) for key in ("qps", "qps_cpu")}
        level[name] |= {key: round(value, 4) for key, value in running[name].latencies(ef).items()}
        if name != "edgerag":
            for key in ("qps", "qps_cpu"):
                level[f"ratio_{key}_{name}"] = round(
                    statistics.median(r["edgerag"][key] / r[name][key] for r in runs), 3
                )
    return level


def swept(process: PinnedProcess) -> list[dict[str, float]]:
    """Recall and median queries per second over SWEPT, up to the first ef past all recalls asked for."""
    points: list[dict[str, float]] = []
    for ef in SWEPT:
        qps = statistics.median(process.rate(ef)["qps"] for _ in range(RUNS))
        points.append({"ef": ef, "recall": round(process.recall(ef), 4), "qps": round(qps, 1)})
        if points[-1]["recall"] >= (max(RECALLS) + 1) / 2:
            break
    return points


def print_level(name: str, level: Mapping[str, Any]) -> None:
    sides: Sequence[str] = [key for key, value in level.items() if isinstance(value, dict)]
    shown = ", ".join(f"{side} {level[side]['qps']:,.0f}/s (ef {level[side]['ef']})" for side in sides)
    ratios = ", ".join(f"{key} {value:.2f}" for key, value in level.items() if key.startswith("ratio_qps_cpu"))
    print(f"{name} at recall {level['target']}: {shown}; {ratios}")


def _small_usearch(data: VectorSet) -> Path:
    file = cache_folders()[0] / "small.usearch"
    usearch_peer.build_usearch(file, data.base[:32], threads=1)
    return file


if __name__ == "__main__":
    main()
