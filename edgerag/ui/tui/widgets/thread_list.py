"""The threads, two rows each, painted only where they are looked at: ten thousand cost what ten do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from edgerag.types import ThreadMatch
from edgerag.ui.export.said import when
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed

_ROWS = 2  # of a thread
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS_AGO = 7  # older ones are said by their date


class ThreadList(Keyed, ScrollView, can_focus=True):
    """One of them is under the cursor, one is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Thread before", show=False),
        Binding("down", "move(1)", "Thread after", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "First thread", show=False),
        Binding("end", "edge(1)", "Last thread", show=False),
        Binding("enter", "open", "Open", show=True, tooltip="Open the thread"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"threads--cursor", "threads--open"}

    class Opened(Message):
        """The user wants to see a thread."""

        def __init__(self, match: ThreadMatch) -> None:
            super().__init__()
            self.match = match

    class LeftAbove(Message):
        """The user went up from the first one."""

    def __init__(self, *, clock: Callable[[], float] = time.time, **options: Any) -> None:
        super().__init__(**options)
        self._clock = clock
        self._matches: Sequence[ThreadMatch] = ()
        self._cursor = 0
        self._open_id: int | None = None

    @property
    def at_cursor(self) -> ThreadMatch | None:
        return self._matches[self._cursor] if self._matches else None

    def show(self, matches: Sequence[ThreadMatch], *, open_id: int | None) -> None:
        before = self.at_cursor
        self._matches = matches
        self._open_id = open_id
        places = {match.head.id: place for place, match in enumerate(matches)}
        kept = places.get(before.head.id) if before is not None else None
        self._cursor = kept if kept is not None else min(self._cursor, max(0, len(matches) - 1))
        self.virtual_size = Size(self.scrollable_content_region.width, _ROWS * len(matches))
        self.refresh()
        if (before is None) != (self.at_cursor is None):
            self.refresh_bindings()

    def show_open(self, open_id: int | None) -> None:
        self._open_id = open_id
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return self.at_cursor is not None if action in ("page", "edge", "open") else True

    # ------------------------------------------------------------ moving

    def go_to_open(self) -> None:
        """Puts the cursor on the thread that is open, if it is in the list."""
        place = next((n for n, match in enumerate(self._matches) if match.head.id == self._open_id), None)
        if place is not None:
            self._go(place)

    def action_move(self, step: int) -> None:
        if step < 0 and self._cursor == 0:
            self.post_message(self.LeftAbove())
        self._go(self._cursor + step)

    def action_page(self, direction: int) -> None:
        self._go(self._cursor + direction * max(1, self.size.height // _ROWS))

    def action_edge(self, direction: int) -> None:
        self._go(0 if direction < 0 else len(self._matches))

    def action_open(self) -> None:
        if (match := self.at_cursor) is not None:
            self.post_message(self.Opened(match))

    def on_click(self, event: events.Click) -> None:
        place = (event.y + self.scroll_offset.y) // _ROWS
        if 0 <= place < len(self._matches):
            self._go(place)
            self.action_open()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _go(self, place: int) -> None:
        self._cursor = max(0, min(place, len(self._matches) - 1))
        width = self.scrollable_content_region.width
        self.scroll_to_region(Region(0, self._cursor * _ROWS, width, _ROWS), animate=False, immediate=True)
        self.refresh()

    # ------------------------------------------------------------ painting

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        place, row = divmod(y + self.scroll_offset.y, _ROWS)
        if place >= len(self._matches):
            return Strip.blank(width, self.rich_style)
        match = self._matches[place]
        content = self._title(match, width) if row == 0 else self._detail(match, width)
        at_cursor = place == self._cursor and self.has_focus
        style = self.get_visual_style("threads--cursor") if at_cursor else self.visual_style
        return Visual.to_strips(self, content, width, 1, style)[0].adjust_cell_length(width, style.rich_style)

    def _title(self, match: ThreadMatch, width: int) -> Content:
        is_open = match.head.id == self._open_id
        mark = ("▌", "$text-accent") if is_open else " "
        return Content.assemble(mark, shown.line(match.head.title, width - 1, "bold" if is_open else "")).truncate(
            width, ellipsis=True
        )

    def _detail(self, match: ThreadMatch, width: int) -> Content:
        count = match.head.question_count
        text = match.excerpt or f"{self._ago(match.head.changed_ns)} · {count} question{'' if count == 1 else 's'}"
        return Content.assemble(" ", shown.line(text, width - 1, "$foreground 70%")).truncate(width, ellipsis=True)

    def _ago(self, time_ns: int) -> str:
        seconds = max(0.0, self._clock() - time_ns / 1e9)
        if seconds < _MINUTE:
            return "just now"
        if seconds < _HOUR:
            return f"{seconds // _MINUTE:.0f} min ago"
        if seconds < _DAY:
            return f"{seconds // _HOUR:.0f} h ago"
        days = int(seconds // _DAY)
        if days <= _DAYS_AGO:
            return "yesterday" if days == 1 else f"{days} days ago"
        return when(time_ns).split()[0]
