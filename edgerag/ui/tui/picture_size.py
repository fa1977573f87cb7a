"""The picture of a page in another size, with the boxes of its passage. Pure, over numpy arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgerag.types.pictures import PagePicture, PixelBox


def lengthened(picture: PagePicture, height: int) -> PagePicture:
    """``picture`` with its last line of pixels repeated below it, up to ``height``."""
    more = max(0, height - picture.height)
    return replace(picture, height=picture.height + more, rgb=picture.rgb + picture.rgb[-3 * picture.width :] * more)


def reduced(picture: PagePicture, width: int, height: int) -> PagePicture:
    """``picture`` of so many pixels, each the mean of those that it stands for."""
    pixels = np.frombuffer(picture.rgb, np.uint8).reshape(picture.height, picture.width, 3)
    for axis, size in ((0, height), (1, width)):
        pixels = _means(pixels, axis, size)

    def moved(box: PixelBox) -> PixelBox:
        left, right = (box[0] * width // picture.width, -(-box[2] * width // picture.width))
        top, bottom = (box[1] * height // picture.height, -(-box[3] * height // picture.height))
        return left, top, right, bottom

    return PagePicture(
        picture.number,
        picture.page_count,
        width,
        height,
        pixels.tobytes(),
        tuple(map(moved, picture.passage)),
        tuple(map(moved, picture.quote)),
    )


def _means(pixels: NDArray[np.uint8], axis: int, size: int) -> NDArray[np.uint8]:
    starts = np.arange(size) * pixels.shape[axis] // size
    counts = np.maximum(1, np.diff(starts, append=pixels.shape[axis]))
    sums = np.add.reduceat(pixels, starts, axis=axis, dtype=np.uint32)
    means: NDArray[np.uint8] = (sums // counts.reshape(-1, *(1,) * (2 - axis))).astype(np.uint8)
    return means
