"""A page of a PDF drawn as it is seen, in colours, and where the words of a passage stand on it.

The words are looked for by their letters and digits alone: what a line end, a hyphen or a ligature makes of them on
the page is not in the text that the library keeps. They begin and end where words and numbers do: "12 kg" does not
stand in "112 kg".
"""

from __future__ import annotations

import ctypes
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.pdf_lines import Box, around
from edgerag.ingest.parse.pdf_text_page import address, text_page_of
from edgerag.types.pictures import MOST_BOXES, MOST_PIXELS, PagePicture, PageWanted, PixelBox
from edgerag.word_edges import is_edge

_MOST_CHARACTERS = 200_000  # of a page are looked at
_LAST_CODE = 0x10FFFF
_OVER = 0.15  # of the type's height around it: the boxes of PDFium end at the ink of most letters
_THINNEST = 0.1  # points: PDFium makes up a thousandth of the type's height where it knows no shape
# A shorter line ("Notes", "12") is found only where it goes on from the one before, or stands once on the page.
_TELLING_LETTERS = 12
_MOST_LOOKS = 10_000  # at places of the same letters: a page may be made of one letter


def draw(page: Any, wanted: PageWanted, page_count: int) -> PagePicture:
    """Raises PdfiumError or ValueError for a page that cannot be drawn."""
    width, height = page.get_size()
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise ValueError("the page has no size")
    scale = min(wanted.width / width, math.sqrt(MOST_PIXELS / (width * height)))
    # Rounding up may add a row and a column, which in a page that is nearly a line are many pixels.
    while math.ceil(width * scale) * math.ceil(height * scale) > MOST_PIXELS:
        scale *= 0.99
    bitmap = page.render(scale=scale, rev_byteorder=True)
    try:
        rows = memoryview(bitmap.buffer).cast("B")
        row_bytes = 3 * bitmap.width
        rgb = b"".join(rows[y * bitmap.stride : y * bitmap.stride + row_bytes] for y in range(bitmap.height))
        passage, quote = _places(page, bitmap, wanted) if wanted.passage else ((), ())
        return PagePicture(wanted.number, page_count, bitmap.width, bitmap.height, rgb, passage, quote)
    finally:
        bitmap.close()


def _places(page: Any, bitmap: Any, wanted: PageWanted) -> tuple[tuple[PixelBox, ...], tuple[PixelBox, ...]]:
    with text_page_of(page) as (text_page, _):
        letters = letters_on(_text_of(text_page))
        passage = spans_of(letters, wanted.passage)
        quote = spans_of(letters, wanted.quote, first=passage[0][0] if passage else 0)
        convert = bitmap.get_posconv(page)

        def boxes(spans: list[tuple[int, int]]) -> tuple[PixelBox, ...]:
            found: list[PixelBox] = []
            for start, end in spans:
                first, last = letters.numbers[start], letters.numbers[end - 1]
                for place in _rectangles(text_page, first, last + 1 - first):
                    corners = convert.to_bitmap(place.left, place.top), convert.to_bitmap(place.right, place.bottom)
                    box = _within(bitmap.width, bitmap.height, *corners)
                    if box is not None:
                        found.append(box)
                    if len(found) >= MOST_BOXES:
                        return tuple(found)
            return tuple(found)

        return boxes(passage), boxes(quote)


def _rectangles(text_page: Any, first: int, count: int) -> Iterator[Box]:
    """The places on the page of so many characters: one for each text object that draws some of them."""
    places = ((_owner(text_page, number), _place(text_page, number)) for number in range(first, first + count))
    for _, run in groupby(((owner, box) for owner, box in places if owner and box.known), key=itemgetter(0)):
        box = around(box for _owner, box in run)
        over = _OVER * min(box.right - box.left, box.top - box.bottom)
        yield Box(box.left - over, box.bottom - over, box.right + over, box.top + over)


def _owner(text_page: Any, number: int) -> int:
    """The address of the object that draws a character; 0 for a space, which nothing has to draw."""
    code = pdfium.FPDFText_GetUnicode(text_page.raw, number)
    drawn = pdfium.FPDFText_GetTextObject(text_page.raw, number)
    return address(drawn) if drawn and code <= _LAST_CODE and not chr(code).isspace() else 0


def _place(text_page: Any, number: int) -> Box:
    """Of the ink of a character; all of its room where its ink is not known, as the machine has no font for it."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if pdfium.FPDFText_GetCharBox(text_page.raw, number, left, right, bottom, top):
        ink = Box(left.value, bottom.value, right.value, top.value)
        if min(ink.right - ink.left, ink.top - ink.bottom) >= _THINNEST:
            return ink
    room = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(text_page.raw, number, ctypes.byref(room))
    return Box(room.left, room.bottom, room.right, room.top)


def _within(width: int, height: int, one: tuple[int, int], other: tuple[int, int]) -> PixelBox | None:
    """The box between two corners, as far as it lies in the picture and at least a pixel wide and high."""
    left, right = sorted((one[0], other[0]))
    top, bottom = sorted((one[1], other[1]))
    left, right = max(0, left), min(width, max(right, left + 1))
    top, bottom = max(0, top), min(height, max(bottom, top + 1))
    return (left, top, right, bottom) if left < right and top < bottom else None


@dataclass(frozen=True, slots=True)
class PageLetters:
    """The letters and digits of a page in their order, and for each the number of its character in ``text``."""

    letters: str
    numbers: Sequence[int]
    text: str

    def is_whole(self, start: int, end: int) -> bool:
        """Whether no word or number begins before those letters, or goes on behind them."""
        first, last = self.numbers[start], self.numbers[end - 1] + 1
        return is_edge(self.text, first) and is_edge(self.text, last)


def letters_on(text: str) -> PageLetters:
    letters: list[str] = []
    numbers: list[int] = []
    for number, character in enumerate(text):
        for letter in _plain(character):
            letters.append(letter)
            numbers.append(number)
    return PageLetters("".join(letters), numbers, text)


def _text_of(text_page: Any) -> str:
    """A character for each of PDFium's."""
    count = min(text_page.count_chars(), _MOST_CHARACTERS)
    codes = (pdfium.FPDFText_GetUnicode(text_page.raw, number) for number in range(count))
    return "".join(chr(code) if 0 < code <= _LAST_CODE else " " for code in codes)


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    """The letters and digits that it stands for, small."""
    return "".join(part for part in unicodedata.normalize("NFKC", character).casefold() if part.isalnum())


def letters_of(text: str) -> str:
    return "".join(map(_plain, text))


def spans_of(page: PageLetters, words: str, *, first: int = 0) -> list[tuple[int, int]]:
    """Where ``words`` stand among the letters of a page, from ``first`` on if they do: the whole, or else line by
    line, each after the one before where that is possible. Lines that are not there are passed over."""
    whole = letters_of(words)
    if not whole:
        return []
    at = _find(page, whole, first)
    if at >= 0:
        return [(at, at + len(whole))]
    spans: list[tuple[int, int]] = []
    after = first
    for line in words.splitlines():
        wanted = letters_of(line)
        at = _find(page, wanted, after) if wanted else -1
        goes_on = bool(spans) and at == after
        if at < 0 or (len(wanted) < _TELLING_LETTERS and not goes_on and _stands_twice(page, wanted)):
            continue
        after = at + len(wanted)
        spans.append((at, after))
    return spans


def _find(page: PageLetters, wanted: str, first: int) -> int:
    at = next(_places_of(page, wanted, first), -1)
    if at < 0:
        at = next(_places_of(page, wanted, 0), -1)
    if at < 0 and len(wanted) >= _TELLING_LETTERS:  # a passage may have been cut within a word
        at = page.letters.find(wanted, first)
        at = at if at >= 0 else page.letters.find(wanted)
    return at


def _stands_twice(page: PageLetters, wanted: str) -> bool:
    return len(list(islice(_places_of(page, wanted, 0), 2))) > 1


def _places_of(page: PageLetters, wanted: str, first: int) -> Iterator[int]:
    """Where it stands as whole words."""
    at = page.letters.find(wanted, first)
    for _ in range(_MOST_LOOKS):
        if at < 0:
            return
        if page.is_whole(at, at + len(wanted)):
            yield at
        at = page.letters.find(wanted, at + 1)
