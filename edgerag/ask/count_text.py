"""What a count of documents is said to be: how many, which, and exactly what was counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from edgerag.ask.quotes import to_sources
from edgerag.safe_text import SafeText
from edgerag.types import DocumentMatch, Hit, KeywordScan, Scores, Source, StoredChunk, WordQuery

# Documents named in one answer: a screenful.
MOST_DOCUMENTS = 20
_MOST_PIECES_NAMED = 8
_NAME_CHARACTERS = 80
_WHAT_IS_COUNTED = (
    "Only these words are counted, in any case and with other endings; what is said in other words is not."
)


def scan_sources(scan: KeywordScan, chunks: Mapping[int, StoredChunk], *, question: str) -> tuple[Source, ...]:
    """A source for each document that is named and whose passage is among ``chunks`` (by id)."""
    shown = [match for match in scan.documents if match.chunk_id in chunks]
    nothing = Scores(keyword=None, keyword_rank=None, vector=None, vector_rank=None, fused=0.0)
    return to_sources([Hit(chunks[match.chunk_id], nothing) for match in shown], question=question)


def scan_text(scan: KeywordScan, sources: tuple[Source, ...], *, types: Sequence[str] = ()) -> str:
    """The counts and the documents as an answer; every document is cited under its number."""
    lines = [_summary(scan, types)]
    numbers = {source.hit.chunk.document_id: source.number for source in sources}
    named = [match for match in scan.documents if match.document_id in numbers]
    if named:
        lines += ["", *(f"- {_line(match, scan)} [{numbers[match.document_id]}]" for match in named)]
        hidden = scan.document_count - len(named)
        if hidden:
            lines += ["", f"and {counted(hidden, 'more document')}."]
    if scan.pieces and scan.document_total:
        lines += ["", _WHAT_IS_COUNTED]
    return "\n".join(lines)


def unfollowed_text(scan: KeywordScan, unfollowed: Sequence[str]) -> str:
    """What is said where nothing can be counted as it was asked: of each word alone, where it stands."""
    words = " and ".join(f"“{_clean(word)}”" for word in unfollowed)
    lines = [f"This cannot be counted as it is asked: a count of words does not follow {words}."]
    if scan.pieces:
        alone = "; ".join(
            f"“{_clean(count.piece)}” stands in {counted(count.document_count, 'document')},"
            f" in {counted(count.passage_count, 'passage')}"
            for count in scan.pieces[:_MOST_PIECES_NAMED]
        )
        lines += [f"Each word alone: {alone}.", "", _WHAT_IS_COUNTED]
    return "\n".join(lines)


def _summary(scan: KeywordScan, types: Sequence[str]) -> str:
    kind = " or ".join(f"“{_clean(name)}”" for name in types)
    of_kind = f" of the type {kind}" if types else ""
    total = counted(scan.document_total, "document") + of_kind
    if types and not scan.document_total:
        return f"There are no documents{of_kind}."
    if not scan.pieces:
        there = "There is" if scan.document_total == 1 else "There are"
        return f"{there} {total} with {counted(scan.passage_total, 'passage')}."
    count = scan.document_count
    if not count and not scan.words.any_of:
        every = "The only" if scan.document_total == 1 else "Every one of the"
        return f"{every} {total} {_said(WordQuery(scan.words.none_of), 1)}."
    if not count:
        looked = f"None of {total} {_said(scan.words, 1)}."
        alone = [
            f"“{_clean(count.piece)}” stands in {counted(count.document_count, 'document')}"
            for count in scan.pieces
            if count.document_count
        ]
        return looked + (f" {'; '.join(alone)}." if alone and len(scan.pieces) > 1 else "")
    found = f"{count:,} of {total} {_said(scan.words, count)}"
    if not scan.words.any_of:
        return f"{found}."
    passages = counted(scan.passage_count, "passage")
    several = any(len(words) > 1 for words in scan.words.any_of)
    if scan.joint_document_count == count:
        return f"{found}, in {passages}{' together' if several else ''}."
    if not scan.passage_count:
        return f"{found}, but no passage has {'them together' if several else 'it outside the title'}."
    where = f"in {scan.joint_document_count:,} of them"
    if several:
        return f"{found}; {where} they stand together, in {passages}."
    return f"{found}, {where} outside the title, in {passages}."


def _said(words: WordQuery, count: int) -> str:
    """ "contain “pump” or “valve”, but not “motor”": what was counted, of so many documents."""
    one = count == 1
    if len(words.any_of) == 1:
        all_of = "all of " if len(words.any_of[0]) > 1 else ""
        held = f"contain{'s' if one else ''} {all_of}{_named(list(words.any_of[0]))}"
    elif words.any_of:
        groups = [" with ".join(f"“{_clean(word)}”" for word in group) for group in words.any_of]
        held = f"contain{'s' if one else ''} {', '.join(groups[:-1])} or {groups[-1]}"
    else:
        held = ""
    if not words.none_of:
        return held
    left_out = [" with ".join(f"“{_clean(word)}”" for word in group) for group in words.none_of]
    if held:
        return f"{held}, but {'not ' if len(left_out) == 1 else 'none of '}{', '.join(left_out)}"
    if len(left_out) == 1:
        return f"{'does' if one else 'do'} not contain {left_out[0]}"
    return f"contain{'s' if one else ''} none of {', '.join(left_out)}"


def _line(match: DocumentMatch, scan: KeywordScan) -> str:
    name = _clean(PurePath(match.path).name)
    if match.passage_count:
        return f"{name}: {counted(match.passage_count, 'passage')}"
    if not scan.words.any_of:
        return name
    several = any(len(words) > 1 for words in scan.words.any_of)
    return f"{name}: {'in different passages' if several else 'in the title'}"


def _named(words: list[str]) -> str:
    shown = [f"“{_clean(word)}”" for word in words[:_MOST_PIECES_NAMED]]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more words" if more else "")


def _clean(text: str) -> str:
    """On one line, without what a terminal could obey or a reader take for a citation."""
    safe = " ".join(SafeText().feed(text).split()).replace("[", "(").replace("]", ")")
    return safe if len(safe) <= _NAME_CHARACTERS else safe[: _NAME_CHARACTERS - 1] + "…"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
