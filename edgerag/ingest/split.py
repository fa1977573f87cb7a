"""Cuts a text that is too long: at its lines or sentences, then between words, then between characters.

Nothing is ever counted twice at one level, and nothing that is certainly too long is counted at all, so
that the time grows with the length of the text only.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from edgerag.ingest.blocks import trimmed

Part = tuple[int, int, int]  # start, end, tokens
Level = Literal["lines", "sentences"]

# No tokenizer makes fewer tokens than this out of text worth reading.
_MOST_CHARACTERS_PER_TOKEN = 12
_FIRST_GUESS_CHARACTERS = 4.0
# A window may shrink to this share to end between words.
_SHORTEST_WINDOW = 0.5
# Full stops want white space behind them, the marks of scripts without spaces do not.
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？｡।؟]+[”’」』）»]*")
_LINE_END = re.compile(r"\n")
_CLAUSE_ENDS = frozenset("、，；：,;:。")


class Splitter:
    """Cuts spans of one text."""

    def __init__(self, text: str, count_tokens: Callable[[str], int]) -> None:
        self._text = text
        self._count = count_tokens

    def tokens_unless_over(self, start: int, end: int, limit: int, *, prefix: str = "") -> int | None:
        """Tokens of a span (behind ``prefix``), or None when it is so long that it must be over the limit."""
        if end - start > longest(limit):
            return None
        text = self._text[start:end]
        return self._count(f"{prefix}\n{text}" if prefix else text)

    def split(self, start: int, end: int, limit: int, *, lines: bool) -> list[Part]:
        """Parts of at most ``limit`` tokens and about equal size; white space between them is left out."""
        levels: Sequence[Level] = ("lines", "sentences") if lines else ("sentences",)
        return self._joined(list(self._refined(start, end, limit, levels)), limit)

    def _refined(self, start: int, end: int, limit: int, levels: Sequence[Level]) -> Iterator[Part]:
        span = trimmed(self._text, start, end)
        if span is None:
            return
        start, end = span
        tokens = self.tokens_unless_over(start, end, limit)
        if tokens is not None and tokens <= limit:
            yield start, end, tokens
        elif levels:
            for first, last in self._cut(start, end, levels[0]):
                yield from self._refined(first, last, limit, levels[1:])
        else:
            yield from self._windows(start, end, limit)

    def _cut(self, start: int, end: int, level: Level) -> Iterator[tuple[int, int]]:
        position = start
        for match in (_LINE_END if level == "lines" else _SENTENCE_END).finditer(self._text, start, end):
            stop = match.end()
            if level == "sentences" and self._continues(stop, end):
                continue
            yield position, stop
            position = stop
        yield position, end

    def _continues(self, position: int, end: int) -> bool:
        """True when a small letter follows: the full stop was that of an abbreviation."""
        following = self._text[position : min(end, position + 2)].lstrip()
        return following[:1].islower()

    def _windows(self, start: int, end: int, limit: int) -> Iterator[Part]:
        per_token = _FIRST_GUESS_CHARACTERS
        position = start
        while position < end:
            if self._text[position].isspace():
                position += 1
                continue
            size = max(1, int(limit * per_token))
            while True:
                stop = self._boundary(position, min(end, position + size), end)
                tokens = self._count(self._text[position:stop])
                if tokens <= limit or stop - position <= 1:
                    break
                size = max(1, min(stop - position - 1, int((stop - position) * limit / tokens * 0.95)))
            per_token = min(_MOST_CHARACTERS_PER_TOKEN, max(0.25, (stop - position) / max(1, tokens)))
            if tight := trimmed(self._text, position, stop):
                yield *tight, tokens
            position = stop

    def _boundary(self, start: int, stop: int, end: int) -> int:
        """The best place to end a window: before white space, else after a clause, else between characters."""
        if stop >= end:
            return end
        text = self._text
        earliest = start + max(1, int((stop - start) * _SHORTEST_WINDOW))
        for position in range(stop, earliest, -1):
            if text[position].isspace():
                return position
        for position in range(stop, earliest, -1):
            if text[position - 1] in _CLAUSE_ENDS:
                return position
        for position in range(stop, earliest, -1):
            if not _belongs_to_previous(text[position]):
                return position
        return stop

    def _joined(self, parts: list[Part], limit: int) -> list[Part]:
        """Neighbours joined, evenly: as few as the limit allows, none much shorter than the others."""
        total = sum(tokens for _, _, tokens in parts)
        goal = total / max(1, math.ceil(total / limit))
        joined: list[Part] = []
        for start, end, tokens in parts:
            if joined:
                first, _, before = joined[-1]
                short = end - first <= longest(limit)
                if short and before + tokens <= limit and before + tokens / 2 <= goal:
                    joined[-1] = (first, end, before + tokens)
                    continue
            joined.append((start, end, tokens))
        return joined


def longest(limit: int) -> int:
    """The most characters that a span of ``limit`` tokens may have."""
    return limit * _MOST_CHARACTERS_PER_TOKEN


def _belongs_to_previous(character: str) -> bool:
    """Marks and joiners that are drawn onto the character before them."""
    return unicodedata.category(character)[0] == "M" or "\u200c" <= character <= "\u200d" or character == "\ufe0f"
