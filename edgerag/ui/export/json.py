"""A thread as one JSON document."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from edgerag.safe_text import json_text
from edgerag.types import Exchange, FoundSource, Thread, ThreadHead
from edgerag.ui import output
from edgerag.ui.export.said import when
from edgerag.ui.source_marks import marks_of_exchange


def to_json(thread: Thread, found: Mapping[int, Sequence[FoundSource]]) -> str:
    return json_text(thread_record(thread, found), indent=2) + "\n"


def thread_record(thread: Thread, found: Mapping[int, Sequence[FoundSource]]) -> dict[str, Any]:
    exchanges = [_exchange(exchange, found.get(exchange.id, ())) for exchange in thread.exchanges]
    return {**head_record(thread.head), "exchanges": exchanges}


def head_record(head: ThreadHead) -> dict[str, Any]:
    return {
        "id": head.id,
        "library": head.library,
        "title": head.title,
        "began": when(head.began_ns),
        "changed": when(head.changed_ns),
        "questions": head.question_count,
    }


def _exchange(exchange: Exchange, found: Sequence[FoundSource]) -> dict[str, Any]:
    answer = exchange.answer
    return {
        "question": exchange.question,
        "asked": when(exchange.asked_ns),
        "state": exchange.state,
        "filter": {name: value for name, value in dataclasses.asdict(exchange.where).items() if value},
        "version": exchange.version,
        "versions": exchange.versions,
        "answer": exchange.text,
        "source_marks": output.mark_records(exchange.text, marks_of_exchange(exchange)),
        "problem": exchange.problem,
        "found": answer.found if answer is not None else None,
        "stop_reason": answer.stop_reason if answer is not None else None,
        "model": answer.model if answer is not None else "",
        "notes": list(answer.notes) if answer is not None else [],
        "sentences": [
            {"text": exchange.text[s.start : s.end], **dataclasses.asdict(s)}
            for s in (answer.sentences if answer is not None else ())
        ],
        "sources": [{"state": each.state, **output.source_record(each.source)} for each in found],
    }
