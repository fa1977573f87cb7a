"""A picture in few colours, each pixel the number of one: what Sixel needs, and what makes a PNG small.

Pure, over numpy arrays. Median cut (P. Heckbert, Color Image Quantization for Frame Buffer Display, SIGGRAPH 1982) over
the histogram of the 32 shades that each of red, green and blue is told apart by.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SHADE_BITS = 5
_SHADES = 1 << _SHADE_BITS
# Of a shade: black is black, and white is white.
_LEVELS = (np.arange(_SHADES) * 255 // (_SHADES - 1)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class FewColours:
    numbers: NDArray[np.uint8]  # (height, width): which colour
    colours: NDArray[np.uint8]  # (count, 3)


def in_few_colours(rgb: NDArray[np.uint8], most: int) -> FewColours:
    """``rgb`` of (height, width, 3) in at most ``most`` colours, 2 to 256. Nothing is dithered: letters stay sharp, and
    equal areas short."""
    codes = np.zeros(rgb.shape[:2], np.uint16)
    for channel in range(3):
        codes <<= np.uint16(_SHADE_BITS)
        codes |= rgb[..., channel] >> np.uint8(8 - _SHADE_BITS)
    counts = np.bincount(codes.ravel(), minlength=_SHADES**3)
    used = np.flatnonzero(counts)
    shades = np.stack([used >> 2 * _SHADE_BITS, used >> _SHADE_BITS & _SHADES - 1, used & _SHADES - 1], axis=1)
    boxes = _boxes(shades, counts[used], most)
    number_of = np.zeros(_SHADES**3, np.uint8)
    colours = np.zeros((len(boxes), 3), np.uint8)
    for number, members in enumerate(boxes):
        number_of[used[members]] = number
        mean = np.average(_LEVELS[shades[members]], axis=0, weights=counts[used[members]])
        colours[number] = np.rint(mean).astype(np.uint8)
    return FewColours(number_of[codes], colours)


def _boxes(shades: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
    """Positions in ``shades`` (n, 3), colour by colour: the widest and fullest box is cut at its median, and so on."""
    if len(shades) <= most:
        return [np.array([position]) for position in range(len(shades))]
    boxes = [np.arange(len(shades))]
    waiting = [(-1.0, 0)]
    while waiting and len(boxes) < most:
        _, number = heapq.heappop(waiting)
        members = boxes[number]
        spread = np.ptp(shades[members], axis=0)
        members = members[np.argsort(shades[members, int(spread.argmax())], kind="stable")]
        below = np.cumsum(counts[members])
        middle = min(max(1, int(np.searchsorted(below, below[-1] / 2, side="right"))), len(members) - 1)
        boxes[number] = members[:middle]
        boxes.append(members[middle:])
        for part in (number, len(boxes) - 1):
            if len(boxes[part]) > 1:
                side = int(np.ptp(shades[boxes[part]], axis=0).max())
                heapq.heappush(waiting, (-float(counts[boxes[part]].sum()) * side, part))
    return boxes
