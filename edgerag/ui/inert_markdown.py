"""The Markdown that answers are read as: structure, and nothing that could act or hide text.

A model repeats what documents say, so its Markdown is foreign text. Links, images, autolinks, references, HTML and
entities are no syntax: they stand there as they were written (docs/decisions/050). Formulas in the notation of
LaTeX are text too: nothing inside them is emphasis or an escape.

Every letter and digit of the text is in the tokens, in its order, and no mark is taken away where that would make one
word or one number of two: ``2*3*4`` stays, and so does ``__init__``. An underscore is never emphasis: it is part of a
name far more often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit, getLine, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from edgerag.ui.source_marks import NO_MARKS, NumberKind, SourceMarks
from edgerag.word_edges import is_edge

# $x_1$ of one line, with no blank inside the signs, as people write prices: "from $5 to $10".
# Not longer than a page: what is never closed is not looked for to the end of the text at each sign. ``\[2\]`` is a
# number in escaped brackets (plain_marks.py), no formula, and stands in none.
_FORMULA = re.compile(
    r"\\\(.{1,1000}?\\\)|\\\[(?![0-9]{1,3}\\?\])(?:(?!\\\[[0-9]{1,3}\\\]).){1,1000}?\\\]|\$\$[^$]+\$\$|\$(?![\s\d])[^$\n]*[^\s$\\]\$(?!\d)",
    re.DOTALL,
)
_LINE_ENDS = re.compile(r"\r\n?")
_UNDERSCORES = re.compile(r"_+")
_NUMBERED = re.compile(r"\[([0-9]{1,3})\]")
# Of quotations and lists in one another, a list counting twice. Below it their signs are text: nobody reads deeper,
# and each level costs the parser a call.
_DEEPEST = 24
_MARKS = "source_marks"  # in the parser's environment
_JUDGED = "judged"  # there, too: whether the number in brackets at a place is a mark, where somebody wants to know
SOURCE_MARK = "source_mark"  # the type of its tokens


def inert_parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough, without anything that could act."""
    # It leaves out what is nested deeper than its own limit, which is never reached.
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 4 * _DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.disable(["link", "image", "autolink", "entity", "reference", "html_block", "html_inline"])
    parser.block.ruler.before("table", "deep", _deep)
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("escape", "formula", partial(_as_it_stands, _FORMULA))
    parser.inline.ruler.before("escape", "source_mark", _source_mark)
    parser.inline.ruler.before("emphasis", "underscores", partial(_as_it_stands, _UNDERSCORES))
    parser.core.ruler.after("inline", "unjoined", _unjoined)
    return parser


def parsed(text: str, marks: SourceMarks) -> list[Token]:
    """The tokens of an answer, its source marks among them."""
    return inert_parser().parse(text, {_MARKS: marks})


def judged_numbers(text: str, marks: SourceMarks) -> Iterator[NumberKind]:
    """What each number in brackets of ``text`` is, in their order. "own": of whoever wrote it; "code": it stands in
    code, in a quotation of code or in a formula, or is escaped."""
    parser = inert_parser()
    for token in parser.parse(text, {_MARKS: marks}):
        if token.type != "inline":
            for _ in _NUMBERED.finditer(f"{token.info}\n{token.content}"):
                yield "code"
            continue
        if _NUMBERED.search(token.content):
            judged: dict[int, bool] = {}
            parser.inline.parse(token.content, parser, {_MARKS: marks, _JUDGED: judged}, [])
            for match in _NUMBERED.finditer(token.content):
                is_mark = judged.get(match.start())
                if is_mark:
                    yield "mark"
                else:
                    yield "code" if is_mark is None or marks.is_code(token.content, match.start()) else "own"


def with_line_ends(text: str) -> str:
    """``text`` with the line ends that the parser sees."""
    return _LINE_ENDS.sub("\n", text)


# ---------------------------------------------------------------- blocks


def _deep(state: StateBlock, first: int, last: int, _silent: bool) -> bool:
    """Each line of what is nested too deep is a paragraph, its signs its text."""
    if state.level < _DEEPEST:
        return False
    line = first
    while line < last and not 0 <= state.sCount[line] < state.blkIndent:
        if text := getLine(state, line).strip():
            state.push("paragraph_open", "p", 1).map = [line, line + 1]
            inline = state.push("inline", "", 0)
            inline.content, inline.map, inline.children = text, [line, line + 1], []
            state.push("paragraph_close", "p", -1)
        line += 1
    state.line = max(line, first + 1)
    return True


def _whole_table(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A table; cells beyond those of its head stand in the last one."""
    begun = len(state.tokens)
    if not table(state, first, last, silent):
        return False
    tokens = state.tokens[begun:]
    count = sum(token.type == "th_open" for token in tokens)
    cells: list[Token] = []
    for index, token in enumerate(tokens):
        if token.type == "td_open":
            cells.append(tokens[index + 1])
        elif token.type == "tr_close" and cells:
            written = _cells(getLine(state, cells[-1].map[0]) if cells[-1].map else "")
            if len(written) > count:
                cells[-1].content = " | ".join(cell.strip() for cell in written[count - 1 :])
            cells = []
    return True


def _cells(line: str) -> list[str]:
    cells = escapedSplit(line.strip())
    if cells and not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return cells


# ---------------------------------------------------------------- within a block


def _as_it_stands(pattern: re.Pattern[str], state: StateInline, silent: bool) -> bool:
    match = pattern.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True


def _source_mark(state: StateInline, silent: bool) -> bool:
    marks: SourceMarks = state.env.get(_MARKS, NO_MARKS)
    match = _NUMBERED.match(state.src, state.pos, state.posMax)
    is_mark = match is not None and marks.is_mark(state.src, match.start(), match.end())
    if match is not None and (judged := state.env.get(_JUDGED)) is not None:
        judged[match.start()] = is_mark
    if match is None or not is_mark:
        return False
    if not silent:
        token = state.push(SOURCE_MARK, "", 0)
        token.content = match[0]
        token.info = match[1]
    state.pos = match.end()
    return True


def _unjoined(state: StateCore) -> None:
    for token in state.tokens:
        if token.children and any(child.nesting or child.type == "code_inline" for child in token.children):
            _show_needed_marks(token.children)


def _show_needed_marks(children: Sequence[Token]) -> None:
    """Marks that would join what stands on both sides are text, and so is a single star beside a digit."""
    partner = _partners(children)
    needed: set[int] = set()
    gap: list[int] = []  # marks since the last character that is seen
    before = ""
    for index, child in enumerate(children):
        if child.nesting or child.type == "code_inline":
            gap.append(index)
        # Both sides of a span of code are gaps; its own letters stand between them.
        seen = "" if child.nesting else child.content or ("\n" if child.type.endswith("break") else "")
        if not seen:
            continue
        needed.update(_needed(children, gap, before, seen[0]))
        gap = [index] if child.type == "code_inline" else []
        before = seen[-1]
    needed.update(_needed(children, gap, before, ""))
    for index in needed | {partner[index] for index in needed if index in partner}:
        child = children[index]
        if child.type == "code_inline":
            child.content = f"{child.markup}{child.content}{child.markup}"
        else:
            child.type, child.tag, child.nesting, child.content = "text", "", 0, child.markup


def _needed(children: Sequence[Token], gap: Sequence[int], before: str, after: str) -> list[int]:
    if gap and before and after and not is_edge(before + after, 1):
        return list(gap)
    beside_digit = before.isdigit() or after.isdigit()
    return [index for index in gap if beside_digit and children[index].type in ("em_open", "em_close")]


def _partners(children: Sequence[Token]) -> dict[int, int]:
    """The place of the other end of each pair of marks."""
    open_places: list[int] = []
    partner: dict[int, int] = {}
    for index, child in enumerate(children):
        if child.nesting > 0:
            open_places.append(index)
        elif child.nesting < 0 and open_places:
            other = open_places.pop()
            partner[index], partner[other] = other, index
    return partner
