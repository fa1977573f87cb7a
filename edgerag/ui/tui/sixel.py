"""Pictures as Sixel (DEC, VT330/VT340 Programmer Reference Manual, volume 2, chapter 14): bands of six pixel rows, in
each band a row of signs for each colour that it has, equal signs counted.

Pure, over numpy arrays: no loop goes over pixels, for a picture is sent anew with each step of scrolling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgerag.ui.tui.few_colours import FewColours

MOST_COLOURS = 256
_BAND = 6  # pixel rows to a sign
_NOTHING = ord("?")  # the sign of no pixel; the others follow it
_LEAST_COUNTED = 4  # equal signs: fewer are shorter as they are
_MOST_DIGITS = 5
_MOST_SIGNS = 4_000_000  # worked on at once: bounds the memory that many colours take


def encoded(picture: FewColours) -> str:
    """The control string that paints ``picture`` where the cursor is. Every pixel of it is painted."""
    height, width = picture.numbers.shape
    if not 0 < width < 10**_MOST_DIGITS or not height:
        raise ValueError(f"A picture of {width} x {height} pixels cannot be written as Sixel.")
    used = np.unique(picture.numbers)
    registers = "".join(_register(int(number), picture.colours[number]) for number in used)
    bands = -(-height // _BAND)
    at_once = max(1, _MOST_SIGNS // (width * len(used)))
    data = b"-".join(
        _bands(picture.numbers[first * _BAND : (first + at_once) * _BAND]) for first in range(0, bands, at_once)
    )
    # 0;1: what is not painted stays; "1;1: square pixels, then the size.
    return f'\x1bP0;1q"1;1;{width};{height}{registers}{data.decode("ascii")}\x1b\\'


def _register(number: int, colour: NDArray[np.uint8]) -> str:
    red, green, blue = (round(int(part) * 100 / 255) for part in colour)
    return f"#{number};2;{red};{green};{blue}"


def _bands(numbers: NDArray[np.uint8]) -> bytes:
    """The bands of so many pixel rows, without the sign that ends the last one."""
    height, width = numbers.shape
    bands = -(-height // _BAND)
    has = np.zeros((bands, MOST_COLOURS), np.bool_)
    has[np.arange(height)[:, None] // _BAND, numbers] = True
    row_of = np.where(has, np.cumsum(has).reshape(has.shape) - 1, 0) * width
    signs = np.full(int(has.sum()) * width, 0, np.uint8)
    for line in range(min(_BAND, height)):
        part = numbers[line::_BAND]
        signs[row_of[np.arange(len(part))[:, None], part] + np.arange(width)] |= np.uint8(1 << line)
    band_of_row, colour_of_row = np.nonzero(has)
    return _rows(signs, width, colour_of_row, np.diff(band_of_row, append=bands) > 0)[:-1]


def _rows(signs: NDArray[np.uint8], width: int, colours: NDArray[np.intp], ends_band: NDArray[np.bool_]) -> bytes:
    """``signs``, so many to a row, as text: each row with its colour before it, and behind it the way back to the left,
    or to the next band."""
    changes = np.empty(len(signs), np.bool_)
    np.not_equal(signs[1:], signs[:-1], out=changes[1:])
    changes[::width] = True
    starts = np.flatnonzero(changes)
    lengths = np.diff(starts, append=len(signs))
    run_signs = signs[starts] + np.uint8(_NOTHING)
    is_first = starts % width == 0
    is_last = np.append(is_first[1:], True)
    digits = np.ones(len(starts), np.int64)
    for power in range(1, _MOST_DIGITS):
        digits += lengths >= 10**power
    is_counted = lengths >= _LEAST_COUNTED
    size = np.where(is_counted, digits + 2, lengths)
    size[is_last & (run_signs == _NOTHING)] = 0  # what nothing follows need not be said
    begin = np.cumsum(4 * is_first + size + is_last) - size - is_last
    out = np.empty(int(begin[-1] + size[-1] + 1), np.uint8)

    before = begin[is_first] - 4
    out[before] = ord("#")
    for place, power in enumerate((100, 10, 1)):
        out[before + 1 + place] = colours // power % 10 + ord("0")
    out[(begin + size)[is_last]] = np.where(ends_band, ord("-"), ord("$"))
    for place in range(_LEAST_COUNTED - 1):
        short = ~is_counted & (size > place)
        out[begin[short] + place] = run_signs[short]
    for count in range(1, _MOST_DIGITS + 1):
        counted = is_counted & (size > 0) & (digits == count)
        at = begin[counted]
        out[at] = ord("!")
        for place in range(count):
            out[at + 1 + place] = lengths[counted] // 10 ** (count - 1 - place) % 10 + ord("0")
        out[at + 1 + count] = run_signs[counted]
    return out.tobytes()
