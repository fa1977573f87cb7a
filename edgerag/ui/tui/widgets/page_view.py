"""A page of a document as it looks: scrolled and zoomed, painted only where it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from edgerag.types import PagePicture
from edgerag.ui.tui import kitty
from edgerag.ui.tui.page_look import PreparedPage, Sizing

if TYPE_CHECKING:
    from edgerag.ui.tui.picture_paint import Placed

_GUTTER = 2  # cells at the left: the mark beside the passage, and a gap
_ABOVE = 4  # a quarter of the window: what stands above the passage tells where on the page it is
_HALF_BLOCK, _MARK = "▀", "▌"
_WHOLE, _WIDTH = 0, 1
_ZOOMS = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # of the width of the pane; the first: the whole page


class PageView(ScrollView, can_focus=True):
    """Shows what it is given, and says what it would need."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"page--mark", "page--paper", "page--marked-paper"}

    class SizeWanted(Message):
        """The page is needed in another size."""

    class TurnWanted(Message):
        """Another page is wanted: 1 the next, -1 the one before."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._zoom = _WIDTH
        self._drawn: PreparedPage | None = None
        self._strips: dict[tuple[int, int, int, bool], Strip] = {}
        self._marked_rows: set[int] = set()
        self._asked_width = 0
        self._dragged_from: tuple[Offset, Offset] | None = None
        self._in_characters = False  # what is painted now is for who can show nothing else

    # ------------------------------------------------------------ size

    @property
    def zoom_words(self) -> str:
        match self._zoom:
            case 0:
                return "whole page"
            case 1:
                return "as wide as the window"
            case _:
                return f"{_ZOOMS[self._zoom]:g} times the window's width"

    def zoom(self, step: int) -> None:
        """One step nearer or further; 0: as wide as the window."""
        before, self._zoom = self._zoom, min(max(0, self._zoom + step), len(_ZOOMS) - 1) if step else _WIDTH
        if self._zoom != before:
            self.post_message(self.SizeWanted())

    def columns(self, sizing: Sizing) -> int:
        """How many cells wide the page is to be."""
        fitting = max(1, self.scrollable_content_region.width - _GUTTER)
        self._asked_width = self.size.width
        if self._zoom == _WHOLE:
            return min(fitting, sizing.columns_for(self._drawn.picture if self._drawn else None, self.size.height))
        return sizing.at_most(self._drawn.picture if self._drawn else None, int(fitting * _ZOOMS[self._zoom]))

    def is_of_other_cells(self, sizing: Sizing) -> bool:
        """Whether the page was made for cells of another size."""
        inline = self._drawn.inline if self._drawn is not None else None
        return inline is not None and inline.cell != sizing.cell

    def on_resize(self) -> None:
        if self._drawn is not None and (self.size.width != self._asked_width or self._zoom == _WHOLE):
            self.post_message(self.SizeWanted())

    # ------------------------------------------------------------ what is shown

    def show(self, drawn: PreparedPage, *, at_passage: bool) -> None:
        """This page in place of the one before: at its passage, at its top, or, where it is the same page in another
        size, at the same place, with the passage in sight if it was."""
        at_passage = at_passage or self._sees_passage()
        before, self._drawn = self._drawn, drawn
        self._strips.clear()
        self._marked_rows = set(_rows_of(drawn.picture, drawn.rows))
        same = before is not None and before.picture.number == drawn.picture.number
        middle = (self.scroll_y + self.size.height / 2) / before.rows if before is not None else 0.0
        beside = (self.scroll_x + self.size.width / 2) / before.columns if before is not None else 0.0
        self.virtual_size = Size(_GUTTER + drawn.columns, drawn.rows)
        if at_passage and drawn.picture.passage:
            self.scroll_to_passage()
        elif same:
            self._go(beside * drawn.columns - self.size.width / 2, middle * drawn.rows - self.size.height / 2)
        else:
            self._go(0, 0)
        self.refresh()

    def clear(self) -> None:
        self._drawn = None
        self._strips.clear()
        self._marked_rows.clear()
        self.virtual_size = Size(0, 0)
        self.refresh()

    def scroll_to_passage(self) -> None:
        row, first, last = self._quote_place()
        room = self.size.width - _GUTTER
        # What is wider than the window is read from its beginning.
        self._go(first - 1 if last - first > room else (first + last - room) / 2, row - self.size.height // _ABOVE)

    def _quote_place(self) -> tuple[int, int, int]:
        """The row where the quote begins, and the columns of its first and last cell; of the passage where it has no
        place of its own."""
        drawn = self._drawn
        boxes = (drawn.picture.quote or drawn.picture.passage) if drawn is not None else ()
        if drawn is None or not boxes:
            return 0, 0, 0
        across, down = drawn.columns / drawn.picture.width, drawn.rows / drawn.picture.height
        return (
            int(min(box[1] for box in boxes) * down),
            int(min(box[0] for box in boxes) * across),
            int(max(box[2] for box in boxes) * across),
        )

    def _sees_passage(self) -> bool:
        if self._drawn is None or not self._drawn.picture.passage:
            return False
        return self.scroll_offset.y <= self._quote_place()[0] < self.scroll_offset.y + self.size.height

    def _go(self, x: float, y: float) -> None:
        self.scroll_to(x=max(0, round(x)), y=max(0, round(y)), animate=False, immediate=True)

    # ------------------------------------------------------------ keys and mouse

    def action_page_down(self) -> None:
        if self.scroll_offset.y >= self.max_scroll_y:
            self.post_message(self.TurnWanted(1))
        else:
            super().action_page_down()

    def action_page_up(self) -> None:
        if self.scroll_offset.y <= 0:
            self.post_message(self.TurnWanted(-1))
        else:
            super().action_page_up()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._zoom_by_wheel(event, -1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._zoom_by_wheel(event, 1)

    def _zoom_by_wheel(self, event: events.MouseEvent, step: int) -> None:
        if event.ctrl:
            event.prevent_default()
            event.stop()
            self.zoom(step)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragged_from = (event.screen_offset, self.scroll_offset)
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged_from is not None:
            began, scrolled = self._dragged_from
            moved = began - event.screen_offset
            self._go(scrolled.x + moved.x, scrolled.y + moved.y)

    def on_mouse_up(self) -> None:
        self._dragged_from = None
        self.release_mouse()

    # ------------------------------------------------------------ painting

    @contextmanager
    def in_characters(self) -> Iterator[None]:
        """While it lasts the page is painted with half blocks, also where the terminal shows a picture over its
        cells."""
        self._in_characters = True
        self._styles_cache.clear()
        try:
            yield
        finally:
            self._in_characters = False
            self._styles_cache.clear()

    @property
    def _has_picture(self) -> bool:
        """Whether a picture lies over the cells; under a dialog it does not."""
        return self.screen.is_active and not self._in_characters

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()  # they are of the theme before

    def render_line(self, y: int) -> Strip:
        row, left = y + self.scroll_offset.y, self.scroll_offset.x
        width = self.scrollable_content_region.width
        drawn = self._drawn
        if drawn is None or row >= drawn.rows:
            return Strip.blank(width, self.rich_style)
        has_picture = self._has_picture
        key = (row, left, width, has_picture)
        if key not in self._strips:
            margin, first, last = self._columns_seen(drawn)
            if drawn.inline is not None and has_picture:
                pieces = [Segment(" " * (last - first), self.rich_style)]
            else:
                pieces = self._pieces(drawn, row, first, last)
            mark = Segment(
                f"{_MARK if row in self._marked_rows else ' '} ", self.get_component_rich_style("page--mark")
            )
            strip = Strip([mark, Segment(" " * margin, self.rich_style), *pieces])
            self._strips[key] = strip.adjust_cell_length(width, self.rich_style)
        return self._strips[key]

    def _columns_seen(self, drawn: PreparedPage) -> tuple[int, int, int]:
        """The empty cells beside the page, and its columns from one to before another."""
        room = max(0, self.scrollable_content_region.width - _GUTTER)
        first = min(self.scroll_offset.x, max(0, drawn.columns - room))
        return max(0, room - drawn.columns) // 2, first, min(drawn.columns, first + room)

    def placed(self) -> Placed | None:
        """The picture that is to be written over cells of this pane, if there is one."""
        drawn = self._drawn
        if drawn is None or drawn.inline is None or not self.display:
            return None
        from edgerag.ui.tui.picture_paint import Placed, seen_cells

        margin, first, last = self._columns_seen(drawn)
        pane = self.scrollable_content_region
        x, top = pane.x + _GUTTER + margin, pane.y
        rows = min(pane.height, drawn.rows - self.scroll_offset.y)
        cells = seen_cells(self.screen, self, Region(x, top, last - first, max(0, rows)))
        return Placed(drawn.inline, x - first, top - self.scroll_offset.y, cells)

    def _pieces(self, drawn: PreparedPage, row: int, first: int, last: int) -> list[Segment]:
        match drawn.look:
            case "placeholders" if self._has_picture:
                return [kitty.row_of_cells(drawn.identity, row, range(first, last))]
            case "ink":
                paper = self.get_component_rich_style("page--paper")
                marked = self.get_component_rich_style("page--marked-paper")
                runs = drawn.pixels.ink_runs(row, first, last)
                return [Segment(run.character * run.count, marked if run.is_marked else paper) for run in runs]
            case _:
                return [
                    Segment((" " if run.upper == run.lower else _HALF_BLOCK) * run.count, _style(run.upper, run.lower))
                    for run in drawn.pixels.runs(row, first, last)
                ]


def _rows_of(picture: PagePicture, rows: int) -> list[int]:
    """The rows of cells beside which the passage stands."""
    found: list[int] = []
    for _, top, _, bottom in picture.passage:
        found += range(top * rows // picture.height, -(-bottom * rows // picture.height))
    return found


@lru_cache(maxsize=8192)
def _style(upper: tuple[int, int, int], lower: tuple[int, int, int]) -> Style:
    ground = Color.from_rgb(*lower)
    return Style(bgcolor=ground) if upper == lower else Style(color=Color.from_rgb(*upper), bgcolor=ground)
