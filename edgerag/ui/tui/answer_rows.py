"""An answer's Markdown in rows of the terminal, at one width.

Pure: text in, rows out. The rows of a block are the same as long as its source is, so that of a growing answer only the
last block is laid out again (docs/decisions/119).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token
from textual.content import Content, Span
from textual.highlight import highlight
from textual.style import Style

from edgerag.ui.inert_markdown import inert_parser

_MARK = re.compile(r"\[([0-9]{1,3})\]")
_CITING = re.compile(r"cite\(([0-9]{1,3})\)")
_CLOSING = re.compile(r"[^\w\s]*")  # a full stop, a closing quotation mark, the bracket of a mark
# Behind a sentence that stands in no source, where others have the number of theirs.
DOUBT_SIGN = Content.styled("[?]", "bold $text-warning")
_DOUBT_STYLE = "italic $text-warning"
_INLINE_STYLES = {"em_open": "italic", "strong_open": "bold", "s_open": "strike"}
_CODE_STYLE = "$text-warning on $warning 10%"
_HEADING_STYLES = {1: "bold underline $text-primary", 2: "bold $text-primary", 3: "bold", 4: "bold", 5: "italic"}
_LINE_STYLE = "$foreground 40%"  # of rules and the lines of tables
_BULLETS = ("•", "◦", "▪")
CODE_GROUND = "on $panel"
_LEAST_COLUMN = 4  # cells; a table with less for each column is told as text


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row: what stands before the text, and the text."""

    content: Content
    lead: int = 0  # characters before the text: a bullet, the bar of a quotation
    goes_on: bool = False  # the row before was full: there is no line end between them
    ground: str = ""  # a style that fills the row


def with_marks(content: Content) -> Content:
    """``content`` with its source marks made clickable."""
    for match in _MARK.finditer(content.plain):
        action = Style.from_meta({"@click": f"cite({int(match[1])})"})
        content = content.stylize("$text-accent", *match.span()).stylize(action, *match.span())
    return content


def marked_number(action: str) -> int | None:
    """The number of a source mark, by what a click on it does; None where it is no mark."""
    match = _CITING.fullmatch(action)
    return int(match[1]) if match else None


def with_doubts(content: Content, doubted: Sequence[str]) -> Content:
    """``content`` with a sign behind each sentence that stands in no source. They are compared by their letters and
    digits: what Markdown adds around them is not on the screen."""
    for sentence in doubted:
        places = [place for place, character in enumerate(content.plain) if character.isalnum()]
        letters, wanted = _letters(content.plain), _letters(sentence)
        at = letters.find(wanted) if wanted else -1
        if at >= 0:
            start, end = places[at], places[at + len(wanted) - 1] + 1
            end += len(_CLOSING.match(content.plain, end)[0])  # type: ignore[index]  # it matches nothing too
            doubted_words = content[start:end].stylize(_DOUBT_STYLE)
            content = Content.assemble(content[:start], doubted_words, " ", DOUBT_SIGN, content[end:])
    return content


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


class RowMaker:
    """Lays out texts at one width; keeps the rows of the blocks of the last one."""

    def __init__(self, width: int, doubted: Sequence[str] = ()) -> None:
        self.width = max(1, width)
        self._doubted = tuple(doubted)
        self._kept: dict[str, list[AnswerRow]] = {}

    def rows(self, text: str) -> list[AnswerRow]:
        """The rows of a whole text, an empty one between two blocks."""
        kept, self._kept = self._kept, {}
        rows: list[AnswerRow] = []
        for source, tokens in top_blocks(text):
            own = kept.get(source)
            if own is None:
                own = _Layout(self.width, self._doubted).rows_of(tokens)
            self._kept[source] = own
            if rows and own:
                rows.append(BLANK)
            rows += own
        return rows


BLANK = AnswerRow(Content(""))


def top_blocks(text: str) -> Iterator[tuple[str, Sequence[Token]]]:
    """The source and the tokens of each block that lies in no other."""
    lines = text.split("\n")
    tokens = inert_parser().parse(text)
    first, depth = 0, 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            own = tokens[first : index + 1]
            start, end = own[0].map or (0, len(lines))
            yield "\n".join(lines[start:end]), own
            first = index + 1


@dataclass(slots=True)
class _Lead:
    """What stands at the left of all rows within a list item or a quotation."""

    first: Content
    rest: Content
    is_used: bool = False


@dataclass(slots=True)
class _List:
    number: int | None  # of the next item; None: bullets
    bullet: str = ""


@dataclass
class _Layout:
    width: int
    doubted: Sequence[str]
    rows: list[AnswerRow] = field(default_factory=list)
    _leads: list[_Lead] = field(default_factory=list)
    _lists: list[_List] = field(default_factory=list)
    _gap: bool = False  # an empty row stands before the next block

    def rows_of(self, tokens: Sequence[Token]) -> list[AnswerRow]:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            match token.type:
                case "inline":
                    self._text(self._inline(token), gap=not tokens[index - 1].hidden)
                case "heading_open":
                    index += 1
                    level = int(token.tag[1:])
                    self._text(self._inline(tokens[index]).stylize_before(_HEADING_STYLES.get(level, "italic")))
                case "fence" | "code_block":
                    self._code(token.content, token.info)
                case "hr":
                    self._block([AnswerRow(Content.styled("─" * self._room, _LINE_STYLE))])
                case "table_open":
                    end = next(n for n in range(index, len(tokens)) if tokens[n].type == "table_close")
                    self._table(tokens[index:end])
                    index = end
                case "blockquote_open":
                    bar = Content.styled("▌ ", "$text-primary")
                    self._leads.append(_Lead(bar, bar))
                case "blockquote_close" | "list_item_close":
                    self._leave()
                case "bullet_list_open":
                    self._lists.append(_List(None, _BULLETS[len(self._lists) % len(_BULLETS)]))
                case "ordered_list_open":
                    self._lists.append(_List(int(token.attrs.get("start", 1))))
                case "list_item_open":
                    self._item()
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                    self._gap = self._gap or not self._lists
                case _:
                    pass  # the ends of what has been dealt with
            index += 1
        return self.rows

    # ------------------------------------------------------------ rows, and what stands before them

    @property
    def _room(self) -> int:
        return max(1, self.width - sum(lead.rest.cell_length for lead in self._leads))

    def _item(self) -> None:
        own = self._lists[-1]
        sign = f"{own.bullet} " if own.number is None else f"{own.number}. "
        if own.number is not None:
            own.number += 1
        self._leads.append(_Lead(Content.styled(sign, "$text-primary"), Content(" " * len(sign))))

    def _leave(self) -> None:
        if not self._leads[-1].is_used:
            self._block([BLANK], gap=False)  # an item without a word has its bullet all the same
        self._leads.pop()

    def _block(self, rows: Sequence[AnswerRow], *, gap: bool = True) -> None:
        if self._gap and self.rows:
            self.rows.append(self._led(BLANK, as_gap=True))
        self.rows += [self._led(row) for row in rows]
        self._gap = gap

    def _led(self, row: AnswerRow, *, as_gap: bool = False) -> AnswerRow:
        if not self._leads:
            return row
        parts = []
        for lead in self._leads:
            parts.append(lead.rest if lead.is_used or as_gap else lead.first)
            lead.is_used = lead.is_used or not as_gap
        before = Content("").join(parts)
        return AnswerRow(before + row.content, len(before.plain) + row.lead, row.goes_on, row.ground)

    def _text(self, content: Content, *, gap: bool = True) -> None:
        rows: list[AnswerRow] = []
        for line in content.split("\n", allow_blank=True):
            rows += [AnswerRow(piece, goes_on=number > 0) for number, piece in enumerate(_wrapped(line, self._room))]
        self._block(rows, gap=gap)

    def _inline(self, token: Token) -> Content:
        return with_marks(with_doubts(inline_content(token), self.doubted))

    # ------------------------------------------------------------ code, tables

    def _code(self, code: str, language: str) -> None:
        # Without a language one would be guessed from the code, again at every word.
        painted = highlight(code.rstrip("\n"), language=language.split(" ")[0] or "text")
        room = max(1, self._room - 4)
        rows = [AnswerRow(Content(""), ground=CODE_GROUND)]
        for line in painted.split("\n", allow_blank=True):
            pieces = _wrapped(line.expand_tabs(4), room)
            rows += [
                AnswerRow(Content("  ") + piece, 2, number > 0, CODE_GROUND) for number, piece in enumerate(pieces)
            ]
        self._block([*rows, AnswerRow(Content(""), ground=CODE_GROUND)])

    def _table(self, tokens: Sequence[Token]) -> None:
        table: list[list[Content]] = []
        aligned: list[str] = []
        for index, token in enumerate(tokens):
            if token.type == "tr_open":
                table.append([])
            elif token.type in ("th_open", "td_open"):
                cell = with_marks(inline_content(tokens[index + 1]))
                table[-1].append(cell.stylize_before("bold") if token.type == "th_open" else cell)
                if token.type == "th_open":
                    aligned.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        doubted = {_letters(sentence) for sentence in self.doubted}
        for row in table[1:]:
            if row and _letters("".join(cell.plain for cell in row)) in doubted:
                row[:] = [cell.stylize(_DOUBT_STYLE) for cell in row]
                row[-1] = Content.assemble(row[-1], " ", DOUBT_SIGN)
        widths = _column_widths([[cell.cell_length for cell in row] for row in table], self._room)
        if widths is None:
            for row in table:
                self._text(Content(" │ ").join(row), gap=False)
            self._gap = True
        else:
            self._block(_table_rows(table, widths, aligned))


def inline_content(token: Token) -> Content:
    """The words of a block with their styles."""
    parts: list[str] = []
    spans: list[Span] = []
    open_styles: list[tuple[str, int]] = []
    length = 0

    def add(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    for child in token.children or ():
        match child.type:
            case "softbreak":
                add(" ")
            case "hardbreak":
                add("\n")
            case "code_inline":
                spans.append(Span(length, length + len(child.content), _CODE_STYLE))
                add(child.content)
            case kind if kind in _INLINE_STYLES:
                open_styles.append((_INLINE_STYLES[kind], length))
            case kind if kind.endswith("_close") and open_styles:
                style, start = open_styles.pop()
                spans.append(Span(start, length, style))
            case _:
                add(re.sub(r"\s+", " ", child.content))
    return Content("".join(parts), spans=spans)


def _wrapped(line: Content, width: int) -> list[Content]:
    """``line`` in pieces that are at most so many cells wide; one at least."""
    if line.cell_length <= width:
        return [line]
    return [piece.truncate(width) for piece in line.wrap(width)] or [line]


def _column_widths(cells: Sequence[Sequence[int]], room: int) -> list[int] | None:
    """How wide each column is, the lines between them left out; None where they find no room."""
    columns = [max(column) for column in zip(*cells, strict=False)]
    left = room - 3 * len(columns) - 1
    if not columns or left < _LEAST_COLUMN * len(columns):
        return None
    widths = [0] * len(columns)
    # The narrow ones have what they need; what is left is shared.
    order = sorted(range(len(columns)), key=columns.__getitem__)
    for place, index in enumerate(order):
        widths[index] = max(1, min(columns[index], left // (len(columns) - place)))
        left -= widths[index]
    return widths


def _table_rows(table: Sequence[Sequence[Content]], widths: Sequence[int], aligned: Sequence[str]) -> list[AnswerRow]:
    def line(left: str, middle: str, right: str) -> AnswerRow:
        return AnswerRow(Content.styled(left + middle.join("─" * (width + 2) for width in widths) + right, _LINE_STYLE))

    bar = Content.styled("│", _LINE_STYLE)
    rows = [line("┌", "┬", "┐")]
    for number, cells in enumerate(table):
        if number == 1:
            rows.append(line("├", "┼", "┤"))
        pieces = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for at in range(max(map(len, pieces))):
            parts = [bar]
            for column, width in enumerate(widths):
                piece = pieces[column][at] if at < len(pieces[column]) else Content("")
                space = max(0, width - piece.cell_length)
                before = {"right": space, "center": space // 2}.get(aligned[column] if column < len(aligned) else "", 0)
                parts += [Content(" " * (before + 1)), piece, Content(" " * (space - before + 1)), bar]
            rows.append(AnswerRow(Content("").join(parts)))
    return [*rows, line("└", "┴", "┘")]
