"""Who asks goes first, in this process and another, and cannot stop an ingest for ever."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from faults import harness

from edgerag.index.right_of_way import LOCK_NAME, RightOfWay, asking


@pytest.fixture
def way(tmp_path: Path) -> Any:
    made = RightOfWay(tmp_path)
    yield made
    made.close()


def test_an_ingest_stands_still_while_somebody_asks(way: RightOfWay, tmp_path: Path) -> None:
    assert not way.is_taken()
    with asking(tmp_path), asking(tmp_path):
        assert way.is_taken()
    assert not way.is_taken()


def test_it_goes_on_when_the_hits_are_there(way: RightOfWay, tmp_path: Path) -> None:
    gave = threading.Event()

    def work() -> None:
        way.give()
        gave.set()

    with asking(tmp_path):
        thread = threading.Thread(target=work)
        thread.start()
        assert not gave.wait(0.1)
    assert gave.wait(10)
    thread.join()


def test_one_who_asks_in_another_process_counts_and_the_dead_do_not(way: RightOfWay, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from edgerag.index.right_of_way import asking\n"
        "with asking(Path(sys.argv[1])):\n    print('asking', flush=True)\n    sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env=harness.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        assert way.is_taken()
        process.kill()
        process.wait()
        assert not way.is_taken()


def test_questions_without_end_do_not_stop_an_ingest(tmp_path: Path) -> None:
    now = 0.0
    slept = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now, slept
        now += seconds
        slept += seconds

    way = RightOfWay(tmp_path, clock=lambda: now, sleep=sleep)
    with asking(tmp_path):
        for _ in range(600):
            way.give()
            now += 0.01  # of work
    way.close()
    assert 0.3 < slept / now < 0.6


def test_where_nobody_ever_ingested_there_is_nobody_to_stop(tmp_path: Path) -> None:
    with asking(tmp_path):
        assert not (tmp_path / LOCK_NAME).exists()
    with asking(tmp_path / "nowhere"):
        pass
