from __future__ import annotations

import pytest

from edgerag.telemetry.stopwatch import Stopwatch


def test_stages_add_up_in_the_order_in_which_they_end() -> None:
    ticks = iter([0.0, 1.0, 3.0, 3.0, 3.5, 4.0, 5.0, 9.0])
    stopwatch = Stopwatch(clock=lambda: next(ticks))
    with stopwatch.measure("plan"):
        pass
    with stopwatch.measure("embed"):
        pass
    with stopwatch.measure("plan"):
        pass
    assert [(time.stage, time.seconds) for time in stopwatch.times()] == [("plan", 3.0), ("embed", 0.5)]
    assert stopwatch.elapsed() == 9.0


def test_a_stage_that_fails_is_still_measured() -> None:
    ticks = iter([0.0, 1.0, 3.0])
    stopwatch = Stopwatch(clock=lambda: next(ticks))
    with pytest.raises(ZeroDivisionError), stopwatch.measure("plan"):
        raise ZeroDivisionError
    assert stopwatch.times()[0].seconds == 2.0
