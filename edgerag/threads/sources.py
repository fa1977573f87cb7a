"""A kept source in the document of today: the same, elsewhere, changed, or gone. Pure: the document is given."""

from __future__ import annotations

from dataclasses import replace

from edgerag.threads.records import passage_hash
from edgerag.types import FoundSource, Source, SourceState


def find_again(source: Source, hash_of_passage: str, text: str | None) -> FoundSource:
    """``text`` is the document's as it is now; None: there is none."""
    if text is None:
        return FoundSource(source, "gone")
    chunk, quote = source.hit.chunk.chunk, source.quote
    length, inside = chunk.end - chunk.start, source.quote_start - chunk.start
    if _is_passage(text, chunk.start, length, hash_of_passage):
        return _found(source, text, chunk.start, "current")
    place = text.find(quote) if quote else -1
    while place >= 0:
        if _is_passage(text, place - inside, length, hash_of_passage):
            return _found(source, text, place - inside, "moved")
        place = text.find(quote, place + 1)
    return FoundSource(source, "changed")


def _is_passage(text: str, start: int, length: int, expected: str) -> bool:
    return start >= 0 and start + length <= len(text) and passage_hash(text[start : start + length]) == expected


def _found(source: Source, text: str, start: int, state: SourceState) -> FoundSource:
    stored = source.hit.chunk
    length = stored.chunk.end - stored.chunk.start
    chunk = replace(stored.chunk, start=start, end=start + length, text=text[start : start + length])
    quote_start = source.quote_start - stored.chunk.start + start
    return FoundSource(
        replace(source, hit=replace(source.hit, chunk=replace(stored, chunk=chunk)), quote_start=quote_start), state
    )
