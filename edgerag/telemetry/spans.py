"""A span: a piece of work with a name, a time and figures, and the pieces in it. Frozen and pure.

The names and figures are those of docs/tracing.md. What OpenTelemetry makes of it stands in otel.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgerag.types import Fact

ASK = "rag.query"  # the roots
INGEST = "rag.ingest"
GENERATION = "rag.llm.generation"  # the span that has the rows of tokens
THREAD = "thread.name"  # of a span whose work is done beside the one around it
LONGEST_TEXT = 64_000  # characters of each text in a trace, where text is wanted
Value = Fact | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """``inner`` lie within it, in the order in which they begin; those in other threads overlap the others."""

    name: str
    start_ns: int  # since 1970
    end_ns: int
    facts: Mapping[str, Value] = field(default_factory=dict)
    inner: tuple[Span, ...] = ()
    error: str = ""  # what it failed with; "" where it did not

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def thread(self) -> str:
        """ "" where it is the thread of the span around it."""
        return str(self.facts.get(THREAD, ""))

    def walk(self) -> Iterator[Span]:
        """This one and all in it; what holds others comes before them."""
        yield self
        for span in self.inner:
            yield from span.walk()

    def explained_ns(self) -> int:
        """How much of it spans without inner ones account for, those that overlap counted once."""
        if not self.inner:
            return self.ns
        explained = end = 0
        for start, stop in sorted(piece for span in self.inner for piece in span._pieces()):
            start = max(start, end)
            if stop > start:
                explained += stop - start
                end = stop
        return explained

    def _pieces(self) -> Iterator[tuple[int, int]]:
        if not self.inner:
            yield self.start_ns, self.end_ns
        for span in self.inner:
            yield from span._pieces()


@dataclass(frozen=True, slots=True)
class TraceTree:
    """One answer, or one ingest."""

    trace_id: str  # 32 hexadecimal digits
    root: Span


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def token_row(span: Span, key: str) -> tuple[int, ...]:
    """One number for each token of a span called GENERATION; none where they were not kept."""
    value = span.facts.get(f"{GENERATION}.token.{key}", ())
    return value if isinstance(value, tuple) else ()


def nested(span: Span) -> Span:
    """The same, with nothing in it that begins before it or ends after it, whatever clocks said."""
    held = [nested(_within(inner, span)) for inner in span.inner]
    return replace(span, inner=tuple(sorted(held, key=lambda inner: (inner.start_ns, -inner.end_ns))))


def _within(inner: Span, outer: Span) -> Span:
    start_ns = min(max(inner.start_ns, outer.start_ns), outer.end_ns)
    return replace(inner, start_ns=start_ns, end_ns=min(max(inner.end_ns, start_ns), outer.end_ns))


def around(name: str, spans: Sequence[Span], facts: Mapping[str, Value]) -> Span | None:
    """A span that holds ``spans``; None where there are none."""
    if not spans:
        return None
    start_ns = min(span.start_ns for span in spans)
    return Span(name, start_ns, max(span.end_ns for span in spans), facts, tuple(spans))
