"""The index where it is hard: little memory, a cold start, several threads, growth, order on disk.

    python bench/index_scenarios.py [SCENARIO...] [--set c1m] [--budget-share 0.1] [--queries N] [--threads 1,2]

tight     memory.budget at a tenth of what hnswlib holds (vector, links and label of every row); page cache warm
cgroup    the same in a memory control group of budget + 150 MB, page cache included; starts cold (needs root)
classic   process start + 100 queries, edgerag against hnswlib's load_index; mean latency with all of it, memory
open      milliseconds and anonymous memory of opening
threads   queries per second of 1, 2, ... threads, and per core
append    1,000 chunks more in a library of the whole set: which segment files change
compact   20 segments into as few as may be: recall before and after, most memory
locality  faults, disk reads and p99 under half that budget: rows as they were built ("given"), and as we write them

The set is one of vector_sets.py; compact takes 100,000 rows from its start. A scenario that this tree or
this system cannot run says why in its result. Results go to bench/results/index_<scenario>-<sha12>.json.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

import numpy as np
from memory_cgroup import Unavailable, drop_page_cache, fill_page_cache, limited
from record import CHECKOUT, record
from segment_cache import index_files, segment_file
from vector_library import add_rows, found_rows, segment_files
from vector_sets import NAMES, cache_folders, hnswlib_file, vector_set

from edgerag.config import Settings
from edgerag.index.hnsw import build
from edgerag.index.hnsw.build import GraphSettings
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.segments import SealSettings
from edgerag.measure import hnswlib_peer
from edgerag.measure.index import EDGERAG, RECALLS, RUNS, IndexFiles, graph_of
from edgerag.measure.memory import page_cache_bytes, read_memory, sampled_peak
from edgerag.measure.pinned import PinnedProcess, usable_cores
from edgerag.measure.search_width import smallest_ef
from edgerag.measure.searchers import identity_of
from edgerag.measure.sets import K, VectorSet, exact_truth, recall

if TYPE_CHECKING:
    from edgerag.types import Vectors

_GROUP_ROOM_BYTES = 150_000_000  # beside the budget: the interpreter, numpy, queries, page cache
_CLASSIC_QUERIES = 100
_LIBRARY_ROWS, _ADDED_ROWS = 20_000, 1_000
_COMPACTED_SEGMENTS = 20
_BESIDE_BYTES = 100  # of hnswlib, for a row: lock, level, label table, upper levels
_DEFAULT_EF = Settings().retrieval.ef_search


@dataclass(frozen=True, slots=True)
class Case:
    """What a scenario is run with."""

    data: VectorSet
    budget_bytes: int
    threads: tuple[int, ...]

    @property
    def dimension(self) -> int:
        return int(self.data.base.shape[1])

    @property
    def target(self) -> float:
        return RECALLS[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the index where it is hard.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; none: all")
    parser.add_argument("--set", default="c1m", choices=NAMES, dest="set_name")
    parser.add_argument("--budget-share", type=float, default=0.1, help="of what hnswlib holds (default 0.1)")
    parser.add_argument("--queries", type=int, default=2_000, help="queries at most")
    parser.add_argument("--threads", default="1,2", help="thread counts, by commas")
    parser.add_argument("--json", type=Path, help="where the result goes (one scenario; default: bench/results)")
    arguments = parser.parse_args()
    unknown = set(arguments.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"unknown scenario {sorted(unknown)[0]!r}; known: {', '.join(SCENARIOS)}")
    data = first_queries(vector_set(arguments.set_name), arguments.queries)
    budget_bytes = int(arguments.budget_share * held_bytes(data))
    case = Case(data, budget_bytes, tuple(int(count) for count in arguments.threads.split(",")))
    parameters = {"set": data.name, "rows": len(data.base), "queries": len(data.queries), "budget_bytes": budget_bytes}
    for name in arguments.scenarios or SCENARIOS:
        figures = SCENARIOS[name](case)
        for key, value in figures.items():
            print(f"{name:9} {key:28} {value}")
        print(record(f"index_{name}", figures, parameters=parameters, file=arguments.json))


def first_queries(data: VectorSet, count: int) -> VectorSet:
    return VectorSet(data.name, data.base, data.queries[:count], data.truth[:count])


def held_bytes(data: VectorSet, *, m: int = GraphSettings().m) -> int:
    """What an index of raw vectors, links and labels holds: 1,676 bytes per vector of 384 dimensions."""
    rows, dimension = data.base.shape
    return int(rows * (4 * dimension + 4 * (1 + 2 * m) + 8))


def rounded(figures: dict[str, float], digits: int = 4) -> dict[str, float]:
    return {key: round(value, digits) for key, value in figures.items()}


# ---------------------------------------------------------------- little memory


def tight(case: Case) -> dict[str, Any]:
    files = index_files(case.data)
    fill_page_cache(files.segment)
    with PinnedProcess(case.data.queries, case.data.truth) as process:
        opened = process.load(
            EDGERAG,
            files.segment,
            dimension=case.dimension,
            budget_bytes=case.budget_bytes,
            warmed_with=files.small_segment,
        )
        return {"walk": opened["walk"], "budget_bytes": case.budget_bytes, **searched_tightly(process, case)}


def searched_tightly(process: PinnedProcess, case: Case) -> dict[str, Any]:
    ef, found = smallest_ef(process.recall, case.target)
    return {
        "ef": ef,
        "recall": round(found, 4),
        **rounded(process.latencies(ef)),
        **process.most_memory(ef),
        **process.memory(),
    }


def cgroup(case: Case) -> dict[str, Any]:
    limit_bytes = case.budget_bytes + _GROUP_ROOM_BYTES
    files = index_files(case.data)
    try:
        with limited(limit_bytes) as group:
            drop_page_cache(files.segment)
            cached_at_start_bytes = page_cache_bytes(files.segment)
            with group.inherited():
                process = PinnedProcess(case.data.queries, case.data.truth)
            with process:
                process.load(
                    EDGERAG,
                    files.segment,
                    dimension=case.dimension,
                    budget_bytes=case.budget_bytes,
                    warmed_with=files.small_segment,
                )
                first = rounded(process.latencies(_DEFAULT_EF))
                figures = searched_tightly(process, case)
                return {
                    **figures,
                    "cold_pass": first,
                    "cached_at_start_bytes": cached_at_start_bytes,
                    "budget_bytes": case.budget_bytes,
                    "limit_bytes": limit_bytes,
                    **group.usage(),
                }
    except Unavailable as reason:
        return {"not_measured": str(reason)}


def locality(case: Case) -> dict[str, Any]:
    """Each order from a cold page cache on, then warm, with half the budget: at a tenth, the walk never faults."""
    budget_bytes = case.budget_bytes // 2
    figures: dict[str, Any] = {"budget_bytes": budget_bytes}
    orders: tuple[Literal["given", "local"], ...] = ("given", "local")
    for order in orders:
        file = segment_file(case.data, order=order)
        drop_page_cache(file)
        with PinnedProcess(case.data.queries, case.data.truth) as process:
            process.load(EDGERAG, file, dimension=case.dimension, budget_bytes=budget_bytes)
            cold = rounded(process.latencies(_DEFAULT_EF))
            fill_page_cache(file)
            figures[order] = {"cold": cold, "warm": searched_tightly(process, case)}
    return figures


# ---------------------------------------------------------------- starting


def classic(case: Case) -> dict[str, Any]:
    """Page cache warm and cold; the runs of the two take turns."""
    files, efs = index_files(case.data), best_widths(case)
    bare_rss = statistics.median(whole_process("bare", files, case, ef=0)[1] for _ in range(RUNS))
    figures: dict[str, Any] = {"queries": _CLASSIC_QUERIES, "ef": efs, "rss_bare_bytes": int(bare_rss)}
    for state, prepare in (("warm", fill_page_cache), ("cold", drop_page_cache)):
        runs: dict[str, list[tuple[float, int]]] = {name: [] for name in efs}
        for _ in range(RUNS):
            for name, ef in efs.items():
                prepare(files.segment if name == "edgerag" else files.hnswlib)
                runs[name].append(whole_process(name, files, case, ef=ef))
        mean_ms = {name: 1e3 * statistics.median(s for s, _ in each) / _CLASSIC_QUERIES for name, each in runs.items()}
        rss = {name: int(statistics.median(r for _, r in each)) for name, each in runs.items()}
        figures[state] = {
            "mean_ms": rounded(mean_ms),
            "ratio_latency": round(mean_ms["hnswlib"] / mean_ms["edgerag"], 3),
            "rss_bytes": rss,
            "share_of_rss": round(rss["edgerag"] / rss["hnswlib"], 4),
            "share_of_index_memory": round((rss["edgerag"] - bare_rss) / (rss["hnswlib"] - bare_rss), 4),
        }
    return figures


def best_widths(case: Case) -> dict[str, int]:
    """The smallest ef of each for the recall asked for."""
    files = index_files(case.data)
    opened = {"edgerag": (EDGERAG, files.segment), "hnswlib": (hnswlib_peer.OPENER, files.hnswlib)}
    widths = {}
    for name, (opener, file) in opened.items():
        with PinnedProcess(case.data.queries, case.data.truth) as process:
            process.load(opener, file, dimension=case.dimension, budget_bytes=case.budget_bytes)
            widths[name] = smallest_ef(process.recall, case.target)[0]
    return widths


def whole_process(engine: str, files: IndexFiles, case: Case, *, ef: int) -> tuple[float, int]:
    """(seconds from start to end, RSS at the end in bytes) of a process that asks 100 queries."""
    index = files.hnswlib if engine == "hnswlib" else files.segment
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        queries = Path(folder) / "queries.npy"
        np.save(queries, case.data.queries[:_CLASSIC_QUERIES])
        script = str(CHECKOUT / "bench" / "classic_process.py")
        command = [sys.executable, script, engine, str(index), str(queries), str(ef), str(case.budget_bytes)]
        started = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return time.perf_counter() - started, int(done.stdout)


def opening(case: Case) -> dict[str, Any]:
    files = index_files(case.data)
    runs = []
    for _ in range(RUNS):
        with PinnedProcess(case.data.queries[:_CLASSIC_QUERIES], case.data.truth[:_CLASSIC_QUERIES]) as process:
            opened = process.load(
                EDGERAG,
                files.segment,
                dimension=case.dimension,
                budget_bytes=case.budget_bytes,
                warmed_with=files.small_segment,
            )
            process.latencies(_DEFAULT_EF)
            runs.append((opened, process.memory()))
    return {
        "open_ms": round(statistics.median(opened["open_ms"] for opened, _ in runs), 3),
        "open_max_ms": round(max(opened["open_ms"] for opened, _ in runs), 3),
        "anonymous_after_open_bytes": median_of([opened["anonymous_bytes"] for opened, _ in runs]),
        "anonymous_after_100_searches_bytes": median_of([memory["anonymous_bytes"] for _, memory in runs]),
    }


def median_of(values: list[int | None]) -> int | None:
    """None where the system did not tell."""
    told = [value for value in values if value is not None]
    return int(statistics.median(told)) if told else None


# ---------------------------------------------------------------- threads


def threads(case: Case) -> dict[str, Any]:
    """At full speed: the budget is the size of the file."""
    files, cores = index_files(case.data), usable_cores()
    with PinnedProcess(case.data.queries, case.data.truth) as process:
        process.load(
            EDGERAG,
            files.segment,
            dimension=case.dimension,
            budget_bytes=2 * files.segment.stat().st_size,
            warmed_with=files.small_segment,
        )
        ef, found = smallest_ef(process.recall, case.target)
        runs: list[dict[int, dict[str, float]]] = []
        for _ in range(RUNS):
            runs.append({})
            for count in case.threads:
                process.pin(cores[-count:])
                runs[-1][count] = process.threads_rate(ef, threads=count)
    fewest = min(case.threads)
    rates = {
        key: {n: statistics.median(run[n][key] for run in runs) for n in case.threads} for key in ("qps", "qps_cpu")
    }
    return {
        "ef": ef,
        "recall": round(found, 4),
        "cores": len(cores),
        "qps": {str(count): round(rate, 1) for count, rate in rates["qps"].items()},
        "scaling_per_thread": {
            str(count): round(rate / count * fewest / rates["qps"][fewest], 3) for count, rate in rates["qps"].items()
        },
        # What a second on a core achieves: free of what other programs take away, blind to waiting for locks.
        "scaling_per_cpu_second": {
            str(count): round(rate / rates["qps_cpu"][fewest], 3) for count, rate in rates["qps_cpu"].items()
        },
    }


# ---------------------------------------------------------------- growth


def append(case: Case) -> dict[str, Any]:
    """A library of the whole set in one segment; then 1,000 chunks more (the queries serve as such)."""
    rows = len(case.data.base)
    added = np.ascontiguousarray(case.data.queries[:_ADDED_ROWS])
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-", dir=cache_folders()[0]) as name:
        folder = Path(name) / "library"
        with new_library(folder, case, settings=SealSettings(max_rows=2 * rows)) as library:
            add_rows(library, case.data.base, first=0)
            with graph_at_hand(case.data):
                library.seal()
            before = segment_files(folder)
            add_rows(library, added, first=rows)
            started = time.perf_counter()
            library.seal()
            seconds = time.perf_counter() - started
        after = segment_files(folder)
    return {
        "rows": rows,
        "added_rows": len(added),
        "seal_s": round(seconds, 3),
        "segments_before": len(before),
        "segments_after": len(after),
        "segments_rewritten": sum(after.get(file) != facts for file, facts in before.items()),
        "bytes_written": sum(size for file, (_, size, _) in after.items() if file not in before),
    }


@contextmanager
def graph_at_hand(data: VectorSet) -> Iterator[None]:
    """Building the graph of exactly this set takes the one in the cache: what follows is the same, in minutes."""

    def cached_graph(vectors: Vectors, **_: Any) -> Graph:
        if not np.array_equal(vectors[::1000], data.base[::1000].astype("<f2").astype("<f4")):
            raise ValueError("other vectors than those of the set")
        return graph_of(hnswlib_file(data), data)

    with mock.patch.object(build, "build_graph", cached_graph):
        yield


def compact(case: Case) -> dict[str, Any]:
    rows = min(5 * _LIBRARY_ROWS, len(case.data.base))
    base = case.data.base[:rows]
    truth = exact_truth(base, case.data.queries)
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as name:
        folder = Path(name) / "library"
        # With segments this small, nothing is merged while they are written.
        rows_each = -(-rows // _COMPACTED_SEGMENTS)
        small = SealSettings(max_rows=rows_each, graph_rows=1)
        with new_library(folder, case, settings=small) as library:
            for start in range(0, rows, rows_each):
                add_rows(library, base[start : start + rows_each], first=start)
                library.seal()
        figures: dict[str, Any] = {"rows": rows, "segments_before": len(segment_files(folder))}
        with open_library(folder, mode="write", residency=Residency(case.budget_bytes)) as library:
            figures["recall_before"] = library_recall(library, case, truth)
            before, started = read_memory(), time.perf_counter()
            with sampled_peak() as peak:
                library.compact()
            figures["compact_s"] = round(time.perf_counter() - started, 1)
            figures["rss_gained_max_bytes"] = peak.rss_bytes - before.rss_bytes
            figures["bound_bytes"] = case.budget_bytes + construction_bytes(case.data, rows)
            figures["recall_after"] = library_recall(library, case, truth)
        figures["segments_after"] = len(segment_files(folder))
    return figures


def construction_bytes(data: VectorSet, rows: int) -> int:
    """What a segment of so many rows takes while hnswlib builds it: its index, 100 bytes a row beside it, the input."""
    return rows * (held_bytes(data) // len(data.base) + _BESIDE_BYTES + 4 * int(data.base.shape[1]))


def new_library(folder: Path, case: Case, *, settings: SealSettings | None = None) -> Library:
    return open_library(
        folder,
        mode="write",
        residency=Residency(case.budget_bytes),
        identity=identity_of(case.dimension),
        seal_settings=settings,
    )


def library_recall(library: Library, case: Case, truth: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    found = [found_rows(library, query, limit=K, ef_search=_DEFAULT_EF) for query in case.data.queries]
    return round(recall(np.array(found, dtype=np.int64), truth), 4)


SCENARIOS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "tight": tight,
    "cgroup": cgroup,
    "classic": classic,
    "open": opening,
    "threads": threads,
    "append": append,
    "compact": compact,
    "locality": locality,
}

if __name__ == "__main__":
    main()
