"""Garbage is looked for when nobody would notice."""

from __future__ import annotations

import gc
import weakref

import pytest

from edgerag.ui.tui.collecting import Collecting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_old_garbage_goes_when_it_has_been_quiet_and_not_before(clock: Clock) -> None:
    before = gc.get_threshold()
    collecting = Collecting(clock=clock)
    collecting.begin()
    try:
        gone = weakref.ref(Ring())
        collecting.touch()
        clock.now = 4.0
        assert not collecting.look()
        collecting.touch()
        clock.now = 8.0
        assert not collecting.look()
        clock.now = 9.5
        assert collecting.look()
        assert gone() is None
        clock.now = 60.0
        assert not collecting.look(), "nothing has happened since"
    finally:
        collecting.end()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_who_is_never_quiet_is_not_waited_for_for_ever(clock: Clock) -> None:
    collecting = Collecting(clock=clock)
    looks = []
    for second in range(0, 2_000, 2):
        clock.now = float(second)
        collecting.touch()
        if collecting.look():
            looks.append(second)
    assert looks == [900, 1800]
