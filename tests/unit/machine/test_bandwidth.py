"""The memory probe on this machine; what it says, not how fast the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unit.machine import fixtures

from edgerag.machine.bandwidth import best_rate, measure_bandwidth


def test_each_number_of_threads_is_measured() -> None:
    report = measure_bandwidth([1, 2], seconds=0.1)
    assert [result.threads for result in report.results] == [1, 2]
    assert all(result.bytes_per_s > 1e6 for result in report.results)
    assert report.best is not None
    assert report.best.bytes_per_s == max(result.bytes_per_s for result in report.results)
    assert "memchr" in report.method


def test_a_thread_that_stands_still_now_and_then_does_not_count() -> None:
    steady = [n / 1000 for n in range(1, 101)]
    assert best_rate(steady, begun_s=0.0) == pytest.approx(1000, rel=0.05)
    halted = [time + (0.2 if time > 0.05 else 0.0) for time in steady]
    assert best_rate(halted, begun_s=0.0) == pytest.approx(1000, rel=0.05)
    assert best_rate([0.005, 0.01], begun_s=0.0) == pytest.approx(200), "shorter than a window"


def test_no_more_is_taken_than_is_free(tmp_path: Path) -> None:
    report = measure_bandwidth([1], seconds=0.05, free_bytes=100_000_000, system=tmp_path)
    assert 0 < report.buffer_bytes <= 100_000_000 / 8
    report = measure_bandwidth([1], seconds=0.05, free_bytes=1_000_000)
    assert (report.results, report.best, report.method) == ((), None, "not measured: too little memory is free")


def test_a_buffer_that_caches_hold_is_told(tmp_path: Path) -> None:
    fixtures.caches(tmp_path, (0,), (3, "Unified", "512M", None))
    report = measure_bandwidth([1], cpus=[0], seconds=0.05, free_bytes=100_000_000, system=tmp_path)
    assert "to which the caches of 537 MB add speed" in report.method


def test_the_caller_stays_where_it_was() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("no affinity masks here")
    before = os.sched_getaffinity(0)
    measure_bandwidth([1], cpus=[min(before)], seconds=0.02)
    assert os.sched_getaffinity(0) == before


def test_no_threads_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="threads must be 1 or more"):
        measure_bandwidth([1, 0])
    assert measure_bandwidth([]).results == ()


def test_the_machine_is_read_without_numpy() -> None:
    code = (
        "import sys; from edgerag.machine import bandwidth, limits, numa, plan, fingerprint, topology;"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
