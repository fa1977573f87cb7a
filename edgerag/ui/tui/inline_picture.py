"""Pictures that a terminal shows over cells: any box of their cells can be asked for, cut to the pixel.

Pure, over numpy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from edgerag.ui.tui import iterm, kitty, sixel
from edgerag.ui.tui.few_colours import FewColours, in_few_colours

# A larger piece is cut in two: xterm shows nothing of a picture of more than 1000 pixels (its maxGraphicSize).
_MOST_PIXELS = 1_000


@dataclass(frozen=True, slots=True)
class CellBox:
    """Cells from one column and row to before another."""

    left: int
    top: int
    right: int
    bottom: int


class InlinePicture(Protocol):
    @property
    def cell(self) -> tuple[int, int]:
        """Pixels of a cell, across and down, for which it was made."""
        ...

    @property
    def lifted(self) -> str:
        """What takes all of it from the screen; "" where text that is written over it does."""
        ...

    @property
    def is_one(self) -> bool:
        """Whether none of it stays where any of it is to be another."""
        ...

    def written(self, box: CellBox, x: int, y: int) -> str:
        """What shows its cells of ``box`` at the cell (x, y) of the screen and to the right and below."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SentPicture:
    """By Sixel or iTerm's protocol: what is to be seen of it is sent each time."""

    protocol: Literal["sixel", "iterm"]
    pixels: FewColours  # of the whole picture
    cell: tuple[int, int]
    columns: int
    rows: int
    lifted: str = ""

    @property
    def is_one(self) -> bool:
        return False

    @classmethod
    def of(
        cls,
        rgb: NDArray[np.uint8],
        protocol: Literal["sixel", "iterm"],
        cell: tuple[int, int],
        columns: int,
        rows: int,
    ) -> SentPicture:
        """``rgb`` of (height, width, 3) on so many cells."""
        return cls(protocol, in_few_colours(rgb, sixel.MOST_COLOURS), cell, columns, rows)

    def written(self, box: CellBox, x: int, y: int) -> str:
        return "".join(
            _to(x + part.left - box.left, y + part.top - box.top) + self._encoded(part) for part in self._parts(box)
        )

    def _encoded(self, box: CellBox) -> str:
        cut = self.cut(box)
        if self.protocol == "sixel":
            return sixel.encoded(cut)
        return iterm.encoded(cut, box.right - box.left, box.bottom - box.top)

    def cut(self, box: CellBox) -> FewColours:
        """Its pixels in ``box``, as many as the cells have."""
        height, width = self.pixels.numbers.shape
        across, down = self.cell
        rows = _nearest(box.top * down, box.bottom * down, self.rows * down, height)
        columns = _nearest(box.left * across, box.right * across, self.columns * across, width)
        return FewColours(self.pixels.numbers[rows][:, columns], self.pixels.colours)

    def _parts(self, box: CellBox) -> Iterator[CellBox]:
        across, down = (max(1, _MOST_PIXELS // pixels) for pixels in self.cell)
        for top in range(box.top, box.bottom, down):
            for left in range(box.left, box.right, across):
                yield CellBox(left, top, min(box.right, left + across), min(box.bottom, top + down))


@dataclass(frozen=True, slots=True, eq=False)
class KeptPicture:
    """By Kitty's protocol: the terminal keeps it, and is told where to show what of it. Text does not erase it."""

    identity: int
    size: tuple[int, int]  # pixels
    cell: tuple[int, int]
    columns: int
    rows: int

    @property
    def lifted(self) -> str:
        return kitty.lifted(self.identity)

    @property
    def is_one(self) -> bool:
        return True

    def written(self, box: CellBox, x: int, y: int) -> str:
        (width, columns), (height, rows) = zip(self.size, (self.columns, self.rows), strict=True)
        left, right = (edge * width // columns for edge in (box.left, box.right))
        top, bottom = (edge * height // rows for edge in (box.top, box.bottom))
        pixels = (left, top, max(1, right - left), max(1, bottom - top))
        return _to(x, y) + kitty.placed(self.identity, pixels, box.right - box.left, box.bottom - box.top)


def _to(x: int, y: int) -> str:
    return f"\x1b[{y + 1};{x + 1}H"


def _nearest(first: int, last: int, shown: int, held: int) -> NDArray[np.int64] | slice:
    """Of the pixels from ``first`` to before ``last``, among ``shown``: which of the ``held`` ones each one shows."""
    if shown == held:
        return slice(first, last)
    return (2 * np.arange(first, last) + 1) * held // (2 * shown)
