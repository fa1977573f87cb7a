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
