"""Answers with sources, as the ask flow makes them, for the tests of what is kept of them."""

from __future__ import annotations

from edgerag.types import (
    Answer,
    AnswerSentence,
    Chunk,
    Hit,
    InstantSentence,
    Message,
    Passage,
    Prefill,
    PromptBudget,
    PromptPart,
    Scores,
    SecondLookReport,
    Source,
    StageSpan,
    StageTime,
    StopReason,
    StoredChunk,
    TokenCounts,
    Trace,
    TracedHit,
)

TEXT = "Before frost.\nThe lid screws need 12 newton metres. Grease them.\nThe end."
PASSAGE = "The lid screws need 12 newton metres. Grease them."
QUOTE = "The lid screws need 12 newton metres."


def source(number: int = 1, *, passage: str = PASSAGE, quote: str = QUOTE, path: str = "/docs/pump.md") -> Source:
    start = TEXT.find(passage) if passage in TEXT else 0
    chunk = Chunk(
        ordinal=0,
        start=start,
        end=start + len(passage),
        text=passage,
        heading_path=("Torques",),
        page_first=None,
        page_last=None,
        line_first=2,
        line_last=2,
        token_count=12,
        context="Pump",
    )
    stored = StoredChunk(7, 3, path, "The pump", "text/markdown", chunk, kv_key="doc-1-chunk-0-v1", also_in=("/copy",))
    scores = Scores(keyword=7.5, keyword_rank=1, vector=None, vector_rank=None, fused=0.03)
    return Source(number, Hit(stored, scores), quote, start + passage.index(quote), cited=True)


def messages(question: str, reply: str, *, before: tuple[Message, ...] = ()) -> tuple[Message, ...]:
    opening = before or (Message("system", ("Answer.",)),)
    passage = Passage("[1] Pump\n", "[1] Pump\n", f"{PASSAGE}\n\n", "doc-1-chunk-0-v1", 7)
    return (*opening, Message("user", (passage, f"Question: {question}")), Message("assistant", (reply,)))


def trace(question: str, reply: str, *, before: tuple[Message, ...] = ()) -> Trace:
    return Trace(
        spans=(StageSpan("plan", 0.0, 0.001), StageSpan("generate", 0.4, 1.1)),
        token_ns=(400_000_000, 450_000_000),
        hits=(TracedHit(source().hit, 1, 1, 0.9, "source", 1),),
        vector_leg="searched",
        second_look=SecondLookReport("judge", 8, 20, 0.2, 300),
        budget=PromptBudget((PromptPart("source", 180, 1, 6), PromptPart("question", 20)), 2048, 256),
        messages=messages(question, reply, before=before)[:-1],
    )


def answer(
    question: str = "Which torque?",
    text: str = "They need 12 newton metres [1]. They are blue.",
    *,
    stop_reason: StopReason = "end",
    before: tuple[Message, ...] = (),
) -> Answer:
    doubt = text.find("They are blue.")
    return Answer(
        question=question,
        text=text,
        found=True,
        sources=(source(),),
        stop_reason=stop_reason,
        timings=(StageTime("total", 1.5),),
        tokens=TokenCounts(prompt=200, answer=12),
        model="scripted",
        pending_count=0,
        notes=("A note.",),
        instant=(InstantSentence(QUOTE, 1, 14, 14 + len(QUOTE)),),
        sentences=(AnswerSentence(doubt, len(text), (), "unsupported", "No source has it."),) if doubt >= 0 else (),
        messages=messages(question, text, before=before),
        prefill=Prefill(0, 10, 6, 190, 0.1, ("Slow.",), approximate_spans=((4, 10),)),
        marks=((1, 1),),
        trace=trace(question, text, before=before),
    )
