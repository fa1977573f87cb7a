"""The measured process: opens one index on one core, then does what it is asked, line by line.

Requests and answers are JSON lines on standard input and output; the asking side is :mod:`edgerag.measure.pinned`.
A process of its own for each index, so that the memory of one is not the memory of the other.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgerag.measure.memory import (
    Memory,
    high_water_bytes,
    page_cache_bytes,
    read_memory,
    reset_high_water,
    sampled_peak,
)
from edgerag.measure.searchers import Searcher
from edgerag.measure.sets import K, recall

if TYPE_CHECKING:
    from edgerag.types import Vectors

_FEW = 3  # queries of the search before memory is first read, and while a thread starts


class Measured:
    """One index and the queries to ask it. Every public method is a request; its result goes out as JSON."""

    def __init__(self, queries: Vectors, truth: NDArray[np.int64]) -> None:
        self._queries, self._truth = queries, truth
        self._before: Memory = read_memory()
        self._searcher: Searcher | None = None
        self._file: Path | None = None

    def load(self, opener: str, *, file: str, dimension: int, budget_bytes: int, warmed_with: str) -> dict[str, Any]:
        """Opens ``file`` with ``opener``, "module:function", and says how long it took and what memory it took.

        ``warmed_with``: a small index that is opened, searched and closed before memory is read first, so that
        the pages of code and the arrays of a first search are not counted; "" for none.
        """
        module, _, function = opener.partition(":")
        open_it: Callable[..., Searcher] = getattr(import_module(module), function)
        if warmed_with:
            small = open_it(Path(warmed_with), dimension=dimension, budget_bytes=budget_bytes)
            small.search_many(self._queries[:_FEW], limit=K, ef=K)
            small.search_one(self._queries[0], limit=K, ef=K)
            small.close()
        self._before = read_memory()
        reset_high_water()
        self._file, started = Path(file), time.perf_counter()
        self._searcher = open_it(self._file, dimension=dimension, budget_bytes=budget_bytes)
        open_ms = 1e3 * (time.perf_counter() - started)
        return {"open_ms": open_ms, **self.memory(), "walk": self._searcher.walk}

    def memory(self) -> dict[str, Any]:
        """What the process holds more than before the index was opened, the most it held more since then, and what
        the page cache holds of the file."""
        grown, highest = read_memory().since(self._before), high_water_bytes()
        return {
            "rss_bytes": grown.rss_bytes,
            "anonymous_bytes": grown.anonymous_bytes,
            "file_bytes": grown.file_bytes,
            "rss_high_water_bytes": None if highest is None else highest - self._before.rss_bytes,
            "page_cache_bytes": page_cache_bytes(self._file) if self._file else 0,
        }

    def recall(self, ef: int) -> float:
        return recall(self._opened.search_many(self._queries, limit=K, ef=ef), self._truth)

    def rate(self, ef: int) -> dict[str, float]:
        """Queries per second of all queries in one call; ``qps_cpu`` counts only the time on the core, so that
        other programs that take it away do not show."""
        started, started_cpu = time.perf_counter(), time.process_time()
        self._opened.search_many(self._queries, limit=K, ef=ef)
        seconds, seconds_cpu = time.perf_counter() - started, time.process_time() - started_cpu
        return {"qps": len(self._queries) / seconds, "qps_cpu": len(self._queries) / seconds_cpu}

    def latencies(self, ef: int) -> dict[str, float]:
        """Milliseconds of single searches; page faults, and KiB that came from the disk, per search."""
        searcher, milliseconds = self._opened, []
        before = resource.getrusage(resource.RUSAGE_SELF)
        for query in self._queries:
            started = time.perf_counter()
            searcher.search_one(query, limit=K, ef=ef)
            milliseconds.append(1e3 * (time.perf_counter() - started))
        after = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "mean_ms": statistics.fmean(milliseconds),
            "p50_ms": float(np.percentile(milliseconds, 50)),
            "p99_ms": float(np.percentile(milliseconds, 99)),
            "max_ms": max(milliseconds),
            "minor_faults": (after.ru_minflt - before.ru_minflt) / len(self._queries),
            "major_faults": (after.ru_majflt - before.ru_majflt) / len(self._queries),
            # The kernel counts in sectors of 512 bytes.
            "disk_kib": (after.ru_inblock - before.ru_inblock) / 2 / len(self._queries),
        }

    def most_memory(self, ef: int) -> dict[str, int | None]:
        """The most memory while all queries are searched one by one, over what there was before opening.

        ``resident_max_bytes`` counts pages of files, which is what a mapped index is made of.
        """
        searcher = self._opened
        with sampled_peak() as peak:
            for query in self._queries:
                searcher.search_one(query, limit=K, ef=ef)
        told = peak.samples > 0 and self._before.file_bytes is not None
        return {
            "resident_max_bytes": peak.file_bytes - (self._before.file_bytes or 0) if told else None,
            "rss_max_bytes": peak.rss_bytes - self._before.rss_bytes if told else None,
            "samples": peak.samples,
        }

    def threads_rate(self, ef: int, *, threads: int) -> dict[str, float]:
        """As :meth:`rate`, of ``threads`` threads that each ask all queries, in one call, at the same time."""
        searcher = self._opened
        ready = threading.Barrier(threads + 1)

        def ask() -> None:
            searcher.search_many(self._queries[:_FEW], limit=K, ef=ef)
            ready.wait()
            searcher.search_many(self._queries, limit=K, ef=ef)

        workers = [threading.Thread(target=ask) for _ in range(threads)]
        for worker in workers:
            worker.start()
        ready.wait()
        started, started_cpu = time.perf_counter(), time.process_time()
        for worker in workers:
            worker.join()
        seconds, seconds_cpu = time.perf_counter() - started, time.process_time() - started_cpu
        asked = threads * len(self._queries)
        return {"qps": asked / seconds, "qps_cpu": asked / seconds_cpu}

    def pin(self, cores: list[int]) -> list[int]:
        """Runs on these cores from now on, where the system can do that; gives those in force, [] for any."""
        if not hasattr(os, "sched_setaffinity"):
            return []
        os.sched_setaffinity(0, cores)
        return sorted(os.sched_getaffinity(0))

    @property
    def _opened(self) -> Searcher:
        if self._searcher is None:
            raise ValueError("nothing is opened yet")
        return self._searcher


def main() -> None:
    """Serves requests {"do": name, "with": [arguments], "and": {named ones}} until standard input ends."""
    queries_file, truth_file = sys.argv[1:]
    measured = Measured(np.load(queries_file), np.load(truth_file))
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(measured, request["do"])(*request["with"], **request["and"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
