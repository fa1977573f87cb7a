from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import namedtuple

import psutil
import pytest

from edgerag.machine.load import OthersLoad

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
