"""Text to citable chunks: along headings and paragraphs, within the embedder's limit, offsets exact.

Pure: no I/O, no clock. Promises, for any text: ``document.text[start:end] == chunk.text``; chunks are
in order and do not overlap; every character that is not white space lies in exactly one; none is
longer than ``max_tokens`` as it is embedded, unless it is a single character.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from edgerag.config import ChunkSettings
from edgerag.ingest.blocks import Block, Markup, Span, blocks
from edgerag.ingest.split import Splitter, longest
from edgerag.types import Chunk, Heading, Page, ParsedDocument, page_unit

CountTokens = Callable[[str], int]

# A block or a tail may go this far over the target rather than be cut in two.
_TOLERANCE = 1.25
# A chunk smaller than this share of the target is joined to its neighbour if it may be.
_SMALL = 0.3
# A chunk at least this full ends at the end of its page or slide; rows are there to be read together.
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
        "text/xml",
        "application/x-ipynb+json",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.presentation",
        "application/rtf",
        "application/epub+zip",
        "message/rfc822",
        "application/vnd.ms-outlook",
    }
)
_MARKUP: dict[str, Markup] = {
    "text/markdown": "markdown",
    "application/x-ipynb+json": "markdown",
    "text/x-rst": "underlined",
    "text/asciidoc": "underlined",
}
# Source code and data: their headings are the names of parts, which are often too small to stand alone.
_OUTLINED = (
    *("text/x-", "text/javascript", "text/css", "application/json", "application/jsonl"),
    *("application/yaml", "application/toml", "application/xml"),
)
# A part up to this share of the target shares its chunk with its neighbours.
_SMALL_PART = 0.5


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
        self._ends_with_page = page_unit(document.media_type) != "row"
        self._contexts: dict[tuple[str, ...], str] = {}
        media_type = document.media_type
        self._markup: Markup = _MARKUP.get(media_type, "none" if media_type in _PROSE else "lines")
        self._outlined = self._markup == "lines" and media_type.startswith(_OUTLINED)

    def run(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        line, line_offset = self._document.first_line, 0
        pack = self._pack_outline if self._outlined else self._pack
        for span, path in pack(self._sections()):
            context = self._context(path)
            for start, end, tokens in self._fitted(span, context):
                line += self._text.count("\n", line_offset, start)
                line_offset = start
                chunks.append(self._make(len(chunks), start, end, path, line, tokens, context))
        return chunks

    # ------------------------------------------------------------ sections

    def _sections(self) -> Iterator[_Section]:
        """The sections in order; one that is only a heading opens the one below it."""
        headings = sorted(self._document.headings, key=lambda heading: heading.start)
        found = blocks(self._text, headings, markup=self._markup)
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

    def _pack(self, sections: Iterable[_Section]) -> Iterator[tuple[Span, tuple[str, ...]]]:
        """Each section for itself."""
        for section in sections:
            for group in self._groups(section.blocks):
                yield self._span(group), section.path

    def _pack_outline(self, sections: Iterable[_Section]) -> Iterator[tuple[Span, tuple[str, ...]]]:
        """Small neighbours under one heading share a chunk, under the path they have in common."""
        half = self._target * _SMALL_PART
        joined: _Group | None = None
        path: tuple[str, ...] = ()
        several = False  # parts in ``joined``, of which ``path`` then is the whole
        for section, opens in _with_parts_below(sections):
            groups = self._whole(self._groups(section.blocks))
            small = len(groups) == 1 and groups[0].tokens <= half
            if joined is not None:
                if small and not opens and _related(path, section.path, several) and self._fits(joined, groups[0]):
                    joined.add(groups[0])
                    path, several = section.path[:-1], True
                    continue
                yield self._span(joined), path
                joined = None
            if small:
                joined, path, several = groups[0], section.path, False
            else:
                for group in groups:
                    yield self._span(group), section.path
        if joined is not None:
            yield self._span(joined), path

    def _whole(self, groups: list[_Group]) -> list[_Group]:
        """One group of all if it is not much over the target: a function is best read whole."""
        tokens = sum(group.tokens for group in groups)
        most = min(self._target * _TOLERANCE, self._room())
        if len(groups) < 2 or tokens > most or groups[-1].end - groups[0].start > longest(self._target):
            return groups
        for group in groups[1:]:
            groups[0].add(group)
        return groups[:1]

    def _fits(self, group: _Group, piece: _Group) -> bool:
        tokens = group.tokens + piece.tokens
        return tokens <= self._target and piece.end - group.start <= longest(self._target)

    def _groups(self, section: Sequence[Block]) -> list[_Group]:
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
        return groups

    def _span(self, group: _Group) -> Span:
        return self._indented(group.start), group.end

    def _joins(self, group: _Group, piece: _Piece) -> bool:
        tokens = group.tokens + piece.tokens
        if tokens > self._room() or piece.end - group.start > longest(self._target):
            return False
        if group.heading or group.tokens < self._target * _SMALL:
            return True  # alone it would say too little to be found
        full = self._ends_with_page and group.tokens >= self._target * _PAGE_FULL
        if full and self._page(group.end - 1) != self._page(piece.start):
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
            hidden=self._is_hidden(start, end),
        )

    def _is_hidden(self, start: int, end: int) -> bool:
        """Whether a span that nobody sees in the file reaches into this one."""
        spans = self._document.hidden
        first = bisect.bisect_right(spans, start, key=lambda span: span[1])
        return first < len(spans) and spans[first][0] < end

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


def _with_parts_below(sections: Iterable[_Section]) -> Iterator[tuple[_Section, bool]]:
    """Each section, and whether the next one is a part of it."""
    before: _Section | None = None
    for section in sections:
        if before is not None:
            yield before, _is_below(section.path, before.path)
        before = section
    if before is not None:
        yield before, False


def _is_below(path: tuple[str, ...], above: tuple[str, ...]) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _related(path: tuple[str, ...], following: tuple[str, ...], several: bool) -> bool:
    """True for a whole and its first part, and for parts of one whole."""
    above = following[:-1]
    return path == above or (not several and path[:-1] == above)


def _titles(path: list[Heading]) -> tuple[str, ...]:
    return tuple(heading.title for heading in path)


def _page_number(pages: tuple[Page, ...], index: int) -> int | None:
    return pages[index].number if index >= 0 else None
