"""Keeps a trace of each answer and each ingest, after it: nobody waits for it, and it fails nothing.

While an answer is being made its stages are stamped (stopwatch.py), no more. What was measured becomes spans in a
thread of its own once the answer is complete: kept in the ring, sent to a collector where one is named, counted for
Prometheus. What keeps it from that is said once, in a sentence.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from edgerag.config import Settings
from edgerag.errors import EdgeragError
from edgerag.telemetry.answer_spans import MeasuredAnswer, answer_span
from edgerag.telemetry.ingest_spans import MOST_SPANS, MeasuredIngest, ingest_span
from edgerag.telemetry.spans import Span, Value
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.thread_start import NO_MORE_THREADS, start_daemon
from edgerag.types import Answer, AnswerDone, IngestDone, LoopbackEndpoint

if TYPE_CHECKING:
    from edgerag.telemetry.metrics import Metrics
    from edgerag.telemetry.otel import Tracing
    from edgerag.telemetry.ring import TraceKind, TraceRing

EventT = TypeVar("EventT", covariant=True)
_MOST_WAITING = 64  # traces to be kept; more come only where the disk hangs
_TRIES = 3  # of a file that is replaced or damaged
_CLOSING_S = 5.0  # how long the end of the program waits for the last trace
_ABANDONED = "abandoned"  # the outcome of what nobody read to its end
_Work = MeasuredAnswer | MeasuredIngest


class Events(Protocol[EventT]):
    """A flow that is ready to begin."""

    def __call__(self, *, stopwatch: Stopwatch) -> Iterable[EventT]: ...


class Recorder:
    """What a session keeps of its answers and ingests. Any thread."""

    def __init__(
        self,
        open_ring: Callable[[], TraceRing],
        settings: Callable[[], Settings],
        *,
        set_aside: Callable[[], Path],
        place: Callable[[], object] = lambda: None,
        facts: Callable[[], Mapping[str, Value]] = dict,
        gauges: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """``open_ring`` is called in a thread of its own, and asks nobody; ``set_aside`` moves away a damaged file,
        and says where it is; ``place`` says where the traces belong now: where that is another file than the open one,
        it is opened. ``settings`` are asked for each trace; ``facts`` go into its root, ``gauges`` are figures of
        now."""
        self._open_ring = open_ring
        self._set_aside = set_aside
        self._place = place
        self._ring_place: object = None
        self._settings = settings
        self._facts = facts
        self._gauges = gauges
        self._changed = threading.Condition()
        self._waiting: deque[_Work] = deque()
        self._at_work = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._troubles: dict[str, bool] = {}  # whether each was told
        self._tracing: Tracing | None = None
        self._ring: TraceRing | None = None
        self._metrics: Metrics | None = None

    # ------------------------------------------------------------ while it is made

    def asked(self, events: Events[EventT], *, began: float | None = None) -> Iterator[EventT]:
        """The events of an answer, which are given the stopwatch for its stages. ``began``: when the question came, as
        time.perf_counter() has it."""
        stopwatch = Stopwatch()
        lead_s = 0.0 if began is None else max(0.0, time.perf_counter() - began)
        answer: Answer | None = None
        error = _ABANDONED
        try:
            for event in events(stopwatch=stopwatch):
                if isinstance(event, AnswerDone):
                    answer, error = event.answer, ""
                yield event
        except Exception as failure:
            error = type(failure).__name__  # its message may hold words of a document
            raise
        finally:
            seconds = stopwatch.elapsed()
            if answer is not None:
                seconds = next((each.seconds for each in answer.timings if each.stage == "total"), seconds)
            trace = answer.trace if answer is not None else None
            spans = trace.spans if trace is not None else stopwatch.spans()
            self._put(MeasuredAnswer(stopwatch.began_ns, seconds, spans, answer, lead_s, error))

    def ingested(self, events: Events[EventT]) -> Iterator[EventT]:
        """The same of an ingest."""
        stopwatch = Stopwatch(most_spans=MOST_SPANS)
        done: IngestDone | None = None
        error = _ABANDONED
        try:
            for event in events(stopwatch=stopwatch):
                if isinstance(event, IngestDone):
                    done, error = event, ""
                yield event
        except Exception as failure:
            error = type(failure).__name__
            raise
        finally:
            seconds = stopwatch.elapsed()
            self._put(MeasuredIngest(stopwatch.began_ns, seconds, stopwatch.spans(), stopwatch.sums(), done, error))

    def serve(self) -> None:
        """Opens the port of ``metrics.port``, where one is set and not open yet."""
        settings = self._settings().metrics
        if settings.port:
            try:
                self._counted().serve(settings.port)
            except EdgeragError as error:
                self._trouble(str(error))

    # ------------------------------------------------------------ after it

    def troubles(self, *, wait_s: float = 0.0) -> tuple[str, ...]:
        """What went wrong with keeping traces, in sentences, each once in the life of the recorder."""
        self.flush(wait_s)
        with self._changed:
            new = [trouble for trouble, told in self._troubles.items() if not told]
            self._troubles |= dict.fromkeys(new, True)
        return tuple(new)

    def flush(self, wait_s: float) -> bool:
        """Waits until everything is kept, so long at most; False when it is not."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._at_work, wait_s)

    def close(self) -> None:
        """Keeps what waits, as far as that takes no longer than ``_CLOSING_S``."""
        self.flush(_CLOSING_S)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSING_S)
        if self._metrics is not None:
            self._metrics.close()

    def _put(self, work: _Work) -> None:
        """Hands it to the thread. Where none starts, the trace is not kept, which is said; the next one tries again."""
        settings = self._settings()
        wanted = settings.trace.keep or settings.trace.otlp or settings.metrics.file or settings.metrics.port
        if not wanted:
            return
        with self._changed:
            if self._closed or len(self._waiting) >= _MOST_WAITING:
                self._troubles.setdefault("Traces were lost: keeping them takes longer than the answers.", False)
                return
            if self._thread is None:
                # A daemon: a hanging disk or collector does not keep the program from ending.
                thread = threading.Thread(target=self._run, name="traces")
                if not start_daemon(thread):
                    self._troubles.setdefault(f"Traces are not kept: {NO_MORE_THREADS}.", False)
                    return
                self._thread = thread
            self._waiting.append(work)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    break
                work = self._waiting.popleft()
                self._at_work = True
            try:
                self._keep(work)
            except EdgeragError as error:
                self._trouble(str(error))
            except Exception as error:  # noqa: BLE001 - the edge of a thread: a fault here must not stop answers
                self._trouble(f"A trace was not kept: {type(error).__name__}: {error}.")
            finally:
                with self._changed:
                    self._at_work = False
                    self._changed.notify_all()
        if self._ring is not None:
            self._ring.close()

    def _keep(self, work: _Work) -> None:
        settings = self._settings()
        if settings.metrics.file or settings.metrics.port:
            metrics = self._counted()
            metrics.count(work)
            if settings.metrics.file:
                try:
                    metrics.write(settings.metrics.file)
                except EdgeragError as error:
                    self._trouble(str(error))
        if settings.trace.keep or settings.trace.otlp:
            self._keep_spans(work, settings)

    def _keep_spans(self, work: _Work, settings: Settings) -> None:
        from edgerag.telemetry.otel import Tracing, trace_id_of
        from edgerag.telemetry.otlp import otlp_text, to_otlp

        root = self._root(work, settings)
        self._tracing = self._tracing or Tracing()
        spans = self._tracing.made(root)
        if not spans:  # OTEL_SDK_DISABLED
            return
        otlp = otlp_text(to_otlp(spans))
        if settings.trace.keep:
            try:
                self._put_in_ring(work, root, trace_id_of(spans[-1]), otlp, settings.trace.keep)
            except EdgeragError as error:
                self._trouble(str(error))
                self._ring = None  # the next one opens it anew: the disk may have room by then
        if settings.trace.otlp:
            from edgerag.telemetry.collector import send

            send(otlp, LoopbackEndpoint.parse(settings.trace.otlp))

    def _root(self, work: _Work, settings: Settings) -> Span:
        work = replace(work, facts=self._facts())
        if isinstance(work, MeasuredAnswer):
            return answer_span(work, content=settings.trace.content)
        return ingest_span(work, content=settings.trace.content)

    def _put_in_ring(self, work: _Work, root: Span, trace_id: str, otlp: str, keep: int) -> None:
        from edgerag.errors import TracesDamaged, TracesError
        from edgerag.telemetry.ring import TraceHead

        kind: TraceKind = "ask" if isinstance(work, MeasuredAnswer) else "ingest"
        head = TraceHead(trace_id, kind, root.start_ns, root.ns, outcome_of(work))
        for left in reversed(range(_TRIES)):
            place = self._place()
            try:
                self._opened_ring().put(head, otlp, keep=keep)
                return
            except TracesError as error:
                self._close_ring()
                was_replaced = self._place() != place  # by another process, under another key: it only looks damaged
                if not left or not (was_replaced or isinstance(error, TracesDamaged)):
                    raise
                if was_replaced:
                    continue
                aside = self._set_aside()
                self._trouble(f"{error.message} They are set aside in {aside}, and new ones begun.")

    def _opened_ring(self) -> TraceRing:
        if self._ring is not None and self._place() != self._ring_place:
            self._close_ring()
        if self._ring is None:
            self._ring = self._open_ring()
            self._ring_place = self._place()
        return self._ring

    def _close_ring(self) -> None:
        ring, self._ring = self._ring, None
        if ring is not None:
            with suppress(EdgeragError):  # of a damaged file even that may fail
                ring.close()

    def _counted(self) -> Metrics:
        from edgerag.telemetry.metrics import Metrics

        with self._changed:
            if self._metrics is None:
                self._metrics = Metrics(self._gauges)
            return self._metrics

    def _trouble(self, sentence: str) -> None:
        with self._changed:
            self._troubles.setdefault(sentence, False)


def outcome_of(work: _Work) -> str:
    """In a word: the stop reason of an answer, or what it failed with."""
    if work.error:
        return work.error
    if isinstance(work, MeasuredAnswer):
        return work.answer.stop_reason if work.answer is not None else _ABANDONED
    return "interrupted" if work.done is not None and work.done.interrupted else "done"
