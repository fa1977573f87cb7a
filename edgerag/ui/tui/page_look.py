"""How a page becomes what a terminal shows, and in which size it is to be drawn for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from edgerag.types import PageGraphics, PagePicture
from edgerag.ui.tui import kitty, terminal

if TYPE_CHECKING:
    from edgerag.ui.tui.inline_picture import InlinePicture
    from edgerag.ui.tui.page_pixels import PagePixels

Look = Literal["kitty", "placeholders", "sixel", "iterm", "blocks", "ink"]
_BY_CELLS = ("blocks", "ink")  # two pixels to a cell
_WIDEST_IN_CELLS = 1_600
_WIDEST = {"placeholders": kitty.MOST_CELLS}
_MOST_PIXELS_ACROSS = 2_400  # more is work for nothing: it is made larger or smaller to fit the cells
_USUAL_CELL = (10, 20)  # pixels, where the terminal's driver does not know, and the terminal makes pictures fit
_A4 = (595, 842)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Cells and pixels of one way to show a page."""

    look: Look
    cell: tuple[int, int]  # pixels of the picture in a cell, across and down
    lack: str = ""  # why it is not the way that was asked for

    def pixels_across(self, columns: int) -> int:
        return columns if self.look in _BY_CELLS else min(columns * self.cell[0], _MOST_PIXELS_ACROSS)

    def rows(self, picture: PagePicture, columns: int) -> int:
        """How many rows of cells a page has that is ``columns`` wide."""
        across, down = self.cell
        match self.look:
            case "placeholders":  # the terminal makes the picture as high as they are
                high = columns * across * picture.height / picture.width / down
                return min(kitty.MOST_CELLS, max(1, round(high)))
            case "blocks" | "ink":
                return (picture.height + 1) // 2
            case _:
                return max(1, -(-columns * across * picture.height // (picture.width * down)))

    def columns_for(self, picture: PagePicture | None, rows: int) -> int:
        """How wide a page of this shape is that is ``rows`` high."""
        width, height = (picture.width, picture.height) if picture is not None else _A4
        across, down = self.cell
        return max(1, int(rows * down * width / height / across))

    def at_most(self, picture: PagePicture | None, columns: int) -> int:
        """``columns``, or what can be shown of them."""
        columns = min(columns, _WIDEST.get(self.look, _WIDEST_IN_CELLS))
        if self.look == "placeholders":
            columns = min(columns, self.columns_for(picture, kitty.MOST_CELLS))
        return max(1, columns)


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page ready to be shown."""

    picture: PagePicture
    pixels: PagePixels  # two to a cell
    look: Look
    columns: int
    rows: int
    identity: int = 0  # of the picture in the terminal's memory; 0: there is none
    escape: str = field(default="", repr=False)  # what puts it there
    inline: InlinePicture | None = field(default=None, repr=False)  # what is to be written over its cells


def sizing(graphics: PageGraphics, environ: Mapping[str, str], *, in_colour: bool, true_colour: bool) -> Sizing:
    """How pages are shown on this terminal."""
    if not in_colour:
        return Sizing("ink", (1, 2))
    blocks = Sizing("blocks", (1, 2))
    cell = terminal.cell_pixels()
    match terminal.protocol(environ) if graphics == "auto" else graphics:
        case "kitty" if not terminal.is_multiplexed(environ):
            return Sizing("kitty", cell or _USUAL_CELL)
        case "kitty" if true_colour:  # the number of a picture is told as a colour, which must come through as it is
            return Sizing("placeholders", cell or _USUAL_CELL)
        case "kitty":
            return replace(blocks, lack="half blocks: in tmux pictures need all colours (COLORTERM=truecolor)")
        case "sixel" | "iterm" if terminal.is_multiplexed(environ):
            return replace(blocks, lack="half blocks: through tmux a page comes by Kitty's pictures alone")
        case "sixel" if cell is None:
            return replace(blocks, lack="half blocks: the terminal does not say how large its cells are")
        case "sixel" if cell is not None:
            return Sizing("sixel", cell)
        case "iterm":
            return Sizing("iterm", cell or _USUAL_CELL)
        case _:
            return blocks


def made_ready(picture: PagePicture, sizing: Sizing, columns: int, *, in_tmux: bool) -> PreparedPage:
    """Takes a tenth of a second for a large page: not for the thread of the screen."""
    from edgerag.ui.tui.page_pixels import PagePixels

    look = sizing.look
    if look in _BY_CELLS:
        pixels = PagePixels(picture, thin=True)
        pixels.prepare("ink" if look == "ink" else "blocks")
        return PreparedPage(picture, pixels, look, picture.width, pixels.row_count)
    rows = sizing.rows(picture, columns)
    if look == "placeholders":
        identity, size = kitty.new_id(), (picture.width, picture.height)
        rgb = PagePixels(picture).colours.tobytes()
        escape = kitty.transmitted(rgb, size, identity=identity, cells=(columns, rows), in_tmux=in_tmux)
        return PreparedPage(picture, _in_blocks(picture, columns, rows), look, columns, rows, identity, escape)
    return _over_cells(picture, sizing, columns, rows)


def _over_cells(picture: PagePicture, sizing: Sizing, columns: int, rows: int) -> PreparedPage:
    from edgerag.ui.tui.inline_picture import KeptPicture, SentPicture
    from edgerag.ui.tui.page_pixels import PagePixels
    from edgerag.ui.tui.picture_size import lengthened

    across, down = sizing.cell
    picture = lengthened(picture, -(-rows * down * picture.width // (columns * across)))
    colours = PagePixels(picture).colours
    small = _in_blocks(picture, columns, rows)
    identity, escape = 0, ""
    if sizing.look == "kitty":
        identity, size = kitty.new_id(), (picture.width, picture.height)
        escape = kitty.transmitted(colours.tobytes(), size, identity=identity)
        inline: InlinePicture = KeptPicture(identity, size, sizing.cell, columns, rows)
    else:
        protocol: Literal["sixel", "iterm"] = "sixel" if sizing.look == "sixel" else "iterm"
        inline = SentPicture.of(colours, protocol, sizing.cell, columns, rows)
    return PreparedPage(picture, small, sizing.look, columns, rows, identity, escape, inline)


def _in_blocks(picture: PagePicture, columns: int, rows: int) -> PagePixels:
    """For where the terminal's picture cannot be: under what shades the screen."""
    from edgerag.ui.tui.page_pixels import PagePixels
    from edgerag.ui.tui.picture_size import reduced

    pixels = PagePixels(reduced(picture, columns, 2 * rows), thin=True)
    pixels.prepare("blocks")
    return pixels
