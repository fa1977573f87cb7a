from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from edgerag.machine import courtesy
from edgerag.machine.affinity import process_cpus
from edgerag.machine.courtesy import Demand, OwnTime, run_apart, step_back

SPIN = "import time\nwhile True: pass"


@pytest.fixture
def busy_child() -> object:
    process = subprocess.Popen([sys.executable, "-c", SPIN])
    yield process
    process.kill()
    process.wait()


def test_a_process_steps_back_and_never_forward(busy_child: subprocess.Popen[bytes]) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    step_back(own + 5, pid=busy_child.pid)
    assert os.getpriority(os.PRIO_PROCESS, busy_child.pid) == own + 5
    step_back(own + 2, pid=busy_child.pid)
    assert os.getpriority(os.PRIO_PROCESS, busy_child.pid) == own + 5
    if hasattr(psutil.Process, "ionice"):
        assert psutil.Process(busy_child.pid).ionice().value == 7


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux alone")
def test_work_apart_steps_back_with_what_it_starts_and_the_caller_does_not() -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    seen = []

    def look() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def work() -> None:
        look()
        started = threading.Thread(target=look)
        started.start()
        started.join()

    run_apart(work, niceness=own + 3)
    assert seen == [own + 3, own + 3]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_work_apart_is_done_where_no_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courtesy, "start_daemon", lambda _: False)
    done: list[int] = []
    run_apart(lambda: done.append(threading.get_ident()), niceness=3)
    assert done == [threading.get_ident()]


def test_nothing_is_asked_for_and_nothing_changes(busy_child: subprocess.Popen[bytes]) -> None:
    before = os.getpriority(os.PRIO_PROCESS, busy_child.pid)
    step_back(0, pid=busy_child.pid)
    assert os.getpriority(os.PRIO_PROCESS, busy_child.pid) == before


def test_a_process_that_has_ended_is_no_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    step_back(10, pid=process.pid)


def test_the_time_of_children_at_work_is_counted(busy_child: subprocess.Popen[bytes]) -> None:
    own = OwnTime()
    before = own.of_children()
    end = time.monotonic() + 20
    while own.of_children() - before < 0.2:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_own_children_are_not_others(busy_child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """All the load that is seen is said to be that of the child."""
    demand = Demand(process_cpus())
    seconds = []

    def cores() -> float:
        times = psutil.Process(busy_child.pid).cpu_times()
        seconds.append((times.user + times.system, time.monotonic()))
        (first, began), (last, ended) = seconds[0], seconds[-1]
        return (last - first) / (ended - began) if ended > began else 0.0

    monkeypatch.setattr(demand._load, "cores", cores)
    demand.busy_share()
    time.sleep(0.3)
    assert demand.busy_share() < 0.25


@pytest.mark.parametrize(
    ("battery", "low"),
    [
        (None, False),
        (SimpleNamespace(percent=10, power_plugged=False), True),
        (SimpleNamespace(percent=10, power_plugged=True), False),
        (SimpleNamespace(percent=10, power_plugged=None), False),
        (SimpleNamespace(percent=60, power_plugged=False), False),
    ],
)
def test_a_battery_is_low_when_little_is_left_and_nothing_charges_it(
    battery: object, low: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courtesy.psutil, "sensors_battery", lambda: battery, raising=False)
    assert Demand(process_cpus()).battery_is_low() is low
