"""An answer's Markdown in rows of the terminal, at one width.

Pure: text in, rows out. The rows of a block are the same as long as its source is, so that of a growing answer only the
last block is laid out again (docs/decisions/119).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from markdown_it.token import Token
from textual.content import Content
from textual.highlight import highlight

from edgerag.ui.inert_markdown import with_line_ends
from edgerag.ui.source_marks import NO_MARKS, SourceMarks
from edgerag.ui.tui.answer_blocks import TopBlock, top_blocks
from edgerag.ui.tui.answer_doubts import DOUBT_SIGN, DOUBT_STYLE, Doubt, letters, with_doubts, within
from edgerag.ui.tui.answer_inline import inline_content
from edgerag.ui.tui.line_breaks import broken

_HEADING_STYLES = {1: "bold underline $text-primary", 2: "bold $text-primary", 3: "bold", 4: "bold", 5: "italic"}
_LINE_STYLE = "$foreground 40%"  # of rules and the lines of tables
_LANGUAGE_STYLE = "$foreground 60%"
_BULLETS = ("•", "◦", "▪")
CODE_GROUND = "on $panel"
_CODE_EDGE = 2  # cells on both sides of code
_LEAST_COLUMN = 4  # cells; a table with less for each column is told as text
_LEAST_ROOM = 10  # cells for text beside bullets, numbers and bars; in a narrow window half of it


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row: what stands before the text, and the text.

    ``joint`` is what stood between the row before and this one: a line end, or what of a line was taken away because
    it was broken there: blanks, or nothing within a word. ``whole`` is what the row says where all of it is copied, if
    that is not its text: a row of a table may take several.
    """

    content: Content
    lead: int = 0  # characters before the text: a bullet, the bar of a quotation
    joint: str = "\n"
    ground: str = ""  # a style that fills the row
    whole: str | None = None

    @property
    def goes_on(self) -> bool:
        """The row before was full: there is no line end between them."""
        return self.joint != "\n"


class RowMaker:
    """Lays out texts at one width; keeps the rows of the blocks of the last one."""

    def __init__(self, width: int, doubted: Sequence[Doubt | str] = (), marks: SourceMarks = NO_MARKS) -> None:
        """``doubted``: sentences with a sign; of a bare string it is not known where it begins."""
        self.width = max(1, width)
        self._doubted = tuple(Doubt(each) if isinstance(each, str) else each for each in doubted)
        self._marks = marks
        self._kept: dict[tuple[str, tuple[Doubt, ...]], list[AnswerRow]] = {}

    def rows(self, text: str) -> list[AnswerRow]:
        """The rows of a whole text, an empty one between two blocks."""
        kept, self._kept = self._kept, {}
        rows: list[AnswerRow] = []
        for block in top_blocks(with_line_ends(text), self._marks):
            doubted = within(self._doubted, block.start, block.start + len(block.source) + 1)
            own = kept.get((block.source, doubted))
            if own is None:
                own = _Layout(self.width, block, doubted).laid_out()
            self._kept[block.source, doubted] = own
            if rows and own:
                rows.append(BLANK)
            rows += own
        return rows


BLANK = AnswerRow(Content(""))


@dataclass(slots=True)
class _Lead:
    """What stands at the left of all rows within a list item or a quotation."""

    first: Content
    rest: Content
    is_used: bool = False

    @classmethod
    def nothing(cls) -> _Lead:
        """Where there is no room for it."""
        return cls(Content(""), Content(""), is_used=True)


@dataclass(slots=True)
class _List:
    bullet: str  # "": numbers, each as it was written


@dataclass
class _Layout:
    width: int
    block: TopBlock
    doubted: Sequence[Doubt]
    rows: list[AnswerRow] = field(default_factory=list)
    _leads: list[_Lead] = field(default_factory=list)
    _lists: list[_List] = field(default_factory=list)
    _gap: bool = False  # an empty row stands before the next block

    def laid_out(self) -> list[AnswerRow]:
        tokens, index = self.block.tokens, 0
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
                    self._leads.append(_Lead(bar, bar) if self._has_room(bar.cell_length) else _Lead.nothing())
                case "blockquote_close" | "list_item_close":
                    self._leave()
                case "bullet_list_open":
                    self._lists.append(_List(_BULLETS[len(self._lists) % len(_BULLETS)]))
                case "ordered_list_open":
                    self._lists.append(_List(""))
                case "list_item_open":
                    self._item(token)
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

    def _has_room(self, cells: int) -> bool:
        """Whether so much can stand before the text."""
        return self._room - cells >= min(_LEAST_ROOM, self.width // 2)

    def _item(self, token: Token) -> None:
        bullet = self._lists[-1].bullet
        sign = f"{bullet} " if bullet else f"{token.info}{token.markup} "
        if self._has_room(len(sign)):
            self._leads.append(_Lead(Content.styled(sign, "$text-primary"), Content(" " * len(sign))))
        else:  # a number is never left out
            if not bullet:
                self._block(self._pieces(Content.styled(sign.rstrip(), "$text-primary"), self._room), gap=False)
            self._leads.append(_Lead.nothing())

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
        return replace(row, content=before + row.content, lead=len(before.plain) + row.lead)

    def _text(self, content: Content, *, gap: bool = True) -> None:
        rows: list[AnswerRow] = []
        for line in content.split("\n", allow_blank=True):
            rows += self._pieces(line, self._room)
        self._block(rows, gap=gap)

    @staticmethod
    def _pieces(line: Content, room: int) -> list[AnswerRow]:
        return [
            AnswerRow(piece.content, joint=piece.joint if number else "\n")
            for number, piece in enumerate(broken(line, room))
        ]

    def _inline(self, token: Token) -> Content:
        return with_doubts(inline_content(token), *self._doubts_of(token))

    def _doubts_of(self, token: Token) -> tuple[str, Sequence[Doubt]]:
        """The source of a token, and the doubted sentences that begin in it."""
        if not self.doubted:
            return "", ()
        source, start = self.block.part(token)
        return source, within(self.doubted, start, start + len(source))

    # ------------------------------------------------------------ code, tables

    def _code(self, code: str, info: str) -> None:
        edge = _CODE_EDGE if self._room > 3 * _CODE_EDGE else 0
        room = max(1, self._room - 2 * edge)

        def led(line: Content) -> list[AnswerRow]:
            return [
                replace(row, content=Content(" " * edge) + row.content, lead=edge, ground=CODE_GROUND)
                for row in self._pieces(line, room)
            ]

        empty = AnswerRow(Content(""), ground=CODE_GROUND)
        # What stands behind the fence, mostly the name of the language, is part of the answer as well.
        rows = led(Content.styled(info.strip(), _LANGUAGE_STYLE)) if info.strip() else [empty]
        # Without a language one would be guessed from the code, again at every word.
        painted = highlight(code.rstrip("\n"), language=info.strip().split(" ")[0] or "text")
        for line in painted.split("\n", allow_blank=True):
            rows += led(line.expand_tabs(4))
        self._block([*rows, empty])

    def _table(self, tokens: Sequence[Token]) -> None:
        table: list[list[Content]] = []
        aligned: list[str] = []
        for index, token in enumerate(tokens):
            if token.type == "tr_open":
                table.append([])
            elif token.type in ("th_open", "td_open"):
                cell = inline_content(tokens[index + 1])
                table[-1].append(cell.stylize_before("bold") if token.type == "th_open" else cell)
                if token.type == "th_open":
                    aligned.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        rows = [token for token in tokens if token.type == "tr_open"]
        for row, opened in zip(table[1:], rows[1:], strict=True):
            doubted = {letters(doubt.words) for doubt in self._doubts_of(opened)[1]}
            if row and letters("".join(cell.plain for cell in row)) in doubted:
                row[:] = [cell.stylize(DOUBT_STYLE) for cell in row]
                row[-1] = Content.assemble(row[-1], " ", DOUBT_SIGN)
        widths = _column_widths([[cell.cell_length for cell in row] for row in table], self._room)
        if widths is None:
            for row in table:
                self._text(Content(" │ ").join(row), gap=False)
            self._gap = True
        else:
            self._block(_table_rows(table, widths, aligned))


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
        pieces = [[piece.content for piece in broken(cell, width)] for cell, width in zip(cells, widths, strict=True)]
        whole = f"│ {' │ '.join(cell.plain for cell in cells)} │"
        for at in range(max(map(len, pieces))):
            parts = [bar]
            for column, width in enumerate(widths):
                piece = pieces[column][at] if at < len(pieces[column]) else Content("")
                space = max(0, width - piece.cell_length)
                before = {"right": space, "center": space // 2}.get(aligned[column] if column < len(aligned) else "", 0)
                parts += [Content(" " * (before + 1)), piece, Content(" " * (space - before + 1)), bar]
            rows.append(AnswerRow(Content("").join(parts), whole="" if at else whole, joint="" if at else "\n"))
    return [*rows, line("└", "┴", "┘")]
