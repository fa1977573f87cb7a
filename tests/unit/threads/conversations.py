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
    Scores,
    Source,
    StageTime,
    StopReason,
    StoredChunk,
    TokenCounts,
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
        prefill=Prefill(0, 10, 0, 190, 0.1, ("Slow.",)),
        marks=((1, 1),),
    )
