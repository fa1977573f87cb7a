"""``edgerag bench index``: edgerag's segment against hnswlib in memory, on the same graph, in the same minutes.

Each is opened in a process of its own, pinned to one core. Their timed runs alternate, so that what else the
machine does hits both; a speed is the median of five runs, each run all queries in one call.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgerag.errors import UsageError
from edgerag.index.hnsw.build import GraphSettings, read_graph
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.repair import link_unreachable
from edgerag.index.hnsw.write import write_segment
from edgerag.measure import hnswlib_peer, searchers
from edgerag.measure.facts import machine_facts
from edgerag.measure.pinned import PinnedProcess
from edgerag.measure.search_width import smallest_ef
from edgerag.measure.sets import VectorSet, clustered_set, file_set

RECALLS = (0.95, 0.99)
RUNS = 5
DEFAULT_ROWS = 20_000  # built in some seconds on a laptop
EDGERAG = f"{searchers.__name__}:open_edgerag"
_WARMING_ROWS = 32
_FEWEST_ROWS = 10  # recall is counted over ten hits


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """One graph over the same vectors: as edgerag's segment, and as hnswlib's file. Small ones to warm up with."""

    segment: Path
    hnswlib: Path
    small_segment: Path
    small_hnswlib: Path


def bench_index(
    *, rows: int | None, vectors: str, budget_bytes: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures, by name, as values for JSON. ``vectors`` is "clustered" or a .npy file; ``rows`` None for all
    of a file. Raises UsageError for a set that cannot be measured."""
    data = clustered_set(rows or DEFAULT_ROWS) if vectors == "clustered" else file_set(Path(vectors), rows=rows)
    if len(data.base) < _FEWEST_ROWS:
        raise UsageError(f"{len(data.base)} vectors are too few: recall is counted over {_FEWEST_ROWS} hits.")
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        progress(f"Building the graph of {len(data.base):,} vectors with hnswlib, in one thread.")
        files = build_files(Path(folder), data)
        progress("Measuring; best done on a machine that does nothing else.")
        return compare(data, files, budget_bytes=budget_bytes, progress=progress)


def build_files(folder: Path, data: VectorSet) -> IndexFiles:
    """Builds the graph once, and writes it in both forms."""
    hnswlib_file = folder / "index.hnswlib"
    hnswlib_peer.build_file(hnswlib_file, np.ascontiguousarray(data.base), settings=GraphSettings())
    segment = folder / "index.hnsw"
    write_measured_segment(segment, data, graph_of(hnswlib_file, data))
    return IndexFiles(segment, hnswlib_file, *small_files(folder, data))


def small_files(folder: Path, data: VectorSet) -> tuple[Path, Path]:
    """(segment, hnswlib file) of a few rows; opened and searched before memory is read first."""
    few = VectorSet("small", np.ascontiguousarray(data.base[:_WARMING_ROWS]), data.queries, data.truth)
    segment, hnswlib_file = folder / "small.hnsw", folder / "small.hnswlib"
    hnswlib_peer.build_file(hnswlib_file, few.base, settings=GraphSettings())
    write_measured_segment(segment, few, graph_of(hnswlib_file, few))
    return segment, hnswlib_file


def graph_of(hnswlib_file: Path, data: VectorSet) -> Graph:
    """The graph in hnswlib's file, taken over as the building of a segment does."""
    rows, dimension = data.base.shape
    graph = read_graph(hnswlib_file, count=rows, dimension=dimension, settings=GraphSettings())
    return link_unreachable(graph, data.base)


def write_measured_segment(path: Path, data: VectorSet, graph: Graph) -> None:
    """The segment as a library would write it; its labels are the rows of the set."""
    write_segment(
        path,
        labels=np.arange(len(data.base), dtype=np.int64),
        vectors=data.base,
        graph=graph,
        identity=searchers.identity_of(data.base.shape[1]),
    )


def compare(
    data: VectorSet, files: IndexFiles, *, budget_bytes: int, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of both. The top level holds those at the first recall of RECALLS, ``at`` those at each."""
    dimension = data.base.shape[1]
    with (
        PinnedProcess(data.queries, data.truth) as ours,
        PinnedProcess(data.queries, data.truth) as theirs,
    ):
        opened = ours.load(
            EDGERAG, files.segment, dimension=dimension, budget_bytes=budget_bytes, warmed_with=files.small_segment
        )
        loaded = theirs.load(hnswlib_peer.OPENER, files.hnswlib, dimension=dimension, warmed_with=files.small_hnswlib)
        levels = []
        for target in RECALLS:
            levels.append(_at_recall(ours, theirs, target))
            progress(_line(levels[-1]))
        memory, memory_hnswlib = ours.memory(), theirs.memory()
        most = ours.most_memory(levels[0]["ef"])
    return {
        **{key: levels[0][key] for key in ("recall", "qps", "qps_hnswlib", "ratio_qps", "p50_ms", "p99_ms")},
        "rss_bytes": memory["rss_bytes"],
        "rss_hnswlib_bytes": memory_hnswlib["rss_bytes"],
        "budget_bytes": budget_bytes,
        "resident_max_bytes": most["resident_max_bytes"],
        "open_ms": round(opened["open_ms"], 2),
        "load_hnswlib_ms": round(loaded["open_ms"], 2),
        "anonymous_bytes": memory["anonymous_bytes"],
        "file_bytes": memory["file_bytes"],
        "page_cache_bytes": memory["page_cache_bytes"],
        "anonymous_after_open_bytes": opened["anonymous_bytes"],
        "rss_max_bytes": most["rss_max_bytes"],
        "rss_high_water_bytes": memory["rss_high_water_bytes"],
        "at": levels,
        "walk": opened["walk"],
        "hnswlib_instructions": hnswlib_peer.instructions(),
        "set": data.name,
        "rows": len(data.base),
        "dimension": dimension,
        "queries": len(data.queries),
        "segment_bytes": files.segment.stat().st_size,
        "hnswlib_bytes": files.hnswlib.stat().st_size,
        "machine": machine_facts(),
    }


def _at_recall(ours: PinnedProcess, theirs: PinnedProcess, target: float) -> dict[str, Any]:
    """Each with the smallest ef that reaches ``target``; their runs alternate."""
    ef, recall = smallest_ef(ours.recall, target)
    ef_hnswlib, recall_hnswlib = smallest_ef(theirs.recall, target)
    pairs = [(ours.rate(ef), theirs.rate(ef_hnswlib)) for _ in range(RUNS)]
    qps, qps_hnswlib = (statistics.median(run["qps"] for run in side) for side in zip(*pairs, strict=True))
    single, single_hnswlib = ours.latencies(ef), theirs.latencies(ef_hnswlib)
    return {
        "target": target,
        "recall": round(recall, 4),
        "recall_hnswlib": round(recall_hnswlib, 4),
        "ef": ef,
        "ef_hnswlib": ef_hnswlib,
        "qps": round(qps, 1),
        "qps_hnswlib": round(qps_hnswlib, 1),
        "ratio_qps": round(statistics.median(mine["qps"] / other["qps"] for mine, other in pairs), 3),
        "ratio_qps_cpu": round(statistics.median(mine["qps_cpu"] / other["qps_cpu"] for mine, other in pairs), 3),
        "qps_runs": [round(mine["qps"], 1) for mine, _ in pairs],
        "ratio_qps_runs": [round(mine["qps"] / other["qps"], 3) for mine, other in pairs],
        "p50_ms": round(single["p50_ms"], 4),
        "p99_ms": round(single["p99_ms"], 4),
        "p50_hnswlib_ms": round(single_hnswlib["p50_ms"], 4),
        "p99_hnswlib_ms": round(single_hnswlib["p99_ms"], 4),
    }


def _line(level: dict[str, Any]) -> str:
    return (
        f"recall@10 {level['recall']:.3f}: {level['qps']:,.0f} queries/s; "
        f"hnswlib {level['recall_hnswlib']:.3f}: {level['qps_hnswlib']:,.0f}; {level['ratio_qps']:.2f} times"
    )
