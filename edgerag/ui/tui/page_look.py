"""How a page becomes what a terminal shows, and in which size it is to be drawn for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from edgerag.types import PageGraphics, PagePicture
from edgerag.ui.tui import kitty

if TYPE_CHECKING:
    from edgerag.ui.tui.page_pixels import PagePixels

Look = Literal["kitty", "blocks", "ink"]
_WIDEST = {"kitty": kitty.MOST_CELLS, "blocks": 1_600, "ink": 1_600}  # cells
_MOST_KITTY_PIXELS = 2_400  # across: more is work for nothing, the terminal makes it smaller again
_A4 = (595, 842)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Cells and pixels of one way to show a page."""

    look: Look
    cell: tuple[int, int]  # pixels of the picture in a cell, across and down

    def pixels_across(self, columns: int) -> int:
        return min(columns * self.cell[0], _MOST_KITTY_PIXELS) if self.look == "kitty" else columns

    def rows(self, picture: PagePicture, columns: int) -> int:
        """How many rows of cells a page has that is ``columns`` wide."""
        if self.look != "kitty":
            return (picture.height + 1) // 2
        across, down = self.cell
        return min(kitty.MOST_CELLS, max(1, round(columns * across * picture.height / picture.width / down)))

    def columns_for(self, picture: PagePicture | None, rows: int) -> int:
        """How wide a page of this shape is that is ``rows`` high."""
        width, height = (picture.width, picture.height) if picture is not None else _A4
        across, down = self.cell
        return max(1, int(rows * down * width / height / across))

    def at_most(self, picture: PagePicture | None, columns: int) -> int:
        """``columns``, or what can be shown of them."""
        columns = min(columns, _WIDEST[self.look])
        if self.look == "kitty":
            columns = min(columns, self.columns_for(picture, kitty.MOST_CELLS))
        return max(1, columns)


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page ready to be shown."""

    picture: PagePicture
    pixels: PagePixels
    look: Look
    columns: int
    rows: int
    identity: int = 0  # of the picture in the terminal's memory; 0: there is none
    escape: str = field(default="", repr=False)  # what puts it there


def sizing(graphics: PageGraphics, environ: Mapping[str, str], *, in_colour: bool, true_colour: bool) -> Sizing:
    """How pages are shown on this terminal."""
    if not in_colour:
        return Sizing("ink", (1, 2))
    # The number of a picture is told as a colour, which must come through as it is.
    if true_colour and (graphics == "kitty" or (graphics == "auto" and kitty.is_spoken(environ))):
        return Sizing("kitty", kitty.cell_pixels())
    return Sizing("blocks", (1, 2))


def made_ready(picture: PagePicture, sizing: Sizing, columns: int, *, in_tmux: bool) -> PreparedPage:
    """Takes a tenth of a second for a large page: not for the thread of the screen."""
    from edgerag.ui.tui.page_pixels import PagePixels

    pixels = PagePixels(picture, thin=sizing.look != "kitty")
    if sizing.look != "kitty":
        pixels.prepare(sizing.look)
        return PreparedPage(picture, pixels, sizing.look, picture.width, pixels.row_count)
    rows, identity = sizing.rows(picture, columns), kitty.new_id()
    escape = kitty.transmitted(
        pixels.colours.tobytes(),
        (picture.width, picture.height),
        identity=identity,
        columns=columns,
        rows=rows,
        in_tmux=in_tmux,
    )
    return PreparedPage(picture, pixels, sizing.look, columns, rows, identity, escape)
