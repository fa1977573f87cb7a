"""How an answer came about, as it is laid out and said."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.telemetry.frames import OTHER, TimedAnswer, flame
from edgerag.types import (
    Answer,
    Chunk,
    Hit,
    Message,
    Passage,
    Plan,
    Prefill,
    PromptBudget,
    PromptPart,
    Scores,
    SecondLookReport,
    Source,
    StageSpan,
    StageTime,
    StoredChunk,
    TokenCounts,
    Trace,
    TracedHit,
)
from edgerag.ui.why import said
from edgerag.ui.why.layout import flame_rows, heats, quantile, spread, waterfall
from edgerag.ui.why.record import trace_record
from edgerag.ui.why.text import why_text

HOSTILE = "\x1b[31mred\x1b]52;c;aGk=\x07 \u202egnp"


def make_answer(text: str = "The lid screws.") -> Answer:
    chunk = Chunk(0, 0, len(text), text, (), None, None, 3, 9, 4)
    hit = Hit(
        StoredChunk(7, 2, "/docs/a.md", "Manual", "text/markdown", chunk),
        Scores(keyword=7.53, keyword_rank=2, vector=None, vector_rank=None, fused=0.0161, reranked=0.4),
    )
    other = Hit(dataclasses.replace(hit.chunk, id=8, path="/docs/b.md"), hit.scores)
    return Answer(
        question="Which torque?",
        text="12 Nm [1].",
        found=True,
        sources=(Source(1, hit, text, 0, cited=True),),
        stop_reason="end",
        timings=(StageTime("total", 2.0),),
        tokens=TokenCounts(100, 3),
        model="scripted",
        pending_count=0,
        notes=("A note.",),
        plan=Plan("Which torque pump?", "latin", ("torque",), 4, 40, 1.0, 1.0, 80, added_words=("pump",)),
        probability=0.9,
        prefill=Prefill(10, 20, 30, 40, 0.5, approximate_spans=((5, 35),)),
        trace=Trace(
            spans=(
                StageSpan("plan", 0.0, 0.5),
                StageSpan("question_vector", 0.25, 0.5),
                StageSpan("generate", 1.0, 1.0),
            ),
            token_ns=(1_000_000_000, 1_010_000_000, 1_020_000_000, 1_200_000_000),
            hits=(TracedHit(hit, 1, 1, 0.9, "source", 1), TracedHit(other, 2, 2, 0.05, "copy")),
            vector_leg="late",
            second_look=SecondLookReport("judge", 8, 20, 0.25, 300),
            budget=PromptBudget((PromptPart("source", 60, 1, 30), PromptPart("question", 40)), 200, 50),
            messages=(Message("user", (Passage("[1] Manual\n", "", text, "k", 7), "Question: Which torque?")),),
        ),
    )


def test_the_text_says_plan_hits_prompt_cache_and_time() -> None:
    text = why_text(make_answer())
    for words in (
        "lent words        pump",
        "given up: not ready by the deadline",
        "8 of 20 passages by judge in 250 ms, limit 300 ms",
        "note              A note.",
        "1  2: 7.53  -       1: 0.0161  1: 40.0%  90%    cited [1]  a.md, lines 3-9",
        "a copy",
        "free                    50",
        "source [1]: 30 of 60 tokens approximate",
        "--- user\n  [1] Manual\n  The lid screws.Question: Which torque?",
        "decode            4 tokens at 15.0 tokens/s",
        "longest 180.0 ms",
        "embed question *",
        said.BESIDE,
    ):
        assert words in text, words


def test_nothing_of_it_is_obeyed_by_a_terminal() -> None:
    shown = why_text(make_answer(HOSTILE))
    assert "red" in shown
    assert not set("\x1b\x07\u202e") & set(shown)


def test_the_record_has_the_same() -> None:
    answer = make_answer()
    assert answer.trace is not None
    record = json.loads(json.dumps(trace_record(answer.trace)))
    assert [(hit["rank"], hit["outcome"], hit["source"]) for hit in record["hits"]] == [
        (1, "source", 1),
        (2, "copy", None),
    ]
    assert record["budget"]["free_tokens"] == 50
    assert record["messages"][0]["parts"][0] == {"text": "[1] Manual\nThe lid screws.", "chunk_id": 7}
    assert record["spans"][1] == {"stage": "question_vector", "start_s": 0.25, "seconds": 0.5}


@pytest.mark.parametrize("trace", [None, Trace(spans=())])
def test_of_a_kept_answer_it_is_said_what_is_missing(trace: Trace | None) -> None:
    answer = dataclasses.replace(make_answer(), trace=trace, plan=None)
    assert "Ask again to see" in why_text(answer).replace("\n", " ")


# ------------------------------------------------------------ layout

_PARTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=12)


@given(parts=_PARTS, cells=st.integers(0, 200))
def test_all_cells_are_shared_out_and_what_is_there_is_seen(parts: list[float], cells: int) -> None:
    given_cells = spread(parts, cells)
    assert sum(given_cells) == (cells if sum(parts) > 0 else 0)
    there = [part > 0 for part in parts]
    if sum(there) <= cells:
        assert all(bool(count) == here for count, here in zip(given_cells, there, strict=True)) or sum(parts) <= 0


_SPANS = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=10)


@given(spans=_SPANS, cells=st.integers(1, 120))
def test_every_run_of_a_stage_has_a_bar_inside_the_row(spans: list[tuple[float, float]], cells: int) -> None:
    rows = waterfall([StageSpan("plan", start, seconds) for start, seconds in spans], total_s=1.0, cells=cells)
    assert len(rows) == len(spans)
    for row in rows:
        assert row.cells >= 1
        assert 0 <= row.offset < row.offset + row.cells <= cells


def test_stages_that_run_beside_each_other_lie_below_each_other() -> None:
    spans = [StageSpan("keyword", 0.0, 0.5), StageSpan("question_vector", 0.25, 0.5), StageSpan("generate", 0.75, 0.25)]
    rows = waterfall(spans, total_s=1.0, cells=8)
    assert [(row.offset, row.cells) for row in rows] == [(0, 4), (2, 4), (6, 2)]


def test_tokens_are_hot_beside_the_others() -> None:
    at_ms = [0, 10, 20, 30, 31, 61, 161, 171, 181]
    assert heats([ms * 1_000_000 for ms in at_ms]) == [1, 1, 1, 0, 3, 4, 1, 1]
    assert heats([5]) == []
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.95) == 4.0


# ------------------------------------------------------------ flame


def test_frames_add_up_over_answers_and_hold_what_is_within() -> None:
    spans = (
        StageSpan("plan", 0.0, 0.1),
        StageSpan("question_vector", 0.0, 5.0),
        StageSpan("keyword", 0.1, 0.2),
        StageSpan("first_token", 0.3, 0.6),
        StageSpan("prefill", 0.3, 0.5),
        StageSpan("generate", 0.9, 1.0),
    )
    whole = flame([TimedAnswer(spans, 2.0), TimedAnswer(spans, 2.0)])
    assert whole.seconds == 4.0
    assert {frame.name: round(frame.seconds, 6) for frame in whole.inner} == {
        "search": 0.6, "read": 1.2, "generate": 2.0, OTHER: 0.2,
    }  # fmt: skip
    read = whole.inner[1]
    assert (read.inner[0].name, read.inner[0].inner[0].name) == ("first_token", "prefill")
    assert whole.depth == 4


_STAGES = st.sampled_from(["plan", "keyword", "embed", "model_load", "first_token", "generate", "check", "unheard_of"])


@given(
    spans=st.lists(st.builds(StageSpan, _STAGES, st.floats(0, 9), st.floats(0, 9)), max_size=12),
    seconds=st.floats(0, 100),
    cells=st.integers(1, 150),
)
def test_no_frame_leaves_the_one_that_holds_it(spans: list[StageSpan], seconds: float, cells: int) -> None:
    rows = flame_rows(flame([TimedAnswer(tuple(spans), seconds)]), cells)
    for above, row in pairwise(rows):
        for cell in row:
            assert any(
                cell.frame in outer.frame.inner
                and outer.offset <= cell.offset
                and cell.offset + cell.cells <= outer.offset + outer.cells
                for outer in above
            )
    for row in rows:
        ends = [cell.offset + cell.cells for cell in row]
        assert all(end <= cell.offset for end, cell in zip(ends, row[1:], strict=False))
        assert not row or ends[-1] <= cells
