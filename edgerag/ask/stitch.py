"""The rest of a sentence that the border of a chunk cuts off is put back, so that nobody reads half of it.

Pure but for ``around``, which reads the document. Chunks follow sentences where they can; a border falls into one where
a page ends, a line is broken, or a sentence is longer than a chunk. What is put back is prose to the end of the
sentence and no more than some lines: the passage stays a span of its document, and is not much longer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence

from edgerag.ask.words import ENDERS, sentence_spans
from edgerag.types import Hit

AROUND = 400  # characters on each side; a sentence that is longer stays cut
Around = Callable[[int, int], tuple[str, str]]  # of a chunk's id, so many characters: the text before it and behind it

_CLOSERS = "\"'”’»)]」』）】*_"


def stitched(hits: Sequence[Hit], *, around: Around) -> tuple[Hit, ...]:
    """The hits, each with the rest of the sentences that it begins or ends in the middle of, unless that stands in the
    hit next to it in the document. What becomes longer has no state kept of it."""
    places = {(hit.chunk.document_id, hit.chunk.chunk.ordinal) for hit in hits}
    return tuple(_stitched(hit, around, places) if _may_be_cut(hit) else hit for hit in hits)


def _stitched(hit: Hit, around: Around, places: Collection[tuple[int, int]]) -> Hit:
    chunk = hit.chunk.chunk
    before, behind = around(hit.chunk.id, AROUND)
    if (hit.chunk.document_id, chunk.ordinal - 1) in places:
        before = ""
    if (hit.chunk.document_id, chunk.ordinal + 1) in places:
        behind = ""
    head, tail = cut_off(before, chunk.text, behind)
    if not head and not tail:
        return hit
    text = f"{head}{chunk.text}{tail}"
    longer = dataclasses.replace(
        chunk,
        text=text,
        start=chunk.start - len(head),
        end=chunk.end + len(tail),
        token_count=round(chunk.token_count * len(text) / len(chunk.text)),
        line_first=chunk.line_first - head.count("\n"),
        line_last=chunk.line_last + tail.count("\n"),
    )
    return dataclasses.replace(hit, chunk=dataclasses.replace(hit.chunk, chunk=longer, kv_key=""))


def cut_off(before: str, text: str, behind: str) -> tuple[str, str]:
    """What of the sentences at both ends of ``text`` stands before it and behind it; "" where nothing does, where a
    sentence is longer than what is given, and where it does not end as prose does."""
    whole = f"{before}{text}{behind}"
    start, end = len(before), len(before) + len(text)
    spans = list(sentence_spans(whole))
    head = next((first for first, last in spans if first < start < last), start)
    tail = next((last for first, last in spans if first < end < last), end)
    if head == 0 or not _ends_prose(whole[:head]):  # it may begin further up
        head = start
    if (tail == len(whole) and not _ends_prose(whole)) or not _ends_prose(whole[:tail]):
        tail = end
    return whole[head:start], whole[end:tail]


def _may_be_cut(hit: Hit) -> bool:
    text = hit.chunk.chunk.text.strip()
    if not text:
        return False
    begins_inside = hit.chunk.chunk.ordinal > 0 and text[0].islower()
    return begins_inside or not _ends_prose(text)


def _ends_prose(text: str) -> bool:
    return text.rstrip().rstrip(_CLOSERS)[-1:] in ENDERS if text.strip() else False
