"""Nobody who asks something shares the machine with the tuning."""

from __future__ import annotations

import threading

from edgerag.engine.tuning.idle import IdleTuning


class Recorder:
    """Stands for BackgroundTuning."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.started = threading.Event()

    def start(self) -> bool:
        self.said.append("start")
        self.started.set()
        return True

    def pause(self) -> None:
        self.said.append("pause")

    def stop(self) -> None:
        self.said.append("stop")


def idle_of(recorder: Recorder, idle_s: float = 0.01) -> IdleTuning:
    return IdleTuning(lambda: recorder, idle_s=idle_s)  # type: ignore[arg-type,return-value]


def test_it_begins_when_nobody_asks_and_pauses_when_somebody_does() -> None:
    recorder = Recorder()
    idle = idle_of(recorder)
    idle.wait()
    assert recorder.started.wait(10)
    with idle.at_work():
        assert recorder.said == ["start", "pause"]
    recorder.started.clear()
    assert recorder.started.wait(10)
    idle.close()
    assert recorder.said[-1] == "stop"


def test_while_somebody_asks_it_does_not_begin() -> None:
    recorder = Recorder()
    idle = idle_of(recorder)
    with idle.at_work():
        with idle.at_work():
            idle.wait()
        assert not recorder.started.wait(0.2)  # the other is still at work
    assert recorder.started.wait(10)
    idle.close()


def test_after_closing_it_never_begins() -> None:
    recorder = Recorder()
    idle = idle_of(recorder, idle_s=0.05)
    idle.wait()
    idle.close()
    idle.wait()
    assert not recorder.started.wait(0.3)


def test_nothing_to_tune_is_nothing_to_start() -> None:
    asked = threading.Event()

    def nothing() -> None:
        asked.set()

    idle = IdleTuning(nothing, idle_s=0.01)
    idle.wait()
    assert asked.wait(10)
    idle.close()
