"""Text to citable chunks: along headings and paragraphs, within the embedder's limit, offsets exact.

Pure: no I/O, no clock. Promises, for any text: ``document.text[start:end] == chunk.text``; chunks are
in order and do not overlap; every character that is not white space lies in exactly one; none is
longer than ``max_tokens`` as it is embedded, unless it is a single character.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from edgerag.config import ChunkSettings
from edgerag.ingest.blocks import Block, Span, blocks
from edgerag.ingest.split import Splitter, longest
from edgerag.types import Chunk, Heading, Page, ParsedDocument

CountTokens = Callable[[str], int]

# A block or a tail may go this far over the target rather than be cut in two.
_TOLERANCE = 1.25
# A chunk smaller than this share of the target is joined to its neighbour if it may be.
_SMALL = 0.3
# A chunk at least this full ends at the end of its page.
_PAGE_FULL = 0.5
# The context may not take more of the embedder's room than this share.
_CONTEXT_SHARE = 0.25
_DEEPEST_INDENT = 80
_SEPARATOR = " > "
# Media types whose text is running text; in all others a line is a unit.
_PROSE = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "text/x-rst",
        "text/asciidoc",
        "text/x-tex",
        "text/org",
    }
)


def chunk(
    document: ParsedDocument, *, count_tokens: CountTokens, settings: ChunkSettings, max_tokens: int
) -> list[Chunk]:
    """The chunks of a document, in order.

    ``settings.target_tokens`` is aimed at for the text alone; ``max_tokens`` bounds the text together
    with its context (title and heading path), counted by ``count_tokens``.
    """
    return _Chunker(document, count_tokens, settings, max_tokens).run()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or part of a long one, with its tokens."""

    start: int
    end: int
    tokens: int
    heading: bool


@dataclass(frozen=True, slots=True)
class _Section:
    path: tuple[str, ...]
    blocks: list[Block]


@dataclass(slots=True)
class _Group:
    """Pieces that become one chunk."""

    start: int
    end: int
    tokens: int
    heading: bool  # nothing but headings so far

    def add(self, piece: _Piece | _Group) -> None:
        self.end = piece.end
        self.tokens += piece.tokens
        self.heading = self.heading and piece.heading


class _Chunker:
    def __init__(
        self, document: ParsedDocument, count_tokens: CountTokens, settings: ChunkSettings, max_tokens: int
    ) -> None:
        self._document = document
        self._text = document.text
        self._count = count_tokens
        self._max_tokens = max_tokens
        self._context_tokens = min(settings.heading_tokens, int(max_tokens * _CONTEXT_SHARE))
        self._target = max(1, min(settings.target_tokens, max_tokens - self._context_tokens))
        self._splitter = Splitter(document.text, count_tokens)
        self._page_starts = [page.start for page in document.pages]
        self._contexts: dict[tuple[str, ...], str] = {}

    def run(self) -> list[Chunk]:
        spans: list[tuple[Span, tuple[str, ...]]] = []
        for section in self._sections():
            spans.extend((span, section.path) for span in self._pack(section.blocks))
        chunks: list[Chunk] = []
        line, line_offset = 1, 0
        for span, path in spans:
            context = self._context(path)
            for start, end, tokens in self._fitted(span, context):
                line += self._text.count("\n", line_offset, start)
                line_offset = start
                chunks.append(self._make(len(chunks), start, end, path, line, tokens, context))
        return chunks

    # ------------------------------------------------------------ sections

    def _sections(self) -> Iterator[_Section]:
        """The sections in order; one that is only a heading opens the one below it."""
        media_type = self._document.media_type
        headings = sorted(self._document.headings, key=lambda heading: heading.start)
        found = blocks(
            self._text,
            headings,
            markdown=media_type == "text/markdown",
            structured=media_type not in _PROSE,
        )
        path: list[Heading] = []
        section: list[Block] = []
        for block in found:
            if block.heading is not None:
                has_text = any(b.heading is None for b in section)
                if section and (has_text or not path or block.heading.level <= path[-1].level):
                    yield _Section(_titles(path), section)
                    section = []
                while path and path[-1].level >= block.heading.level:
                    path.pop()
                path.append(block.heading)
            section.append(block)
        if section:
            yield _Section(_titles(path), section)

    # ------------------------------------------------------------ packing

    def _pack(self, section: Sequence[Block]) -> Iterator[Span]:
        """Neighbouring pieces of one section, joined up to the target."""
        groups: list[_Group] = []
        for block in section:
            for piece in self._pieces(block):
                if groups and self._joins(groups[-1], piece):
                    groups[-1].add(piece)
                else:
                    groups.append(_Group(piece.start, piece.end, piece.tokens, piece.heading))
        if len(groups) > 1:
            before, last = groups[-2:]
            if last.tokens < self._target * _SMALL and before.tokens + last.tokens <= self._target * _TOLERANCE:
                before.add(groups.pop())
        for group in groups:
            yield self._indented(group.start), group.end

    def _joins(self, group: _Group, piece: _Piece) -> bool:
        tokens = group.tokens + piece.tokens
        if tokens > self._room() or piece.end - group.start > longest(self._target):
            return False
        if group.heading or group.tokens < self._target * _SMALL:
            return True  # alone it would say too little to be found
        if group.tokens >= self._target * _PAGE_FULL and self._page(group.end - 1) != self._page(piece.start):
            return False
        return tokens <= self._target

    def _pieces(self, block: Block) -> Iterator[_Piece]:
        tokens = self._splitter.tokens_unless_over(block.start, block.end, self._room())
        most = self._room() if block.lines else min(self._target * _TOLERANCE, self._room())
        if tokens is not None and tokens <= most:
            yield _Piece(block.start, block.end, tokens, block.heading is not None)
            return
        for start, end, count in self._splitter.split(block.start, block.end, self._target, lines=block.lines):
            yield _Piece(start, end, count, heading=False)

    def _indented(self, start: int) -> int:
        """``start``, or the start of its line if only blanks stand before it: indentation says something in code."""
        line = start
        while line > 0 and self._text[line - 1] in " \t" and start - line < _DEEPEST_INDENT:
            line -= 1
        return line if line == 0 or self._text[line - 1] == "\n" else start

    def _room(self) -> int:
        return self._max_tokens - self._context_tokens

    def _fitted(self, span: Span, context: str) -> Iterator[tuple[int, int, int]]:
        """The span, or parts of it if it is longer than the embedder takes, with the tokens of each as embedded."""
        start, end = span
        tokens = self._splitter.tokens_unless_over(start, end, self._max_tokens, prefix=context)
        if tokens is not None and tokens <= self._max_tokens:
            yield start, end, tokens
            return
        limit = self._room()
        while True:
            parts = [
                (first, last, self._count(self._embedded(context, first, last)))
                for first, last, _ in self._splitter.split(start, end, limit, lines=False)
            ]
            if limit <= 1 or all(count <= self._max_tokens for _, _, count in parts):
                yield from parts
                return
            limit = max(1, limit * 3 // 4)  # the tokenizer makes more of the whole than of its parts

    def _embedded(self, context: str, start: int, end: int) -> str:
        text = self._text[start:end]
        return f"{context}\n{text}" if context else text

    # ------------------------------------------------------------ the records

    def _make(
        self, ordinal: int, start: int, end: int, path: tuple[str, ...], line: int, tokens: int, context: str
    ) -> Chunk:
        pages = self._document.pages
        return Chunk(
            ordinal=ordinal,
            start=start,
            end=end,
            text=self._text[start:end],
            heading_path=path,
            page_first=_page_number(pages, self._page(start)),
            page_last=_page_number(pages, self._page(end - 1)),
            line_first=line,
            line_last=line + self._text.count("\n", start, end),
            token_count=tokens,
            context=context,
        )

    def _page(self, offset: int) -> int:
        """Index of the page of an offset; -1 without pages."""
        return max(0, bisect.bisect_right(self._page_starts, offset) - 1) if self._page_starts else -1

    def _context(self, path: tuple[str, ...]) -> str:
        if path not in self._contexts:
            self._contexts[path] = self._shortened(path)
        return self._contexts[path]

    def _shortened(self, path: tuple[str, ...]) -> str:
        """Title and headings within the limit: the title and the innermost heading are kept longest."""
        title = self._document.title
        names = [title, *path] if title and title not in path[:1] else list(path)
        while names and self._count(_SEPARATOR.join(names)) > self._context_tokens:
            if len(names) > 2:
                del names[1]
                continue
            words = names[0].split()
            if len(words) > 1:
                names[0] = " ".join(words[: len(words) // 2])
            else:
                del names[0]
        return _SEPARATOR.join(names)


def _titles(path: list[Heading]) -> tuple[str, ...]:
    return tuple(heading.title for heading in path)


def _page_number(pages: tuple[Page, ...], index: int) -> int | None:
    return pages[index].number if index >= 0 else None
