"""Pinning on this machine, read back from the kernel."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from edgerag.machine import affinity
from edgerag.machine.affinity import pin_thread, pinned, process_cpus, thread_affinities

needs_affinity = pytest.mark.skipif(not affinity.CAN_PIN, reason="no sched_setaffinity here")


@needs_affinity
def test_pinned_is_what_the_kernel_says_and_ends() -> None:
    before, me = os.sched_getaffinity(0), threading.get_native_id()
    cpu = max(before)
    with pinned({cpu}) as pinning:
        assert (pinning.cpus, pinning.limitation) == ({cpu}, "")
        assert thread_affinities()[me] == {cpu}
    assert thread_affinities()[me] == before


@needs_affinity
def test_an_error_inside_ends_it_too() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(KeyError), pinned({min(before)}):
        raise KeyError
    assert os.sched_getaffinity(0) == before


@needs_affinity
def test_threads_started_inside_inherit_and_others_do_not_change() -> None:
    before = os.sched_getaffinity(0)
    cpu, stop, ids = min(before), threading.Event(), {}

    def work(name: str) -> None:
        ids[name] = threading.get_native_id()
        started[name].set()
        stop.wait()

    started = {name: threading.Event() for name in ("outside", "inside")}
    threads = [threading.Thread(target=work, args=(name,)) for name in started]
    threads[0].start()
    with pinned({cpu}):
        threads[1].start()
        for event in started.values():
            event.wait()
        masks = thread_affinities()
    stop.set()
    for thread in threads:
        thread.join()
    assert (masks[ids["outside"]], masks[ids["inside"]]) == (before, {cpu})


@needs_affinity
def test_cpus_that_are_not_here_are_told() -> None:
    here, absent = min(os.sched_getaffinity(0)), 60_000
    with pinned({absent}) as pinning:
        assert pinning.cpus == os.sched_getaffinity(0)
        assert "refused to run a thread on CPU 60000" in pinning.limitation
    with pinned({here, 1000}) as pinning:
        assert pinning.cpus == {here}
        assert pinning.limitation == f"of CPUs {here},1000 only {here} can be used"
    with pinned({10**30}) as pinning:
        assert pinning.limitation


def test_no_cpu_at_all_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no CPU"):
        pin_thread(())


def test_a_system_that_cannot_pin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity, "CAN_PIN", False)
    with pinned({0}) as pinning:
        assert pinning.cpus == frozenset()
        assert "does not let a program choose" in pinning.limitation


def test_masks_are_read_from_files(tmp_path: Path) -> None:
    for task, text in {"11": "Name:\tx\nCpus_allowed_list:\t0-2\n", "12": "damaged", "13": ""}.items():
        (tmp_path / "proc/self/task" / task).mkdir(parents=True)
        if text:
            (tmp_path / "proc/self/task" / task / "status").write_text(text)
    assert thread_affinities(tmp_path) == {11: {0, 1, 2}}, "one is damaged, one has just ended"
    assert process_cpus(tmp_path), "no status file: the mask that the system call tells"
