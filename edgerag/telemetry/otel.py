"""Spans become OpenTelemetry's: the one place that imports its API and SDK, and loaded only where a trace is kept.

The SDK is given everything that it would otherwise look up: sampler, limits, resource, meter. So no ``OTEL_*``
variable adds an exporter, a detector or an attribute; none of its exporters is ever made, and it starts no thread.
``OTEL_SDK_DISABLED=true`` alone is obeyed: then there are no spans, and nothing is kept.
"""

from __future__ import annotations

import os
import threading

from opentelemetry.context import Context
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace import SpanContext, Status, StatusCode, format_span_id, format_trace_id, set_span_in_context

from edgerag import __version__
from edgerag.telemetry.spans import Span

EndedSpan = ReadableSpan
SCOPE = "edgerag"
_MOST_ATTRIBUTES = 128  # of one span; there are some twenty


class _Collecting(SpanProcessor):
    """Holds what has ended until it is taken."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class Tracing:
    """Makes the spans of one trace after the other. Any thread; one at a time."""

    def __init__(self) -> None:
        self._collecting = _Collecting()
        self._lock = threading.Lock()
        unset = SpanLimits.UNSET
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(
                {"service.name": "edgerag", "service.version": __version__, "process.pid": os.getpid()},
            ),
            shutdown_on_exit=False,
            span_limits=SpanLimits(
                max_attributes=_MOST_ATTRIBUTES,
                max_events=_MOST_ATTRIBUTES,
                max_links=_MOST_ATTRIBUTES,
                max_span_attributes=_MOST_ATTRIBUTES,
                max_event_attributes=_MOST_ATTRIBUTES,
                max_link_attributes=_MOST_ATTRIBUTES,
                max_attribute_length=unset,
                max_span_attribute_length=unset,
            ),
            meter_provider=NoOpMeterProvider(),
        )
        provider.add_span_processor(self._collecting)
        self._tracer = provider.get_tracer(SCOPE, __version__)

    def made(self, root: Span) -> list[ReadableSpan]:
        """``root`` and all in it as ended spans of one trace, the root last; none where the SDK is disabled."""
        with self._lock:
            self._collecting.ended = []
            self._emit(root, Context())
            return self._collecting.ended

    def _emit(self, span: Span, context: Context) -> None:
        made: OpenSpan = self._tracer.start_span(
            span.name,
            context=context,
            start_time=span.start_ns,
            attributes=dict(span.facts),
            record_exception=False,
            set_status_on_exception=False,
        )
        inside = set_span_in_context(made, context)
        for inner in span.inner:
            self._emit(inner, inside)
        if span.error:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(end_time=span.end_ns)


def trace_id_of(span: ReadableSpan) -> str:
    return format_trace_id(_context(span).trace_id)


def span_id_of(span: ReadableSpan) -> str:
    return format_span_id(_context(span).span_id)


def parent_id_of(span: ReadableSpan) -> str:
    """ "" of a root."""
    return "" if span.parent is None else format_span_id(span.parent.span_id)


def is_error(span: ReadableSpan) -> bool:
    return span.status.status_code is StatusCode.ERROR


def _context(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None, "an ended span has one"
    return context
