from __future__ import annotations

import pytest

from edgerag.config import IngestSettings
from edgerag.ingest.pace import BUSY, LOW_BATTERY, RESTING, Pace


class Machine:
    """A clock, a processor and a battery that are told what to do. Sleeping takes time and no processor."""

    def __init__(self) -> None:
        self.now = 100.0
        self.spent_s = 7.0
        self.busy = 0.0
        self.low = False
        self.cancelled = False

    def work(self, seconds: float, *, cores: float) -> None:
        self.now += seconds
        self.spent_s += seconds * cores

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 0.2, "a cancel must be noticed soon"
        self.now += seconds

    def busy_share(self) -> float:
        return self.busy

    def battery_is_low(self) -> bool:
        return self.low

    def pace(self, **settings: object) -> Pace:
        return Pace(
            IngestSettings(**settings),  # type: ignore[arg-type]
            cancelled=lambda: self.cancelled,
            need=self,
            cpu_count=4,
            clock=lambda: self.now,
            spent=lambda: self.spent_s,
            sleep=self.sleep,
        )


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_by_default_it_never_waits(machine: Machine) -> None:
    machine.busy, machine.low = 1.0, True
    pace = machine.pace()
    for _ in range(20):
        machine.work(5.0, cores=4)
        assert list(pace.wait()) == []


@pytest.mark.parametrize("percent", [10, 50, 90])
def test_the_share_of_the_processor_is_kept_on_average(machine: Machine, percent: int) -> None:
    pace = machine.pace(max_cpu=percent)
    began, spent = machine.now, machine.spent_s
    for _ in range(30):
        machine.work(0.5, cores=4)
        assert set(pace.wait()) <= {RESTING}
        assert (machine.spent_s - spent) / (machine.now - began) <= 4 * percent / 100 + 1e-6
    assert (machine.spent_s - spent) / (machine.now - began) == pytest.approx(4 * percent / 100, rel=0.05)


def test_work_below_the_share_is_not_slowed(machine: Machine) -> None:
    pace = machine.pace(max_cpu=50)
    for _ in range(20):
        machine.work(1.0, cores=1.9)
        assert list(pace.wait()) == []


def test_waiting_for_something_else_is_not_paid_back_at_full_speed(machine: Machine) -> None:
    pace = machine.pace(max_cpu=50)
    machine.work(3600.0, cores=0)
    list(pace.wait())
    machine.work(10.0, cores=4)
    began = machine.now
    list(pace.wait())
    assert machine.now - began == pytest.approx(8.0, abs=0.3)  # ten seconds at twice the share, two of them granted


def test_it_makes_way_for_others_and_goes_on(machine: Machine) -> None:
    pace = machine.pace(polite=True)
    machine.work(2.0, cores=4)
    machine.busy = 0.8
    waiting = pace.wait()
    assert next(waiting) == BUSY
    for _ in range(50):
        assert next(waiting) == BUSY
    machine.busy = 0.1
    assert set(waiting) <= {BUSY}  # and it ends
    began = machine.now
    machine.work(2.0, cores=4)
    assert list(pace.wait()) == [] and machine.now == began + 2.0


def test_it_waits_while_the_battery_is_low(machine: Machine) -> None:
    pace = machine.pace(polite=True)
    machine.work(2.0, cores=4)
    machine.low = True
    assert next(pace.wait()) == LOW_BATTERY


def test_it_never_waits_for_ever(machine: Machine) -> None:
    pace = machine.pace(polite=True)
    machine.busy = 1.0
    began, worked = machine.now, 0.0
    for _ in range(200):
        machine.work(1.0, cores=4)
        worked += 1.0
        list(pace.wait())
    assert worked / (machine.now - began) > 0.12
    assert machine.now - began < 200 + 5 * 400


def test_a_cancel_ends_it(machine: Machine) -> None:
    pace = machine.pace(polite=True, max_cpu=1)
    machine.work(100.0, cores=4)
    machine.busy = 1.0
    waiting = pace.wait()
    next(waiting)
    machine.cancelled = True
    assert list(waiting) == []
