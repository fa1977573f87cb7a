from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from edgerag.hold import Hold


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_clock_stands_still_while_it_is_held() -> None:
    clock = Clock()
    hold = Hold(clock)
    began = hold.clock()
    clock.now += 5
    assert hold.clock() - began == 5
    hold.begin()
    clock.now += 60
    hold.begin()  # held already
    assert hold.is_on and hold.clock() - began == 5
    hold.end()
    hold.end()  # let go already
    clock.now += 2
    assert not hold.is_on and hold.clock() - began == 7
    hold.begin()
    clock.now += 30
    hold.end()
    assert hold.clock() - began == 7


def test_who_waits_goes_on_when_it_is_let_go_and_when_it_is_to_stop() -> None:
    hold, stop = Hold(), threading.Event()
    assert not hold.wait(stop.is_set), "not held, nobody waits"
    hold.begin()
    with ThreadPoolExecutor() as pool:
        first, second = pool.submit(hold.wait, stop.is_set), pool.submit(hold.waiting(stop.is_set))
        assert not first.done() and not second.done()
        hold.end()
        assert first.result() is False and second.result() is False
        hold.begin()
        first, second = pool.submit(hold.wait, stop.is_set), pool.submit(hold.waiting(stop.is_set))
        assert not first.done() and not second.done()
        stop.set()
        assert first.result() is True and second.result() is True
    assert hold.is_on
