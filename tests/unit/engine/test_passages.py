"""Texts over several workers: each is computed once, and comes back in its place."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.passages import Tokens, Workers, jobs
from edgerag.errors import ModelError

if TYPE_CHECKING:
    from edgerag.types import Vectors


class Sums:
    """The vector of a text says which it was."""

    def __init__(self, *, fails_at: int = -1) -> None:
        self.jobs: list[int] = []  # texts in each
        self._fails_at = fails_at
        self._busy = threading.Lock()

    def compute(self, texts: Sequence[Tokens]) -> Vectors:
        assert self._busy.acquire(blocking=False), "one job at a time"
        try:
            self.jobs.append(len(texts))
            if any(self._fails_at in text for text in texts):
                raise ModelError("This text cannot be computed.")
            return np.array([[sum(text), len(text)] for text in texts], dtype=np.float32).reshape(-1, 2)
        finally:
            self._busy.release()


LENGTHS = st.lists(st.integers(0, 256), max_size=60)


@given(lengths=LENGTHS, workers=st.integers(1, 5), tokens=st.sampled_from([0, 1, 100, 1024]))
def test_every_text_is_in_one_job_and_the_largest_job_comes_first(
    lengths: list[int], workers: int, tokens: int
) -> None:
    found = jobs(lengths, workers=workers, tokens=tokens)
    assert sorted(number for job in found for number in job) == list(range(len(lengths)))
    assert all(found), "no job is empty"
    sizes = [sum(lengths[number] for number in job) for job in found]
    assert sizes == sorted(sizes, reverse=True)


@given(lengths=st.lists(st.integers(1, 256), min_size=32, max_size=32), workers=st.integers(1, 4))
def test_workers_end_together(lengths: list[int], workers: int) -> None:
    found = jobs(lengths, workers=workers, tokens=1024)
    assert len(found) % workers == 0
    sizes = [sum(lengths[number] for number in job) for job in found]
    assert max(sizes) - min(sizes) <= max(lengths)


@given(lengths=LENGTHS, workers=st.integers(1, 3), tokens=st.sampled_from([0, 200]))
def test_vectors_come_back_in_the_order_of_the_texts(lengths: list[int], workers: int, tokens: int) -> None:
    texts = [[number] * length for number, length in enumerate(lengths)]
    team = Workers([Sums() for _ in range(workers)], batch_tokens=tokens)
    vectors = team.compute(texts, dimension=2)
    team.close()
    assert vectors.tolist() == [[sum(text), len(text)] for text in texts]


def test_between_two_texts_others_are_let_past_by_threads_of_low_priority() -> None:
    priorities: list[int] = []
    calls: list[int] = []

    class Asked(Sums):
        def compute(self, texts: Sequence[Tokens]) -> Vectors:
            priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            return super().compute(texts)

    team = Workers([Asked()], batch_tokens=0, between=lambda: calls.append(len(priorities)), niceness=11)
    team.compute([[1], [2], [3]], dimension=2)
    team.close()
    assert calls[:3] == [0, 1, 2], "before each"
    assert min(priorities) >= 11
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < 11


def test_a_worker_that_fails_ends_the_work_and_the_next_call_works() -> None:
    workers = [Sums(fails_at=7), Sums(fails_at=7)]
    team = Workers(workers, batch_tokens=0)
    with pytest.raises(ModelError, match="cannot be computed"):
        team.compute([[7] * 9, *([[number]] for number in range(1000, 1500))], dimension=2)
    assert sum(map(len, (worker.jobs for worker in workers))) < 501, "the rest was not computed in vain"
    assert team.compute([[1, 2]], dimension=2).tolist() == [[3, 2]]
    team.close()


def test_each_worker_is_held_on_its_own_processors() -> None:
    affinity = os
    if not hasattr(affinity, "sched_getaffinity"):
        pytest.skip("this system does not let a program choose the CPUs of its threads")
    usable = sorted(affinity.sched_getaffinity(0))
    seen: set[frozenset[int]] = set()
    both = threading.Barrier(2, timeout=30)

    class Where:
        def compute(self, texts: Sequence[Tokens]) -> Vectors:
            both.wait()
            seen.add(frozenset(affinity.sched_getaffinity(0)))
            return np.zeros((len(texts), 1), dtype=np.float32)

    held = [[usable[0]], [usable[-1]]]
    team = Workers([Where(), Where()], batch_tokens=0, cpus=held)
    team.compute([[1], [1]], dimension=1)
    team.close()
    assert seen == {frozenset(one) for one in held}
    assert sorted(affinity.sched_getaffinity(0)) == usable, "the caller stays where it was"
