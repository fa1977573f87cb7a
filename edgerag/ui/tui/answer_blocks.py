"""The blocks of an answer's Markdown that lie in no other, each with its source: what is laid out apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from edgerag.ui.inert_markdown import parsed
from edgerag.ui.source_marks import NO_MARKS, SourceMarks


@dataclass(frozen=True, slots=True)
class TopBlock:
    """A block that lies in no other."""

    source: str
    start: int  # in the text
    first_line: int
    tokens: Sequence[Token]

    def part(self, token: Token) -> tuple[str, int]:
        """The lines of ``source`` that a token was made of, and where they begin in it."""
        first, last = token.map or (self.first_line, self.first_line + self.source.count("\n") + 1)
        lines = self.source.split("\n")
        before, own = lines[: first - self.first_line], lines[first - self.first_line : last - self.first_line]
        return "\n".join(own), sum(len(line) + 1 for line in before)


def top_blocks(text: str, marks: SourceMarks = NO_MARKS) -> Iterator[TopBlock]:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    tokens = parsed(text, marks)
    begun, depth = 0, 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            own = tokens[begun : index + 1]
            first, last = own[0].map or (0, len(lines))
            yield TopBlock("\n".join(lines[first:last]), starts[first], first, own)
            begun = index + 1
