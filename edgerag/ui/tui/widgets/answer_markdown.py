"""Markdown from a model, shown as text with structure: nothing in it can act.

Links, images, HTML and entities are not parsed: they stand there as they were written, the address
visible and dead. The only thing that can be clicked is a source mark such as [2], and its action is
made here from the number alone.

A long answer stands in sections (ui/sections.py), of which only the last one grows: the others keep the height that
they have, so that a word more costs the layout of one section and not of all there is.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Any

from rich.style import Style as RichStyle
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets import _markdown as blocks  # the block classes are public in use, not in name

from edgerag.ui.inert_markdown import inert_parser
from edgerag.ui.plain import plain
from edgerag.ui.sections import sections_of

# While an answer streams it is painted as often as the eye follows text, and so seldom that all that the screen does
# takes a tenth of one core from the model that shares it; but it always moves (docs/decisions/085).
_AT_ONCE_S, _PAINT_EVERY_S, _PAINT_AT_LEAST_EVERY_S = 0.001, 1 / 20, 0.5
_SHARE_OF_A_CORE = 0.1
_MARK = re.compile(r"\[([0-9]{1,3})\]")
_CITING = re.compile(r"cite\(([0-9]{1,3})\)")
_CLOSING = re.compile(r"[^\w\s]*")  # a full stop, a closing quotation mark, the bracket of a mark
# Behind a sentence that stands in no source, where others have the number of theirs.
DOUBT_SIGN = Content.styled("[?]", "bold $text-warning")
_DOUBT_STYLE = "italic $text-warning"


def with_marks(content: Content) -> Content:
    """``content`` with its source marks made clickable."""
    for match in _MARK.finditer(content.plain):
        action = Style.from_meta({"@click": f"cite({int(match[1])})"})
        content = content.stylize("$text-accent", *match.span()).stylize(action, *match.span())
    return content


def mark_under(style: RichStyle) -> int | None:
    """The number of the source mark that is painted in this style; None where it is no mark."""
    match = _CITING.fullmatch(str(style.meta.get("@click", "")))
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


class _Citing:
    """The action of a source mark, for every block that shows text."""

    def action_cite(self, number: int) -> None:
        markdown = self.query_ancestor(AnswerMarkdown)  # type: ignore[attr-defined]
        markdown.post_message(AnswerMarkdown.MarkClicked(markdown, number))


class _Paragraph(_Citing, blocks.MarkdownParagraph):
    def set_content(self, content: Content) -> None:
        super().set_content(with_marks(content))


class _Cell(_Citing, blocks.MarkdownTableCellContents):
    """A table cell."""


class _TableContent(blocks.MarkdownTableContent):
    """Without Textual's tooltips, which would read the text of a cell as markup."""

    def compose(self) -> ComposeResult:
        for header in self.headers:
            yield _Cell(with_marks(header), classes="header")
        for number, row in enumerate(self.rows, 1):
            for cell in row:
                yield _Cell(with_marks(cell), classes=f"row{number} cell")
        self.last_row = len(self.rows)

    def on_mount(self) -> None:
        self.doubt(self.query_ancestor(AnswerMarkdown).doubted)

    def doubt(self, sentences: Sequence[str]) -> None:
        """Puts a sign into the rows that are among ``sentences``: a row is a sentence of its own."""
        doubted = {_letters(sentence) for sentence in sentences}
        for number, row in enumerate(self.rows, 1):
            if _letters("".join(cell.plain for cell in row)) in doubted:
                cells = list(self.query(f".row{number}").results(_Cell))
                if len(cells) < len(row):  # they are being put on the screen: on_mount does it
                    return
                for cell, content in zip(cells, row, strict=True):
                    words = with_marks(content).stylize(_DOUBT_STYLE)
                    cell.update(Content.assemble(words, " ", DOUBT_SIGN) if content is row[-1] else words)


class _Table(blocks.MarkdownTable):
    def compose(self) -> ComposeResult:
        self._headers, self._rows = self._get_headers_and_rows()
        yield _TableContent(self._headers, self._rows)

    async def _update_from_block(self, block: blocks.MarkdownBlock) -> None:
        # Replaced as a whole; Textual's row by row update would bring the tooltips back.
        await blocks.MarkdownBlock._update_from_block(self, block)


class _Fence(blocks.MarkdownFence):
    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        # Without a language Textual guesses one from the code, again at every repaint.
        return super().highlight(code, language or "text", ansi=ansi, dark=dark)


class _Section(Markdown):
    """A run of whole blocks of an answer."""

    BLOCKS: dict[str, type[blocks.MarkdownBlock]] = {  # noqa: RUF012 - as Textual declares it
        **Markdown.BLOCKS,
        "paragraph_open": _Paragraph,
        "table_open": _Table,
        "fence": _Fence,
        "code_block": _Fence,
    }

    def __init__(self) -> None:
        super().__init__(parser_factory=inert_parser, open_links=False)
        self.is_settled = False  # nothing more comes to it

    def let_go(self) -> None:
        """Its height is what its words need."""
        self.styles.height = "auto"

    def hold(self) -> None:
        """Its height is what it is: it need not be laid out again while others grow."""
        if self.is_settled and self.size.width and self.size.height:
            self.styles.height = self.size.height


class AnswerMarkdown(Widget):
    """One answer. ``add`` takes it piece by piece, ``finish`` sets the whole."""

    class MarkClicked(Message):
        """The user chose a source mark in the text."""

        def __init__(self, markdown: AnswerMarkdown, number: int) -> None:
            super().__init__()
            self.markdown = markdown
            self.number = number

        @property
        def control(self) -> AnswerMarkdown:
            return self.markdown

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sections: list[_Section] = []
        self._waiting: list[str] = []
        self._painter: Timer | None = None
        self._restarts = False
        self._ended = False
        # The timer may be painting still when the answer is finished, and would paint over the signs of doubt.
        self._painting = asyncio.Lock()
        self._width = 0
        self._used_before_s = time.thread_time()  # by the thread of the screen, when the last paint began
        self.doubted: tuple[str, ...] = ()  # sentences that have a sign

    @property
    def source(self) -> str:
        """The text as far as it is painted, as Markdown."""
        return "".join(section.source for section in self._sections)

    def restart(self) -> None:
        """The next piece stands in place of all there is."""
        self._restarts = True

    def add(self, piece: str) -> None:
        """Takes the next piece; it is on the screen within one repaint."""
        self._waiting.append(plain(piece))
        if self._painter is None:
            self._ended = False
            self._painter = self.set_timer(_AT_ONCE_S, self._paint_on)

    async def finish(self, whole: str | None = None) -> None:
        """Paints what is left. ``whole`` replaces the text if the pieces did not add up to it."""
        self._ended = True
        await self._paint()
        async with self._painting:
            if self._painter is not None:  # nothing is being painted now that stopping it would cut off
                self._painter.stop()
                self._painter = None
            if whole is not None and self.source != plain(whole):
                await self._replace(plain(whole))
            for section in self._sections:
                section.is_settled = True
        self._hold_soon()

    def doubt(self, sentences: Sequence[str]) -> None:
        """Puts a sign behind these sentences of the finished answer."""
        self.doubted = tuple(sentences)
        if not sentences:
            return
        for section in self._sections:
            section.let_go()
        for block in self.query(blocks.MarkdownBlock):
            if block._content.plain:
                block.set_content(with_doubts(block._content, sentences))
        for table in self.query(_TableContent):
            table.doubt(sentences)
        self._hold_soon()

    async def _paint_on(self) -> None:
        """Paints what there is, and again when that is due."""
        used_s, self._used_before_s = time.thread_time() - self._used_before_s, time.thread_time()
        await self._paint()
        due_s = min(_PAINT_AT_LEAST_EVERY_S, max(_PAINT_EVERY_S, used_s / _SHARE_OF_A_CORE))
        if not self._ended:
            self._painter = self.set_timer(due_s, self._paint_on)

    async def _paint(self) -> None:
        async with self._painting:
            if self._waiting:
                text = "".join(self._waiting)
                self._waiting.clear()
                if self._restarts:
                    self._restarts = False
                    await self._replace(text)
                else:
                    await self._append(text)

    async def _replace(self, text: str) -> None:
        gone, self._sections = self._sections, []
        for section in gone:
            await section.remove()
        await self._append(text)

    async def _append(self, text: str) -> None:
        if not self._sections:
            await self._begin_section()
        section = self._sections[-1]
        before = len(section.source)
        pieces = sections_of(section.source + text)
        own = pieces.pop(0)
        while len(own) < before:  # it has begun to show what might have begun another
            own += pieces.pop(0)
        if len(own) > before:
            await section.append(own[before:])
        for piece in pieces:
            section.is_settled = True
            section = await self._begin_section()
            await section.append(piece)
        if pieces:
            self._hold_soon()

    async def _begin_section(self) -> _Section:
        section = _Section()
        self._sections.append(section)
        await self.mount(section)
        return section

    def _hold_soon(self) -> None:
        self.call_after_refresh(self._hold)  # only then their sizes are those of their words

    def _hold(self) -> None:
        for section in self._sections:
            section.hold()

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            for section in self._sections:
                section.let_go()
            self._hold_soon()
