"""A page of a document as it is seen, and the places of a passage on it."""

from __future__ import annotations

from dataclasses import dataclass, field

# Left, top, right and bottom in pixels of the picture, from its upper left corner; right and bottom are outside.
PixelBox = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class PageWanted:
    """Which page, how wide, and what is to be found on it."""

    number: int  # from 1
    width: int  # pixels
    passage: str = field(default="", repr=False)  # the part of it that stands on this page; "" for none
    quote: str = field(default="", repr=False)  # within the passage


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A drawn page. It may be smaller than it was wanted: a picture has a bound (``MOST_PIXELS``)."""

    number: int
    page_count: int
    width: int
    height: int
    rgb: bytes = field(repr=False)  # three bytes a pixel, row by row from the top
    passage: tuple[PixelBox, ...] = ()  # a box for each run of words; none where they are not found on the page
    quote: tuple[PixelBox, ...] = ()


# 18 MB of colours: two megapixel screens' worth, more than any terminal shows at once.
MOST_PIXELS = 6_000_000
MOST_BOXES = 2_000
