from __future__ import annotations

import threading

import pytest

from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import StageSpan


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


def test_spans_tell_when_each_run_of_a_stage_was() -> None:
    ticks = iter([10.0, 11.0, 13.0, 14.0, 15.0])
    stopwatch = Stopwatch(clock=lambda: next(ticks))
    with stopwatch.measure("plan"):
        pass
    with stopwatch.measure("plan"):
        pass
    assert stopwatch.spans() == (StageSpan("plan", 1.0, 2.0), StageSpan("plan", 4.0, 1.0))


def test_what_runs_beside_or_within_a_stage_is_no_time_of_its_own() -> None:
    ticks = iter([0.0, 1.0, 2.0])
    stopwatch = Stopwatch(clock=lambda: next(ticks))
    with stopwatch.measure("keyword"):
        stopwatch.add_span("prefill", 1.0, 1.5)
    assert [time.stage for time in stopwatch.times()] == ["keyword"]
    assert [span.stage for span in stopwatch.spans()] == ["keyword", "prefill"]  # what holds the other comes first


def test_a_thread_of_its_own_is_seen_beside_the_stage_that_runs() -> None:
    stopwatch = Stopwatch()

    def work() -> None:
        with stopwatch.measure_beside("question_vector"):
            pass

    with stopwatch.measure("keyword"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    keyword, beside = stopwatch.spans()
    assert keyword.start_s <= beside.start_s
    assert beside.start_s + beside.seconds <= keyword.start_s + keyword.seconds
