"""The pixels of a page as a terminal can show them: two to a cell, the upper one as the colour of a half block, the
lower one as its ground; or, without colour, what is ink and what is paper.

Pure, over numpy arrays. It is imported when the first page is drawn, which is not when the program starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgerag.types.pictures import PagePicture, PixelBox

Colours = NDArray[np.uint8]  # (height, width, 3)
# Markers on paper, in any theme. What is dark in them is lit up a little, for on black a marker shows nothing.
PASSAGE_INK, QUOTE_INK = (255, 241, 163), (255, 196, 92)
_LIT = 0.3  # of the marker's colour on what is black
_SHADES = 0xF8  # 32 of a colour: fewer runs to write to the terminal, and no eye sees it
# Strokes thinner than a pixel are grey; to be read they must be darker.
_DARKER = (255 * (np.arange(256) / 255) ** 1.6).astype(np.uint8)
_INK_BELOW = 190  # brightness: text of a few pixels is grey
_PAPER = 128  # a page whose middle brightness is below is printed in white


@dataclass(frozen=True, slots=True)
class CellRun:
    """So many cells that look alike."""

    count: int
    upper: tuple[int, int, int]
    lower: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class InkRun:
    """So many cells that look alike, without colour."""

    count: int
    character: str
    is_marked: bool


class PagePixels:
    """A page with its passage marked."""

    def __init__(self, picture: PagePicture, *, thin: bool = False) -> None:
        """``thin``: its pixels are larger than the strokes of its letters."""
        self.width, self.height = picture.width, picture.height
        self._picture = picture
        self._original: Colours = np.frombuffer(picture.rgb, np.uint8).reshape(picture.height, picture.width, 3)
        page = _DARKER[self._original] if thin else self._original
        self.colours = page.copy()
        for boxes, ink in ((picture.passage, PASSAGE_INK), (picture.quote, QUOTE_INK)):
            for box in boxes:
                _mark(self.colours, box, ink, page)

    @property
    def row_count(self) -> int:
        return (self.height + 1) // 2

    @cached_property
    def _packed(self) -> NDArray[np.uint32]:
        """(rows * 2, width), a colour in one number; a last row of paper where the height is odd."""
        shades = self.colours & np.uint8(_SHADES)
        shades |= shades >> 5  # so that white is white
        red, green, blue = (shades[..., n].astype(np.uint32) for n in range(3))
        packed: NDArray[np.uint32] = np.bitwise_or(red << np.uint32(16), np.bitwise_or(green << np.uint32(8), blue))
        return np.vstack([packed, packed[-1:]]) if self.height % 2 else packed

    @cached_property
    def _ink(self) -> NDArray[np.bool_]:
        """(rows * 2, width)"""
        brightness = self._original @ np.array([0.299, 0.587, 0.114])
        is_white_on_black = float(np.median(brightness)) < _PAPER
        ink = brightness > 255 - _INK_BELOW if is_white_on_black else brightness < _INK_BELOW
        return np.vstack([ink, np.zeros((1, self.width), np.bool_)]) if self.height % 2 else ink

    @cached_property
    def _marked(self) -> NDArray[np.bool_]:
        """(rows, width): the cells that the passage touches."""
        marked = np.zeros((self.row_count * 2, self.width), np.bool_)
        for left, top, right, bottom in self._picture.passage:
            marked[top:bottom, left:right] = True
        return marked[0::2] | marked[1::2]

    def prepare(self, look: Literal["blocks", "ink"]) -> None:
        """Computes what the first row that is asked for would wait for."""
        if look == "blocks":
            self._packed  # noqa: B018 - it is kept
        else:
            self._ink, self._marked  # noqa: B018

    def runs(self, row: int, first: int, last: int) -> list[CellRun]:
        """The cells of a row from one column to before another."""
        upper, lower = self._packed[2 * row, first:last], self._packed[2 * row + 1, first:last]
        edges = _edges(upper, lower)
        return [CellRun(end - start, _rgb(upper[start]), _rgb(lower[start])) for start, end in edges]

    def ink_runs(self, row: int, first: int, last: int) -> list[InkRun]:
        upper, lower = self._ink[2 * row, first:last], self._ink[2 * row + 1, first:last]
        marked = self._marked[row, first:last]
        edges = _edges(upper.astype(np.uint8) << 1 | lower, marked)
        signs = [" ▄▀█"[2 * upper[start] + lower[start]] for start, _ in edges]
        return [InkRun(end - start, sign, bool(marked[start])) for (start, end), sign in zip(edges, signs, strict=True)]


def _mark(colours: Colours, box: PixelBox, ink: tuple[int, int, int], original: Colours) -> None:
    """Paper takes the colour of the marker, ink stays darker than it."""
    left, top, right, bottom = box
    under = original[top:bottom, left:right].astype(np.float32) / 255
    lit = under + (1 - under) * _LIT if under.size and float(under.mean()) < 0.5 else under
    colours[top:bottom, left:right] = (lit * np.array(ink, np.float32)).astype(np.uint8)


def _edges(one: NDArray[np.generic], other: NDArray[np.generic]) -> list[tuple[int, int]]:
    if not len(one):
        return []
    changes = np.flatnonzero((one[1:] != one[:-1]) | (other[1:] != other[:-1])) + 1
    starts = [0, *changes.tolist()]
    return list(zip(starts, [*starts[1:], len(one)], strict=True))


def _rgb(packed: np.uint32) -> tuple[int, int, int]:
    number = int(packed)
    return number >> 16, number >> 8 & 0xFF, number & 0xFF
