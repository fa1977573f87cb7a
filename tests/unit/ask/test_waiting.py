from __future__ import annotations

from concurrent.futures import Future

import pytest

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
