from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from edgerag.ask import waiting
from edgerag.ask.waiting import start, wait
from edgerag.errors import Cancelled


class JustDone(Future[int]):
    """Is finished at the very moment at which waiting for it ends."""

    def result(self, timeout: float | None = None) -> int:
        if not self.done():
            self.set_result(7)
            raise TimeoutError
        return super().result(timeout)


def never() -> bool:
    return False


def until(is_so: Callable[[], bool]) -> None:
    """Waits, but not for ever."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_result_that_comes_as_the_waiting_ends_is_taken() -> None:
    assert wait(JustDone(), never) == 7


def test_what_the_work_raised_is_raised_time_outs_too() -> None:
    def work() -> int:
        raise TimeoutError("the work's own")

    with pytest.raises(TimeoutError, match="the work's own"):
        wait(start(work, name="test"), never)


def test_waiting_ends_when_it_is_cancelled() -> None:
    with pytest.raises(Cancelled):
        wait(Future[int](), lambda: True, poll_s=0.001)


def test_a_thread_that_has_done_its_work_does_the_next_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_idle", [])

    def who() -> tuple[int, str]:
        return threading.get_ident(), threading.current_thread().name

    first, name = wait(start(who, name="first"), never)
    assert name == "first"
    until(lambda: bool(waiting._idle))  # it is about to wait
    assert wait(start(who, name="second"), never) == (first, "second")


def test_many_at_once_have_a_thread_each_of_which_few_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_idle", [])
    met = threading.Barrier(5)
    works = [start(lambda: met.wait(30) and threading.current_thread(), name="test") for _ in range(4)]
    met.wait(30)
    threads = [wait(work, never) for work in works]
    ended = [thread for thread in threads if isinstance(thread, threading.Thread)]
    until(lambda: sum(thread.is_alive() for thread in ended) <= waiting._MOST_IDLE)
    assert len(waiting._idle) <= waiting._MOST_IDLE


def test_a_thread_that_waits_holds_nothing_of_its_last_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_idle", [])

    class Model: ...

    model = Model()
    there = weakref.ref(model)
    wait(start(lambda held=model: held and None, name="test"), never)
    del model
    until(lambda: bool(waiting._idle))
    gc.collect()
    assert there() is None


def test_a_child_of_a_fork_asks_none_of_its_parents_threads() -> None:
    wait(start(int, name="test"), never)
    until(lambda: bool(waiting._idle))
    child = os.fork()
    if child == 0:
        os._exit(0 if start(lambda: 7, name="test").result(30) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
