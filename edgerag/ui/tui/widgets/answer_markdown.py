"""Markdown from a model, shown as text with structure: nothing in it can act.

Links, images, HTML and entities are not parsed: they stand there as they were written, the address
visible and dead. The only thing that can be clicked is a source mark such as [2], and its action is
made from the number alone (answer_rows.py).

The whole answer is one widget that paints rows. A word more costs the layout of the last block, and the paint of the
rows that changed; a long answer stands in sections (ui/sections.py), of which only the last one is read again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.geometry import Region, Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from edgerag.ui.plain import plain
from edgerag.ui.sections import sections_of
from edgerag.ui.source_marks import NO_MARKS, SourceMarks
from edgerag.ui.tui.answer_copy import copied
from edgerag.ui.tui.answer_doubts import Doubt, within
from edgerag.ui.tui.answer_inline import marked_number
from edgerag.ui.tui.answer_rows import BLANK, AnswerRow, RowMaker
from edgerag.ui.tui.keys_first import KeysFirst
from edgerag.ui.tui.widgets.one_layout import OneLayout

# While an answer streams it is painted as often as the eye follows text, and so seldom that all that the screen does
# takes a tenth of one core from the model that shares it; but it always moves (docs/decisions/085).
_AT_ONCE_S, _PAINT_EVERY_S, _PAINT_AT_LEAST_EVERY_S = 0.001, 1 / 20, 0.5
_SHARE_OF_A_CORE = 0.1


def mark_under(style: RichStyle) -> int | None:
    """The number of the source mark that is painted in this style; None where it is no mark."""
    return marked_number(str(style.meta.get("@click", "")))


@dataclass(slots=True)
class _Section:
    """A run of whole blocks of an answer."""

    source: str
    maker: RowMaker | None = None
    rows: list[AnswerRow] | None = None  # None: not laid out at this width


class AnswerMarkdown(OneLayout, Widget):
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
        self._rows: list[AnswerRow] = []
        self._strips: list[Strip | None] = []  # of the rows that were looked at
        self._width = 0
        self._waiting: list[str] = []
        self._painter: Timer | None = None
        self._let_key_pass = False
        self._restarts = False
        self._ended = False
        self._used_before_s = time.thread_time()  # by the thread of the screen, when the last paint began
        self.doubted: tuple[Doubt, ...] = ()  # sentences that have a sign
        self._marks = NO_MARKS

    @property
    def source(self) -> str:
        """The text as far as it is painted, as Markdown."""
        return "".join(section.source for section in self._sections)

    # ------------------------------------------------------------ the text comes

    def restart(self) -> None:
        """The next piece stands in place of all there is."""
        self._restarts = True

    def add(self, piece: str) -> None:
        """Takes the next piece; it is on the screen within one repaint."""
        self._waiting.append(plain(piece))
        if self._painter is None:
            self._ended = False
            self._painter = self.set_timer(_AT_ONCE_S, self._paint_on)

    def finish(self, whole: str | None = None) -> None:
        """Paints what is left. ``whole`` replaces the text if the pieces did not add up to it."""
        self._ended = True
        if self._painter is not None:
            self._painter.stop()
            self._painter = None
        self._take()
        if whole is not None and self.source != plain(whole):
            self._sections.clear()
            self._append(plain(whole))
        self._show()

    def mark(self, marks: SourceMarks) -> None:
        """Says which numbers in brackets lead to a source."""
        if self._marks != marks:
            self._marks = marks
            self._forget_rows()
            self._show()

    def doubt(self, sentences: Sequence[Doubt]) -> None:
        """Puts a sign behind these sentences of the finished answer."""
        if self.doubted != tuple(sentences):
            self.doubted = tuple(sentences)
            self._forget_rows()
            self._show()

    def _paint_on(self) -> None:
        """Paints what there is, and again when that is due; a key goes before, but not each of those that is held."""
        keys_first: KeysFirst | None = getattr(self.app, "keys_first", None)
        wait_s = keys_first.wait_s() if keys_first is not None and not self._let_key_pass else 0.0
        self._let_key_pass = wait_s > 0
        if self._let_key_pass and not self._ended:
            self._painter = self.set_timer(wait_s, self._paint_on)
            return
        used_s, self._used_before_s = time.thread_time() - self._used_before_s, time.thread_time()
        if self._take():
            self._show()
        due_s = min(_PAINT_AT_LEAST_EVERY_S, max(_PAINT_EVERY_S, used_s / _SHARE_OF_A_CORE))
        if not self._ended:
            self._painter = self.set_timer(due_s, self._paint_on)

    def _take(self) -> bool:
        """Whether there was something."""
        text = "".join(self._waiting)
        self._waiting.clear()
        if text and self._restarts:
            self._restarts = False
            self._sections.clear()
        if text:
            self._append(text)
        return bool(text)

    def _append(self, text: str) -> None:
        if not self._sections:
            self._sections.append(_Section(""))
        last = self._sections[-1]
        own, *more = sections_of(last.source + text)
        last.source, last.rows = own, None
        self._sections += [_Section(piece) for piece in more]

    # ------------------------------------------------------------ rows

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - Textual's signature
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        if width != self._width:
            self._width = width
            self._forget_rows()
            self._lay_out()
        return len(self._rows)

    def _forget_rows(self) -> None:
        for section in self._sections:
            section.maker = section.rows = None

    def _lay_out(self) -> int:
        """Lays out what is not yet; gives the first row that is another than before."""
        if not self._width:
            return 0
        rows: list[AnswerRow] = []
        start = 0  # of the section in the answer
        for section in self._sections:
            if section.rows is None:
                if section.maker is None:
                    doubted = within(self.doubted, start, start + len(section.source))
                    section.maker = RowMaker(self._width, doubted, self._marks)
                section.rows = section.maker.rows(section.source)
            start += len(section.source)
            if rows and section.rows:
                rows.append(BLANK)
            rows += section.rows
        before, self._rows = self._rows, rows
        same = next(
            (n for n, (one, other) in enumerate(zip(before, rows, strict=False)) if one is not other),
            min(len(before), len(rows)),
        )
        self._strips[same:] = [None] * (len(rows) - same)
        return same

    def _show(self) -> None:
        """Lays out and paints what has changed."""
        count = len(self._rows)
        first = self._lay_out()
        if len(self._rows) != count or not self._width:
            self.refresh(layout=True)
        elif first < count:
            self.refresh(Region(0, first, self.size.width, count - first))

    # ------------------------------------------------------------ painting

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips = [None] * len(self._rows)  # they are of the theme before

    def render_line(self, y: int) -> Strip:
        if y >= len(self._rows):
            return Strip.blank(self.content_size.width, self.rich_style)
        if self.text_selection is not None:
            return self._painted(y)
        strip = self._strips[y]
        if strip is None:
            strip = self._strips[y] = self._painted(y)
        return strip

    def _painted(self, y: int) -> Strip:
        row = self._rows[y]
        content = row.content
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(style, span[0], len(content.plain) if span[1] < 0 else span[1])
        base = self.visual_style + self._get_style(row.ground) if row.ground else self.visual_style
        strip = Strip(
            [
                Segment(text, (base + style).rich_style)
                for text, style in content.render(base, end="", parse_style=self._get_style)
            ]
        )
        strip = strip._apply_link_style(self.link_style).adjust_cell_length(self._width, base.rich_style)
        return strip.apply_offsets(0, y)

    # ------------------------------------------------------------ selecting, marks

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What is selected, without the line ends that only the width of the window made."""
        return copied(self._rows, selection.get_span), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - painting asks the screen for it
        self.refresh()

    def action_cite(self, number: int) -> None:
        self.post_message(self.MarkClicked(self, number))
