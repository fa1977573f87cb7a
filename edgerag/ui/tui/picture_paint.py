"""Pictures that are no text, painted together with it: Textual leaves their cells empty, and what fills them is written
behind its next paint, in the same synchronised update.

Text that is written erases a picture, and a picture costs a hundred kilobytes. So cells that show one and are to show
one are left out of what Textual paints, and only what is new of it is sent. What is sent in a second is bounded: who
scrolls fast sees fewer steps, and none late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from edgerag.ui.tui.inline_picture import CellBox, InlinePicture

Update = LayoutUpdate | ChopsUpdate  # what Textual paints on a whole screen, or on parts of it
Cells = NDArray[np.bool_]  # (height, width) of the screen
_MOST_CHARACTERS_PER_S = 2_000_000
_LEAST_PAUSE_S = 0.03
# That may make up what is seen before all is sent anew: xterm keeps sixteen and forgets the oldest.
_MOST_PIECES = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture on the screen."""

    picture: InlinePicture
    x: int  # of its upper left cell, which may lie outside
    y: int
    cells: Cells  # where it is seen

    def stays(self, other: Placed) -> Cells:
        """The cells that look the same in both."""
        same = self.picture is other.picture and (self.x, self.y) == (other.x, other.y)
        return self.cells & other.cells if same else np.zeros_like(self.cells)


class PicturePaint:
    """What the terminal shows of a picture now, and what it is to be sent."""

    def __init__(self, clock: Callable[[], float], *, paint_again_in: Callable[[float], object]) -> None:
        """``paint_again_in`` so many seconds: what is wanted then was too early now."""
        self._clock = clock
        self._paint_again_in = paint_again_in
        self._held: Placed | None = None
        self._pieces = 0
        self._lost = ""  # what takes away what the terminal may still show
        self._not_before = 0.0

    @property
    def holds(self) -> bool:
        """Whether the terminal shows a picture, or may."""
        return self._held is not None or bool(self._lost)

    def forget(self) -> None:
        """The terminal may have lost it."""
        if self._held is not None:
            self._lost, self._held = self._held.picture.lifted, None

    def written(
        self, update: Update, wanted: Placed | None, console: Console, all_text: Callable[[], LayoutUpdate]
    ) -> str:
        """What paints ``update`` and makes ``wanted`` the picture that is seen; ``all_text`` paints every cell."""
        held = self._held
        if held is not None and wanted is not None and held.cells.shape != wanted.cells.shape:
            self.forget()  # it was on a screen of another size
            held = None
        if held is not None and wanted is not None:
            wanted = self._in_time(held, wanted)
        under = held.cells & wanted.cells if held is not None and wanted is not None else None
        if held is not None:
            freed = held.cells if wanted is None else held.cells & ~wanted.cells
            if freed.any() and (freed & ~_cells_of(update, freed.shape)).any():
                update = all_text()
        text = update.render_segments(console) if under is None else _text_around(update, under, console)
        self._held, lost, self._lost = wanted, self._lost, ""
        return text + lost + self._changed(held, wanted)

    def _in_time(self, held: Placed, wanted: Placed) -> Placed:
        """``wanted``, or what is seen still of what is there, for a while."""
        early = self._not_before - self._clock()
        if early <= 0 or (wanted.stays(held) == wanted.cells).all():
            return wanted
        self._paint_again_in(early)
        return replace(held, cells=held.cells & wanted.cells)

    def _changed(self, held: Placed | None, wanted: Placed | None) -> str:
        """What makes ``wanted`` of ``held``, where text has erased what it can."""
        if held is None or not held.picture.is_one:
            return self._sent(held, wanted) if wanted is not None else ""
        if wanted is not None and (wanted.stays(held) == held.cells | wanted.cells).all():
            return ""
        return held.picture.lifted + (self._sent(None, wanted) if wanted is not None else "")

    def _sent(self, held: Placed | None, wanted: Placed) -> str:
        stays = wanted.stays(held) if held is not None else np.zeros_like(wanted.cells)
        new = wanted.cells & ~stays
        if not new.any():
            return ""
        boxes = list(boxes_of(new))
        self._pieces = len(boxes) + (self._pieces if stays.any() else 0)
        if self._pieces > _MOST_PIECES:
            boxes = list(boxes_of(wanted.cells))
            self._pieces = len(boxes)
        sent = "".join(
            wanted.picture.written(
                CellBox(box.left - wanted.x, box.top - wanted.y, box.right - wanted.x, box.bottom - wanted.y),
                box.left,
                box.top,
            )
            for box in boxes
        )
        self._not_before = self._clock() + max(_LEAST_PAUSE_S, len(sent) / _MOST_CHARACTERS_PER_S)
        return sent


class WithPicture(CompositorUpdate):
    """A paint of Textual's, and the picture that belongs to it."""

    def __init__(self, update: Update, written: Callable[[Console], str]) -> None:
        self._update = update
        self._written = written

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self._update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        return self._written(console)


def seen_cells(screen: Screen[object], widget: Widget, region: Region) -> Cells:
    """The cells of ``region``, a part of ``widget``, that nothing covers. None of them is in the last row of the
    screen: there a terminal may scroll all up to make room for the cursor below the picture."""
    compositor = screen._compositor
    size = compositor.size
    cells = np.zeros((size.height, size.width), np.bool_)
    region = region.intersection(Region(0, 0, size.width, max(0, size.height - 1)))
    for y in region.line_range:
        in_front: list[Region] = []
        for each, cropped, _ in compositor.layers_visible[y]:
            if each is widget:
                part = region.intersection(cropped)
                cells[y, part.x : part.right] = True
                for cover in in_front:
                    cells[y, max(0, cover.x) : max(0, cover.right)] = False
                break
            in_front.append(cropped)
    return cells


def boxes_of(cells: Cells) -> Iterator[CellBox]:
    """``cells`` in boxes that do not overlap: rows whose runs are the same as those above are one."""
    height = cells.shape[0]
    top = 0
    while top < height:
        bottom = top + 1
        while bottom < height and (cells[bottom] == cells[top]).all():
            bottom += 1
        for left, right in _runs(cells[top]):
            yield CellBox(left, top, right, bottom)
        top = bottom


def _runs(row: Cells) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(row, prepend=False, append=False)).tolist()
    return zip(edges[::2], edges[1::2], strict=True)


def _pieces(update: Update) -> Iterator[tuple[int, int, Strip, int, int]]:
    """Row, first column, and what stands there; and from where to before where of it is painted."""
    match update:
        case LayoutUpdate():
            for y, strips in enumerate(update.strips, update.region.y):
                x = update.region.x
                for strip in strips:
                    yield y, x, strip, x, x + strip.cell_length
                    x += strip.cell_length
        case _:
            for y, first, last in update.spans:
                for end, (x, found) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                    begin, stop = max(x, first), min(end, last)
                    if found is not None and begin < stop:
                        yield y, x, found, begin, stop


def _cells_of(update: Update, shape: tuple[int, ...]) -> Cells:
    """What ``update`` paints."""
    cells = np.zeros(shape, np.bool_)
    for y, _, _, begin, stop in _pieces(update):
        cells[y : y + 1, begin:stop] = True
    return cells


def _text_around(update: Update, kept: Cells, console: Console) -> str:
    """``update`` without the cells that are ``kept``."""
    written: list[str] = []
    for y, x, strip, begin, stop in _pieces(update):
        for left, right in _runs(~kept[y, begin:stop]):
            part = strip.crop(begin + left - x, begin + right - x)
            written.append((Control.move_to(begin + left, y).segment.text) + part.render(console))
    return "".join(written)
