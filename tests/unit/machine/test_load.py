from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import namedtuple

import psutil
import pytest

from edgerag.machine.load import CpuLoad, OthersLoad

Times = namedtuple("Times", "user system idle iowait")


def test_counts_others_and_not_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two CPUs of three count; ten seconds pass, in which others work 3 s, and this process 5 s."""
    clock, own, busy = [100.0], [1.0], [(50.0, 50.0), (50.0, 50.0), (0.0, 0.0)]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "times", lambda: os.times_result((own[0], 0.0, 0.0, 0.0, 0.0)))
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [Times(b, 0.0, i, 1.0) for b, i in busy])
    load = OthersLoad({0, 1})
    clock[0], own[0] = 110.0, 6.0
    busy[:] = [(56.0, 54.0), (52.0, 58.0), (10.0, 0.0)]  # the third is none of ours
    assert load.cores() == pytest.approx(0.3)
    assert load.cores() == 0.0  # no time has passed


def test_sees_a_busy_program() -> None:
    load = OthersLoad(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0})
    spinning = subprocess.Popen(
        [sys.executable, "-S", "-c", "import time\ne = time.time() + 5\nwhile time.time() < e: pass"]
    )
    try:
        time.sleep(1.0)
        assert load.cores() > 0.1
    finally:
        spinning.kill()
        spinning.wait()


def test_a_system_that_does_not_tell_counts_as_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(percpu: bool) -> None:
        raise PermissionError

    monkeypatch.setattr(psutil, "cpu_times", hidden)
    load = OthersLoad({0})
    time.sleep(0.01)
    assert load.cores() == 0.0


def test_the_load_of_each_cpu_is_its_share_of_the_time_since_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with_guests = namedtuple("with_guests", "user system idle iowait guest")
    readings = iter(
        [
            [with_guests(10, 5, 100, 0, 2), with_guests(0, 0, 50, 0, 0)],
            [with_guests(13, 6, 104, 2, 2), with_guests(0, 0, 60, 0, 0)],
            [
                with_guests(13, 6, 104, 2, 2),
                with_guests(5, 5, 60, 0, 0),
                with_guests(1, 0, 1, 0, 0),
            ],  # a third came online
        ]
    )
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: next(readings))
    load = CpuLoad()
    assert load.shares() == {0: pytest.approx(0.4), 1: 0.0}
    assert load.shares() == {0: 0.0, 1: 1.0, 2: 0.5}


def test_where_the_load_is_not_told_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(percpu: bool) -> None:
        raise PermissionError

    monkeypatch.setattr(psutil, "cpu_times", refuse)
    assert CpuLoad().shares() == {}
