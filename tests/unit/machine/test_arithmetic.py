"""The arithmetic probe."""

from __future__ import annotations

import sys

import pytest

from edgerag.machine.arithmetic import best_product, measure_arithmetic


def test_it_measures_a_speed_that_a_thread_can_have() -> None:
    assert 1e7 < measure_arithmetic(seconds=0.01) < 1e13


def test_it_measures_even_where_no_time_is_given() -> None:
    assert best_product(0) > 0


def test_where_no_process_can_be_started_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert measure_arithmetic() == 0
