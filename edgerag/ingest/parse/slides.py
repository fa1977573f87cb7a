"""Slides as one text: each is a page, its title a heading, its notes after it; and the reading order of its boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from edgerag.ingest.parse.layout import Part, lay_out
from edgerag.types import Heading, Page

NOTES = "Notes:"
_SLIDE_SEPARATOR = "\n\n"
# A first line that is longer is a sentence, not what someone would call the slide.
_LONGEST_TITLE = 100
# Boxes whose edges cross by less than this share of their size stand beside each other for the eye.
_TOUCHING = 0.15
# Beyond so many boxes on a slide (a map, a drawing) their order is by row and column alone.
_MOST_BOXES = 200
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Box:
    """Where something stands on a slide, in any unit."""

    left: float
    top: float
    width: float
    height: float

    @property
    def spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """From where to where it goes across and down, a little less than it does."""
        across, down = self.width * _TOUCHING, self.height * _TOUCHING
        return (
            (self.left + across, self.left + self.width - across),
            (self.top + down, self.top + self.height - down),
        )

    def is_outside(self, page: Box) -> bool:
        """Whether nothing of it stands on a page."""
        across = self.left + self.width <= page.left or self.left >= page.left + page.width
        return across or self.top + self.height <= page.top or self.top >= page.top + page.height


@dataclass(slots=True)
class Slide:
    """What stands on one slide, in reading order."""

    title: str = ""
    hidden: bool = False  # not shown when the slides are
    parts: list[Part] = field(default_factory=list)
    notes: list[Part] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LaidOutSlides:
    """The text of all slides, a page for each, and the spans that nobody sees on them."""

    text: str
    pages: tuple[Page, ...]
    headings: tuple[Heading, ...]
    hidden: tuple[tuple[int, int], ...]


def lay_out_slides(slides: Iterable[Slide]) -> LaidOutSlides:
    """The text of all slides, numbered from 1, with a heading of level 1 wherever a slide has text.

    A slide without a title is headed by its first line if that is short, else by its number: the title of the slide
    before it would rule it otherwise.
    """
    pieces: list[str] = []
    pages: list[Page] = []
    headings: list[Heading] = []
    hidden: list[tuple[int, int]] = []
    length = 0
    for number, slide in enumerate(slides, 1):
        parts = _titled(slide)
        if slide.notes:
            parts += [Part("paragraph", NOTES), *slide.notes]
        laid_out = lay_out(parts)
        text, found = laid_out.text, laid_out.headings
        if text and length:
            pieces.append(_SLIDE_SEPARATOR)
            length += len(_SLIDE_SEPARATOR)
        if text and not (found and found[0].start == 0):
            headings.append(Heading(1, f"Slide {number}", length))
        headings.extend(Heading(heading.level, heading.title, length + heading.start) for heading in found)
        # A slide that is not shown is not seen as a whole.
        spans = ((0, len(text)),) if slide.hidden and text else laid_out.hidden
        hidden.extend((length + start, length + end) for start, end in spans)
        pieces.append(text)
        pages.append(Page(number, length, length + len(text)))
        length += len(text)
    return LaidOutSlides("".join(pieces), tuple(pages), tuple(headings), tuple(hidden))


def named(numbers: Sequence[int]) -> str:
    """Slides by their numbers: "slides 3, 5"."""
    return f"{'slides' if len(numbers) > 1 else 'slide'} {', '.join(map(str, numbers))}"


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of them."""
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.left + box.width for box in boxes), max(box.top + box.height for box in boxes)
    return Box(left, top, right - left, bottom - top)


def first_words(text: str, headings: tuple[Heading, ...]) -> str:
    """The first heading if it is printed at the very top, as a title is; else ""."""
    return headings[0].title if headings and text.startswith(headings[0].title) else ""


def _titled(slide: Slide) -> list[Part]:
    if slide.title:
        return [Part("heading", slide.title, level=1), *slide.parts]
    shown = [part for part in slide.parts if part.text.strip()]
    if shown and shown[0].kind == "paragraph":
        line = shown[0].text.strip()
        if len(line) <= _LONGEST_TITLE and "\n" not in line:
            return [Part("heading", line, level=1), *shown[1:]]
    return shown


def reading_order(items: Sequence[T], place: Callable[[T], Box | None]) -> list[T]:
    """Top to bottom and left to right: cut along the empty stripes across the slide, then along those down.

    A recursive XY cut (Nagy and Seth, 1984). What has no place keeps its rank after what has one.
    """
    placed = [(box, item) for item in items if (box := place(item)) is not None]
    rest = [item for item in items if place(item) is None]
    if len(placed) > _MOST_BOXES:
        placed.sort(key=lambda pair: (pair[0].top, pair[0].left))
        return [item for _, item in placed] + rest
    return [item for _, item in _cut(placed)] + rest


def _cut(placed: list[tuple[Box, T]]) -> list[tuple[Box, T]]:
    if len(placed) < 2:
        return placed
    for axis in (1, 0):
        bands = _bands(placed, axis)
        if len(bands) > 1:
            return [pair for band in bands for pair in _cut(band)]
    return sorted(placed, key=lambda pair: (pair[0].top, pair[0].left))


def _bands(placed: list[tuple[Box, T]], axis: int) -> list[list[tuple[Box, T]]]:
    """Groups that no line across (axis 1) or down (axis 0) would touch both of."""
    ordered = sorted(placed, key=lambda pair: pair[0].spans[axis])
    bands: list[list[tuple[Box, T]]] = [[]]
    begin, reach = ordered[0][0].spans[axis]
    for box, item in ordered:
        start, end = box.spans[axis]
        if start >= reach and start > begin:  # boxes without a size may begin and end at one place
            bands.append([])
            begin = start
        bands[-1].append((box, item))
        reach = max(reach, end)
    return bands
