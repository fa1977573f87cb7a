"""Answers as JSON, and back.

Kept is what the screen shows and what the model goes on from. The text of passages is not: it belongs to the
library, from which it can be removed; of each passage its SHA-256 tells whether it is still the same. Of the
conversation that the model has had, each exchange keeps only what it added. Of how an answer came about the times and
the counts are kept, not the hits and not the prompt.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edgerag.errors import ThreadsError
from edgerag.types import (
    Answer,
    AnswerSentence,
    Chunk,
    FilterText,
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
    StoredChunk,
    TokenCounts,
    Trace,
)

_NEAREST_CHARACTERS = 200  # of a passage that is no source: enough to see what it is about


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it was read back. ``common`` messages of the exchange before stand before its own; those that it
    has are then only the rest."""

    answer: Answer
    passage_hashes: tuple[str, ...]
    common: int


def passage_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_json(answer: Answer, *, passage_hashes: Sequence[str] = (), before: Sequence[Message] = ()) -> str:
    """``before``: the messages of the exchange that it follows. ``passage_hashes`` are those known of sources whose
    passages are not in memory."""
    messages = _without_passages(answer.messages)
    before = _without_passages(before)
    common = len(before) if before and messages[: len(before)] == before else 0
    hashes = [
        passage_hash(source.hit.chunk.chunk.text) if source.hit.chunk.chunk.text else known
        for source, known in zip(answer.sources, [*passage_hashes, *[""] * len(answer.sources)], strict=False)
    ]
    blank = replace(
        answer,
        question="",
        text="",
        sources=tuple(_without_text(source) for source in answer.sources),
        messages=messages[common:],
        plan=None,
        selection=None,
        trace=None if answer.trace is None else _counts_alone(answer.trace),
        prefill=None if answer.prefill is None else replace(answer.prefill, batches=(), restores=(), saves=()),
        nearest=tuple(_shortened(hit) for hit in answer.nearest),
    )
    # ASCII: paths need not be valid text, and JSON has an escape for what they are instead.
    return json.dumps({"common": common, "hashes": hashes, "answer": dataclasses.asdict(blank)})


def from_json(text: str, *, question: str, answer: str) -> KeptAnswer:
    """Raises ThreadsError if it is not what was written."""
    try:
        kept = json.loads(text)
        value = kept["answer"]
        read = Answer(
            **{
                **value,
                "question": question,
                "text": answer,
                "sources": tuple(map(_source, value["sources"])),
                "timings": tuple(StageTime(**each) for each in value["timings"]),
                "tokens": TokenCounts(**value["tokens"]),
                "notes": tuple(value["notes"]),
                "instant": tuple(InstantSentence(**each) for each in value["instant"]),
                "sentences": tuple(
                    AnswerSentence(**{**each, "sources": tuple(each["sources"])}) for each in value["sentences"]
                ),
                "messages": tuple(map(_message, value["messages"])),
                "prefill": None if value["prefill"] is None else _prefill(value["prefill"]),
                "nearest": tuple(map(_hit, value["nearest"])),
                "marks": _pairs(value["marks"]),
                "trace": None if value.get("trace") is None else _trace(value["trace"]),
            }
        )
        return KeptAnswer(read, tuple(kept["hashes"]), int(kept["common"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ThreadsError(f"A kept answer is damaged: {error}.", remedy="Delete its thread.") from error


def filter_to_json(where: FilterText) -> str:
    return json.dumps({name: value for name, value in dataclasses.asdict(where).items() if value})


def filter_from_json(text: str) -> FilterText:
    """Raises ThreadsError if it is not what was written."""
    try:
        read = json.loads(text or "{}")
        if not all(isinstance(value, str) for value in read.values()):
            raise ValueError("its parts are no text")
        return FilterText(**read)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ThreadsError(f"A kept filter is damaged: {error}.", remedy="Delete its thread.") from error


def _without_passages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same with passages that only name where their text is; () if some of it could not be found again."""
    if any(isinstance(part, Passage) and not part.key for message in messages for part in message.parts):
        return ()
    return tuple(
        replace(m, parts=tuple(replace(p, text="") if isinstance(p, Passage) else p for p in m.parts)) for m in messages
    )


def _without_text(source: Source) -> Source:
    return replace(source, hit=_with_text(source.hit, ""))


def _counts_alone(trace: Trace) -> Trace:
    """Without what belongs to the library, and what `edgerag trace` keeps."""
    spans = tuple(replace(span, facts=()) for span in trace.spans)
    return replace(trace, spans=spans, hits=(), messages=(), tokens=())


def _shortened(hit: Hit) -> Hit:
    return _with_text(hit, hit.chunk.chunk.text[:_NEAREST_CHARACTERS])


def _with_text(hit: Hit, text: str) -> Hit:
    stored = hit.chunk
    return replace(hit, chunk=replace(stored, chunk=replace(stored.chunk, text=text, context="")))


def _source(value: Mapping[str, Any]) -> Source:
    return Source(**{**value, "hit": _hit(value["hit"]), "spans": tuple(map(tuple, value["spans"]))})


def _hit(value: Mapping[str, Any]) -> Hit:
    stored = value["chunk"]
    chunk = Chunk(**{**stored["chunk"], "heading_path": tuple(stored["chunk"]["heading_path"])})
    return Hit(
        StoredChunk(**{**stored, "chunk": chunk, "also_in": tuple(stored["also_in"])}), Scores(**value["scores"])
    )


def _prefill(value: Mapping[str, Any]) -> Prefill:
    spans = _pairs(value.get("approximate_spans", ()))
    return Prefill(
        **{
            **value,
            "notes": tuple(value["notes"]),
            "approximate_spans": spans,
            "batches": (),
            "restores": (),
            "saves": (),
        }
    )


def _trace(value: Mapping[str, Any]) -> Trace:
    budget, second_look = value["budget"], value["second_look"]
    return Trace(
        spans=tuple(StageSpan(**{**each, "facts": ()}) for each in value["spans"]),
        token_ns=tuple(map(int, value["token_ns"])),
        began_ns=int(value.get("began_ns", 0)),
        vector_leg=value["vector_leg"],
        second_look=None if second_look is None else SecondLookReport(**second_look),
        budget=None
        if budget is None
        else PromptBudget(**{**budget, "parts": tuple(PromptPart(**part) for part in budget["parts"])}),
    )


def _pairs(value: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(second)) for first, second in value)


def _message(value: Mapping[str, Any]) -> Message:
    parts = (part if isinstance(part, str) else Passage(**part) for part in value["parts"])
    return Message(value["role"], tuple(parts))
