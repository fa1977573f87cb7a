"""Where the system starts no more threads, everything is done without one, or it is said what is not done."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from edgerag.ask import waiting
from edgerag.config import Settings
from edgerag.index import at_rest
from edgerag.index.rest_check import RestCheck
from edgerag.supplier import Supplier
from edgerag.telemetry.recorder import Recorder
from edgerag.thread_start import start_daemon
from edgerag.types import AnswerDone


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_thread_that_starts_is_one_that_nobody_waits_for() -> None:
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)
    assert start_daemon(thread) and thread.daemon
    assert ran.wait(30)


@pytest.mark.usefixtures("no_threads")
def test_a_refusal_is_no_failure() -> None:
    assert not start_daemon(threading.Thread(target=print))


@pytest.mark.usefixtures("no_threads")
def test_what_is_to_be_supplied_is_made_by_who_needs_it() -> None:
    made: list[int] = []
    supplier = Supplier(lambda: made.append(1) or 7)  # type: ignore[func-returns-value]
    supplier.start()
    assert supplier.made() is None and not made
    assert supplier() == 7 and supplier() == 7
    assert made == [1]


@pytest.mark.usefixtures("no_threads")
def test_what_is_waited_for_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_idle", [])
    here = waiting.start(threading.get_ident, name="test")
    assert here.result(0) == threading.get_ident()


@pytest.mark.usefixtures("no_threads")
def test_a_library_is_looked_at_before_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(at_rest, "damaged_blocks", lambda folder, *_, **__: looked.append(folder) or [])
    (tmp_path / "library.sqlite").write_bytes(b"x")
    check = RestCheck(tmp_path, tmp_path / "library.sqlite")
    check.begin()
    check.begin()
    assert looked == [tmp_path], "once"
    assert check.note() == ""


@pytest.mark.usefixtures("no_threads")
def test_that_traces_are_not_kept_is_said() -> None:
    recorder = Recorder(
        lambda: pytest.fail("nobody opens it"), Settings, set_aside=lambda: pytest.fail("nothing is damaged")
    )
    done: list[AnswerDone] = []
    for _ in range(2):
        list(recorder.asked(lambda *, stopwatch: done))
    (said,) = recorder.troubles()
    assert said.startswith("Traces are not kept") and "threads" in said and "memory" in said
    recorder.close()
