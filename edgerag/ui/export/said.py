"""What the exported forms of a thread say in the same words."""

from __future__ import annotations

from datetime import datetime

from edgerag.types import CUT, Exchange, FilterText, FoundSource, SourceState
from edgerag.ui.place import full_place, in_library
from edgerag.ui.plain import plain

_STATES: dict[SourceState, str] = {
    "current": "",
    "moved": "it stands elsewhere in the document now",
    "changed": "the document has changed since",
    "gone": "no longer in the library",
}


def when(time_ns: int) -> str:
    """``2026-05-17 14:03``, in local time."""
    return datetime.fromtimestamp(time_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M")


def state_words(found: FoundSource) -> str:
    """What to know of a source that is not as it was; "" when it is."""
    return _STATES[found.state]


def where_words(found: FoundSource) -> str:
    """Library, file and place."""
    stored = found.source.hit.chunk
    return plain(f"{in_library(stored)}{stored.path}, {full_place(stored)}")


def ending(exchange: Exchange) -> str:
    """Why the answer is not whole; "" when it is."""
    match exchange.state:
        case "stopped":
            return exchange.problem or "Stopped before its end."
        case "asked":
            return "Interrupted before its end."
        case "failed":
            return exchange.problem
        case _:
            answer = exchange.answer
            if answer is None or answer.stop_reason != "length" or any(note.startswith(CUT) for note in answer.notes):
                return ""  # of a cut answer the note says it, where there is one
            return "Cut: it reached the limit of its length."


def filter_words(where: FilterText) -> str:
    """``in docs/ · type pdf · since 2024``; "" without any."""
    named = (
        ("in", where.inside),
        ("tag", where.tags),
        ("language", where.languages),
        ("type", where.types),
        ("since", where.since),
        ("until", where.until),
    )
    return " · ".join(f"{name} {value}" for name, value in named if value)


def doubts(exchange: Exchange) -> list[tuple[str, str]]:
    """The sentences that stand in no source, each with the reason."""
    answer = exchange.answer
    if answer is None:
        return []
    return [(answer.text[s.start : s.end], s.reason) for s in answer.sentences if s.support == "unsupported"]
