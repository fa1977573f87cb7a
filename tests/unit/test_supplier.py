from __future__ import annotations

import threading

import pytest

from edgerag.errors import ModelMissing
from edgerag.supplier import Supplier


def test_makes_once_even_when_many_ask_at_once() -> None:
    made: list[int] = []
    gate = threading.Event()

    def make() -> int:
        gate.wait(10)
        made.append(len(made))
        return made[-1]

    supplier = Supplier(make)
    supplier.start()
    assert supplier.made() is None
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(supplier())) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(10)
    assert (results, made, supplier.made()) == ([0] * 4, [0], 0)


def test_a_failure_is_told_and_can_be_mended() -> None:
    attempts = iter([ModelMissing("no model"), 7])

    def make() -> int:
        outcome = next(attempts)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    supplier = Supplier(make)
    with pytest.raises(ModelMissing):
        supplier()
    assert supplier.made() is None
    assert supplier() == 7


class Closable:
    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_what_is_discarded_is_closed_also_when_it_is_still_being_made() -> None:
    gate = threading.Event()
    things = [Closable(), Closable()]
    made = Supplier(lambda: things[0])
    made()
    made.discard()
    assert things[0].closed.is_set()

    def make() -> Closable:
        gate.wait(10)
        return things[1]

    making = Supplier(make)
    making.start()
    making.discard()
    assert not things[1].closed.is_set()
    gate.set()
    assert things[1].closed.wait(10)
    Supplier(make).discard()  # never asked for: nothing to do


def test_without_room_for_a_thread_it_is_made_by_who_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    supplier = Supplier(lambda: 7)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        supplier.start()
        assert supplier.made() is None
        assert supplier() == 7
