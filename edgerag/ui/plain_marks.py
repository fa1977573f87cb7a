r"""The marks of an answer in plain text, where neither a colour nor a link tells them from numbers of the documents.

``[2]`` is a mark of a source. A number in brackets that a document or a model wrote and that is none stands there as
``\[2\]``, which every reader of Markdown shows as [2]; code and formulas stay as they are, for there are no marks in
them (docs/decisions/133).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from edgerag.ui.source_marks import NO_MARKS, NumberKind, SourceMarks, is_source_code

# The parser of Markdown is loaded by the first text with such a number, and not by every command.
_NUMBER = re.compile(r"\[([0-9]{1,3})\]")
_MAY_BECOME_NUMBER = re.compile(r"\[[0-9]{0,3}\]?\Z")
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
# What may make code, a formula, a table or a quotation of what stands before it, once its end is there.
_OPENERS = frozenset("`$\\|“")
_LONG = 2_000  # characters: two sections, of which one may be forgotten


@dataclass(frozen=True, slots=True)
class BracketedNumber:
    """``text[start:end]`` is a number in brackets: a mark, one of the document's own, or a piece of code."""

    start: int
    end: int
    number: int
    kind: NumberKind


def bracketed_numbers(text: str, marks: SourceMarks) -> list[BracketedNumber]:
    """Those of a whole answer, in their order."""
    if _NUMBER.search(text) is None:
        return []
    from edgerag.ui.inert_markdown import judged_numbers

    kinds: Iterator[NumberKind] = judged_numbers(text, marks)
    return [
        BracketedNumber(match.start(), match.end(), int(match[1]), kind)
        for match, kind in zip(_NUMBER.finditer(text), kinds, strict=True)
    ]


def marked_text(text: str, marks: SourceMarks) -> str:
    """A whole answer as plain text."""
    return _written(text, 0, len(text), bracketed_numbers(text, marks))


def foreign_words(text: str) -> str:
    """Words of a document in which no number is a mark, as they stand beside an answer."""
    return _NUMBER.sub(r"\\[\1\\]", text)


def passage_words(text: str, media_type: str) -> str:
    """As :func:`foreign_words`, of a passage of such a document; code stays as it is, to be copied."""
    return text if is_source_code(media_type) else foreign_words(text)


class MarkedStream:
    """An answer that comes in pieces: joined, what ``feed`` and ``finish`` give is its ``marked_text``.

    Held back is a number in brackets that cannot be judged yet, with what follows it: until the next character, or to
    the end of the paragraph where that may still become code, a formula, a table or a quotation.
    """

    def __init__(self) -> None:
        self.marks = NO_MARKS
        self._text = ""  # from the beginning of a section
        self._given = 0

    def feed(self, piece: str) -> str:
        self._text += piece
        return self._give(self._settled())

    def finish(self) -> str:
        """The rest. Nothing may be fed after it."""
        return self._give(len(self._text))

    def _settled(self) -> int:
        """Up to where all is decided."""
        for match in re.finditer(r"\[", self._text[self._given :]):
            start = self._given + match.start()
            number = _NUMBER.match(self._text, start)
            if number is None:
                if _MAY_BECOME_NUMBER.match(self._text, start):
                    return start
            elif number.end() == len(self._text) or not self._is_decided(start):
                return start
        return len(self._text)

    def _is_decided(self, start: int) -> bool:
        if self.marks.at_end_alone:
            return False
        ends = [match.end() for match in _EMPTY_LINE.finditer(self._text, 0, start)]
        paragraph = self._text[ends[-1] if ends else 0 : start]
        return not _OPENERS.intersection(paragraph) or _EMPTY_LINE.search(self._text, start) is not None

    def _give(self, end: int) -> str:
        begun, self._given = self._given, max(self._given, end)
        piece = self._text[begun : self._given]
        if _NUMBER.search(piece):
            piece = _written(self._text, begun, self._given, bracketed_numbers(self._text, self.marks))
        self._forget()
        return piece

    def _forget(self) -> None:
        """Whole sections that are given say nothing about what is to come."""
        if len(self._text) > _LONG and self._given > _LONG // 2:
            from edgerag.ui.sections import sections_of

            for section in sections_of(self._text)[:-1]:
                if len(section) > self._given:
                    break
                self._text, self._given = self._text[len(section) :], self._given - len(section)


def _written(text: str, first: int, last: int, numbers: list[BracketedNumber]) -> str:
    parts, at = [], first
    for each in numbers:
        if each.kind == "own" and first <= each.start < last:
            parts += [text[at : each.start], f"\\[{text[each.start + 1 : each.end - 1]}\\]"]
            at = each.end
    return "".join([*parts, text[at:last]])
