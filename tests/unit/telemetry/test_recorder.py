"""Keeping traces fails nothing, delays nothing, and says once what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from traced import answer

from edgerag.config import MetricsSettings, Settings, TraceSettings
from edgerag.telemetry import collector
from edgerag.telemetry.recorder import Recorder
from edgerag.telemetry.ring import TraceRing, set_aside
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import AnswerDone, IngestDone, Trace


def flow(*, stopwatch: Stopwatch) -> Iterator[AnswerDone]:
    with stopwatch.measure("plan"):
        pass
    yield AnswerDone(answer(Trace(stopwatch.spans())))


def recorder(tmp_path: Path, **trace: object) -> Recorder:
    settings = Settings(trace=TraceSettings(**trace))  # type: ignore[arg-type]
    return Recorder(
        lambda: TraceRing(tmp_path / "t.sqlite", writing="WAL"),
        lambda: settings,
        set_aside=lambda: set_aside(tmp_path / "t.sqlite"),
    )


def test_a_collector_that_hangs_delays_no_answer_and_loses_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_it, go_on = threading.Event(), threading.Event()

    def hang(otlp: str, endpoint: object) -> None:
        at_it.set()
        assert go_on.wait(30)

    monkeypatch.setattr(collector, "send", hang)
    kept = recorder(tmp_path, otlp="http://127.0.0.1:4318")
    assert len(list(kept.asked(flow))) == 1
    assert at_it.wait(30)
    assert len(list(kept.asked(flow))) == 1  # while it hangs
    go_on.set()
    kept.close()
    with TraceRing(tmp_path / "t.sqlite") as ring:
        assert len(ring.heads()) == 2


def test_one_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    kept = recorder(tmp_path, otlp="http://127.0.0.1:9")
    said: list[str] = []
    for _ in range(3):
        list(kept.asked(flow))
        said += kept.troubles(wait_s=30)
    assert len(said) == 1 and "127.0.0.1:9" in said[0]
    kept.close()
    with TraceRing(tmp_path / "t.sqlite") as ring:
        assert len(ring.heads()) == 3


def test_what_goes_wrong_while_keeping_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = recorder(tmp_path)

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "_root", broken)
        assert len(list(kept.asked(flow))) == 1
        assert kept.troubles(wait_s=30) == ("A trace was not kept: RuntimeError: a fault.",)
    assert len(list(kept.asked(flow))) == 1
    kept.close()
    with TraceRing(tmp_path / "t.sqlite") as ring:
        assert len(ring.heads()) == 1


@pytest.mark.parametrize("how", ["no database", "cut off", "a page"])
def test_a_damaged_file_is_set_aside_and_that_is_said_once(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t.sqlite"
    kept = recorder(tmp_path)
    for _ in range(20):
        list(kept.asked(flow))
    kept.close()
    data = path.read_bytes()
    assert len(data) > 4 * 4096
    spoiled = {
        "no database": b"?" * 5000,
        "cut off": data[:9000],
        "a page": data[:4096] + b"\xff" * 8192 + data[12288:],
    }
    path.write_bytes(spoiled[how])
    said: list[str] = []
    for _ in range(3):  # each time the program is started
        kept = recorder(tmp_path)
        for _ in range(2):
            list(kept.asked(flow))
            said += kept.troubles(wait_s=30)
        kept.close()
    assert len(said) == 1, said
    assert str(path) in said[0] and "set aside" in said[0]
    aside = tmp_path / "t.sqlite.damaged"
    assert aside.read_bytes()[:4096] == spoiled[how][:4096]
    with TraceRing(path) as ring:
        assert len(ring.heads()) == 6


def test_what_fails_is_kept_as_that_and_raised(tmp_path: Path) -> None:
    def failing(*, stopwatch: Stopwatch) -> Iterator[IngestDone]:
        with stopwatch.measure("discover"):
            raise ValueError("secret words")
        yield

    kept = recorder(tmp_path)
    with pytest.raises(ValueError, match="secret"):
        list(kept.ingested(failing))
    kept.close()
    with TraceRing(tmp_path / "t.sqlite") as ring:
        (head,) = ring.heads()
        assert (head.kind, head.outcome) == ("ingest", "ValueError")
        assert "secret" not in ring.otlp(head.trace_id)


def test_nothing_is_made_where_nothing_is_wanted(tmp_path: Path) -> None:
    kept = recorder(tmp_path, keep=0)
    list(kept.asked(flow))
    assert kept.flush(0)
    kept.close()
    assert not list(tmp_path.iterdir())
    assert "traces" not in {thread.name for thread in threading.enumerate()}


def test_metrics_alone_make_no_spans(tmp_path: Path) -> None:
    settings = Settings(trace=TraceSettings(keep=0), metrics=MetricsSettings(file=str(tmp_path / "m.prom")))
    kept = Recorder(
        lambda: TraceRing(tmp_path / "t.sqlite", writing="WAL"),
        lambda: settings,
        set_aside=lambda: set_aside(tmp_path / "t.sqlite"),
    )
    list(kept.asked(flow))
    assert kept.troubles(wait_s=30) == ()
    kept.close()
    assert [file.name for file in tmp_path.iterdir()] == ["m.prom"]
    assert 'rag_answers_total{outcome="end"} 1.0' in (tmp_path / "m.prom").read_text(encoding="utf-8")


def test_what_comes_after_the_end_is_dropped(tmp_path: Path) -> None:
    kept = recorder(tmp_path)
    kept.close()
    list(kept.asked(flow))
    assert not (tmp_path / "t.sqlite").exists()
