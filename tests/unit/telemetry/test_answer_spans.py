"""What stages measured becomes spans that lie within each other, whatever the clocks said."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from traced import answer

from edgerag.telemetry.answer_spans import MOST_TOKENS, NAMES, MeasuredAnswer, answer_span
from edgerag.telemetry.exports.lanes import lanes
from edgerag.telemetry.ingest_spans import MeasuredIngest, ingest_span
from edgerag.telemetry.spans import Span, TraceTree
from edgerag.telemetry.stopwatch import StageSum
from edgerag.types import Prefill, PrefillBatch, StageSpan, StateRestore, TokenTime, Trace

STAGES = [*NAMES, "first_token", "prefill", "generate", "something_new"]
seconds = st.floats(0, 100, allow_nan=False)
small_ns = st.integers(0, 10**9)
spans = st.lists(st.builds(StageSpan, st.sampled_from(STAGES), seconds, seconds), max_size=30)
prefills = st.none() | st.builds(
    Prefill,
    kept_tokens=st.just(1),
    restored_tokens=st.just(2),
    approximate_tokens=st.just(3),
    computed_tokens=st.just(4),
    seconds=seconds,
    batches=st.lists(st.builds(PrefillBatch, st.integers(1, 512), seconds, seconds), max_size=5).map(tuple),
    restores=st.lists(st.builds(StateRestore, seconds, seconds), max_size=5).map(tuple),
)
token_times = st.lists(st.tuples(st.builds(TokenTime, small_ns, small_ns, small_ns, small_ns), st.integers(0, 10**12)))


def assert_nested(outer: Span) -> None:
    assert outer.start_ns <= outer.end_ns
    starts = [inner.start_ns for inner in outer.inner]
    assert starts == sorted(starts)
    for inner in outer.inner:
        assert outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns
        assert_nested(inner)


@given(spans, prefills, token_times, seconds, seconds)
def test_children_lie_within_their_parents(
    stages: list[StageSpan],
    prefill: Prefill | None,
    tokens: list[tuple[TokenTime, int]],
    whole: float,
    lead: float,
) -> None:
    trace = Trace(
        tuple(stages),
        token_ns=tuple(sorted(stamp for _, stamp in tokens)),
        began_ns=10**18,
        tokens=tuple(time for time, _ in tokens),
    )
    root = answer_span(MeasuredAnswer(10**18, whole, stages, answer(trace, prefill), lead))
    assert_nested(root)
    assert 0 <= root.explained_ns() <= root.ns
    for lane in lanes(TraceTree("0" * 32, root)):
        opened: list[tuple[int, int]] = []
        before = 0
        for piece in lane.slices:
            del opened[piece.depth :]
            assert before <= piece.start_ns <= piece.end_ns <= root.ns
            assert len(opened) == piece.depth
            assert not opened or (opened[-1][0] <= piece.start_ns and piece.end_ns <= opened[-1][1])
            opened.append((piece.start_ns, piece.end_ns))
            before = piece.start_ns


@given(spans, seconds)
def test_those_of_an_ingest_do_too(stages: list[StageSpan], whole: float) -> None:
    sums = {"parse": StageSum(len(stages) + 3, 1.0)}
    root = ingest_span(MeasuredIngest(10**18, whole, stages, sums, None, "LibraryBusy"))
    assert_nested(root)
    assert root.error == "LibraryBusy"
    assert root.facts["rag.ingest.spans_left_out"] == 3


def test_an_answer_that_failed_has_the_spans_until_then() -> None:
    stages = [StageSpan("plan", 0.0, 0.1), StageSpan("keyword", 0.1, 0.2)]
    root = answer_span(MeasuredAnswer(10**18, 0.5, stages, None, error="LibraryDamaged"))
    assert [span.name for span in root.walk()] == [
        "rag.query",
        "rag.query.parse",
        "rag.query.retrieval",
        "rag.query.retrieval.bm25",
    ]
    assert root.error == "LibraryDamaged"
    assert root.ns == 500_000_000


def test_what_is_in_no_inner_span_is_not_explained() -> None:
    inner = (Span("a", 0, 40), Span("b", 30, 50), Span("c", 90, 100, inner=(Span("d", 90, 95),)))
    assert Span("root", 0, 100, inner=inner).explained_ns() == 55  # what overlaps counts once


def test_no_more_tokens_are_kept_than_say_something() -> None:
    trace = Trace(
        (StageSpan("generate", 0.0, 9.0),),
        token_ns=tuple(range(MOST_TOKENS + 10)),
        tokens=(TokenTime(1, 2, 3, 4),) * (MOST_TOKENS + 10),
    )
    root = answer_span(MeasuredAnswer(10**18, 9.0, trace.spans, answer(trace)))
    (generation,) = [span for span in root.walk() if span.name == "rag.llm.generation"]
    rows = [value for value in generation.facts.values() if isinstance(value, tuple)]
    assert {len(row) for row in rows} == {MOST_TOKENS}


def test_words_are_only_in_what_was_asked_for() -> None:
    trace = Trace((StageSpan("plan", 0.0, 1.0),))
    asked = MeasuredAnswer(10**18, 1.0, trace.spans, replace(answer(trace), question="the secret", text="is out"))
    for content in (False, True):
        told = repr(answer_span(asked, content=content))
        assert ("the secret" in told) is ("is out" in told) is content
