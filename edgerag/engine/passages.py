"""Many texts over several workers: jobs of even size, the longest first, and every vector in its place.

A worker computes one job at a time, on a thread of its own. Workers do not wait for each other, so that another
program on one of the cores slows one of them and not all.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edgerag.machine.affinity import pin_thread
from edgerag.machine.courtesy import step_back

if TYPE_CHECKING:
    from edgerag.types import Vectors

Tokens = Sequence[int]
Between = Callable[[], None]


def go_on() -> None:
    """What is done between two jobs where nobody has to be let past."""


class Worker(Protocol):
    """Computes the vectors of a few texts, wherever it runs."""

    def compute(self, texts: Sequence[Tokens]) -> Vectors:
        """(n, dim) float32 in the order of ``texts``, of any length. The vector of a text is the same in any company,
        but for rounding. Raises ModelError."""
        ...


class Workers:
    """Threads, one for each worker."""

    def __init__(
        self,
        workers: Sequence[Worker],
        *,
        batch_tokens: int,
        cpus: Sequence[Sequence[int]] = (),
        between: Between = go_on,
        niceness: int = 0,
    ) -> None:
        """``batch_tokens``: about so many in one job; 0: every text is a job of its own. ``cpus``: where each worker
        is held; none: where the system puts it. ``between`` is called before each job and may wait. ``niceness``: of
        the threads."""
        self._workers = tuple(workers)
        self._batch_tokens = batch_tokens
        self._between = between
        self._niceness = niceness
        self._cpus = cpus
        self._placing = threading.Lock()
        self._placed = 0
        # Threads are made when there is work for them.
        self._pool = ThreadPoolExecutor(len(self._workers), thread_name_prefix="embed", initializer=self._place)

    def compute(self, texts: Sequence[Tokens], *, dimension: int) -> Vectors:
        """(n, dim) float32 in the order of ``texts``. Raises what a worker raises."""
        vectors = np.empty((len(texts), dimension), dtype=np.float32)
        waiting = deque(jobs([len(text) for text in texts], workers=len(self._workers), tokens=self._batch_tokens))

        def work(worker: Worker) -> None:
            while True:
                self._between()
                try:
                    rows = waiting.popleft()
                except IndexError:  # none is left
                    return
                try:
                    vectors[rows] = worker.compute([texts[row] for row in rows])
                except BaseException:
                    waiting.clear()  # the others need not go on
                    raise

        running = [self._pool.submit(work, worker) for worker in self._workers[: len(waiting)]]
        for future in running:
            future.result()
        return vectors

    def close(self) -> None:
        self._pool.shutdown()

    def _place(self) -> None:
        with self._placing:
            number, self._placed = self._placed, self._placed + 1
        step_back(self._niceness, pid=threading.get_native_id())
        if number < len(self._cpus):
            pin_thread(self._cpus[number])  # refused by a cpuset: then it runs where the system puts it


def jobs(lengths: Sequence[int], *, workers: int, tokens: int) -> list[list[int]]:
    """The numbers of the texts, in jobs, the largest first.

    ``tokens``: about so many in one job, 0: one text in each. There are as many jobs for each worker, and each gets
    the longest text that is left when it is the smallest: they end together.
    """
    longest_first = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    if not tokens:
        return [[number] for number in longest_first]
    rounds = max(1, -(-sum(lengths) // (workers * tokens)))
    heap: list[tuple[int, int, int, list[int]]]  # tokens, texts, number of the job, numbers of its texts
    heap = [(0, 0, job, []) for job in range(min(len(lengths), workers * rounds))]
    for number in longest_first:
        size, count, job, members = heap[0]
        members.append(number)
        heapq.heapreplace(heap, (size + lengths[number], count + 1, job, members))
    return [members for _, _, _, members in sorted(heap, key=lambda entry: (-entry[0], entry[2]))]
