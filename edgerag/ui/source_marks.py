"""Which numbers in brackets are marks of the answer's sources, and which are words of a document.

A document has numbered references of its own. In a quotation "[2]" is one of these, and as a link it would lead to
another document than the one that says it. A mark is what the program put behind a quotation or a line of its own,
and in the words of a model the number of a source that the answer cites, where it is not copied from a source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from edgerag.ask.marks import is_copied, is_index
from edgerag.file_types import types_of
from edgerag.safe_text import SafeText
from edgerag.types import Answer, Exchange, InstantSentence, Source

# What a number in brackets is: a mark of a source, one of the document's own, a piece of source code.
NumberKind = Literal["mark", "own", "code"]

_IN_ADDRESS = re.compile(r"\]\([^\s)]*$")
_LONGEST_ADDRESS = 300  # characters that are looked through for its beginning


@dataclass(frozen=True, slots=True)
class SourceMarks:
    """``is_mark`` judges brackets in the text of one block."""

    numbers: frozenset[int] = frozenset()  # of the sources that may be marked
    quotations: tuple[tuple[str, int], ...] = ()  # as the program quotes, each with the number of its source
    texts: tuple[str, ...] = ()  # of the sources
    at_end_alone: bool = False  # the program's own lists: names of documents, and behind each its mark
    code: tuple[str, ...] = ()  # of the quotations, those of source code

    def is_code(self, block: str, start: int) -> bool:
        """Whether a number in brackets at ``start``, which is no mark, stands in a quotation of source code."""
        return any(start < len(words) and block.startswith(words) for words in self.code)

    def is_mark(self, block: str, start: int, end: int) -> bool:
        """Whether ``block[start:end]``, a number in brackets, is one."""
        number = int(block[start + 1 : end - 1])
        if number not in self.numbers:
            return False
        if self.at_end_alone:
            return not block[end:].strip()
        for words, source in self.quotations:
            if block.startswith(words):
                if start < len(words):
                    return False
                if number == source and not block[len(words) : start].strip():
                    return True
        before = block[max(0, start - _LONGEST_ADDRESS) : start]
        return not (
            block.startswith("(", end)
            or is_index(before)
            or _is_of_markdown(block, start, end)
            or _IN_ADDRESS.search(before)
            or is_copied(before, block[start:end], self.texts)
        )


def _is_of_markdown(block: str, start: int, end: int) -> bool:
    """Whether a bracket says where other brackets lead, at the beginning of a line, or stands in brackets itself."""
    begins_line = not block[block.rfind("\n", 0, start) + 1 : start].strip()
    return (begins_line and block.startswith(":", end)) or (block[:start].endswith("[") and block.startswith("]", end))


NO_MARKS = SourceMarks()


def marks_of(answer: Answer) -> SourceMarks:
    """Those of a finished answer: of the sources that it cites."""
    cited = [source.number for source in answer.sources if source.cited]
    return source_marks(answer.sources, cited, answer.instant, at_end_alone=answer.stop_reason == "counted")


def marks_of_exchange(exchange: Exchange) -> SourceMarks:
    """Those of a question that was kept; none where its answer never came to its end."""
    return marks_of(exchange.answer) if exchange.answer is not None else NO_MARKS


def source_marks(
    sources: Sequence[Source],
    numbers: Collection[int],
    instant: Sequence[InstantSentence] = (),
    *,
    at_end_alone: bool = False,
) -> SourceMarks:
    quoted = [(sentence.text, sentence.source) for sentence in instant]
    quoted += [(source.quote, source.number) for source in sources]
    of_code = {source.number for source in sources if is_source_code(source.hit.chunk.media_type)}
    return SourceMarks(
        numbers=frozenset(numbers),
        code=tuple(_in_marks(words) for words, number in quoted if number in of_code and words.strip()),
        quotations=tuple((_in_marks(words), number) for words, number in quoted if words.strip()),
        texts=tuple(source.hit.chunk.chunk.text or source.quote for source in sources),
        at_end_alone=at_end_alone,
    )


def is_source_code(media_type: str) -> bool:
    """Whether brackets in such a document are more likely an index than the number of a reference."""
    return types_of([media_type]) == ["code"]


def _in_marks(words: str) -> str:
    return f"“{' '.join(SafeText().feed(words).split())}”"
