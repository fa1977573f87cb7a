"""Pages of a document without PDFium: each word a bar of ink, so that a picture is the same everywhere."""

from __future__ import annotations

from collections.abc import Callable

from edgerag.types import PagePicture, PageWanted, ParsedDocument
from edgerag.types.pictures import PixelBox

_WIDTH, _HEIGHT = 60, 84  # of a page, in letters and half lines
_MARGIN = 6
_INK = (30, 30, 40)
_HEAD = (40, 90, 160)  # a band at the top, so that colours can be seen


class PaintedPages:
    """Of one document, as a session gives them."""

    def __init__(self, document: ParsedDocument, before_page: Callable[[int], None]) -> None:
        self._document = document
        self._before_page = before_page
        self.drawn: list[PageWanted] = []
        self.is_closed = False

    def draw(self, wanted: PageWanted, *, stopped: Callable[[], bool] = lambda: False) -> PagePicture | None:
        self.drawn.append(wanted)
        self._before_page(wanted.number)
        if stopped():
            return None
        page = self._document.pages[wanted.number - 1]
        width, height = wanted.width, max(1, wanted.width * _HEIGHT // _WIDTH)
        rows = [bytearray(b"\xff\xff\xff" * width) for _ in range(height)]

        def box(column: int, line: int, letters: int) -> PixelBox:
            x, y = _MARGIN + column, _MARGIN + 2 * line + 1
            return (
                x * width // _WIDTH,
                y * height // _HEIGHT,
                max(x * width // _WIDTH + 1, (x + letters) * width // _WIDTH),
                max(y * height // _HEIGHT + 1, (y + 1) * height // _HEIGHT),
            )

        def paint(place: PixelBox, ink: tuple[int, int, int]) -> None:
            left, top, right, bottom = place
            for row in rows[top:bottom]:
                row[3 * left : 3 * right] = bytes(ink) * (right - left)

        paint((0, 0, width, max(1, 3 * height // _HEIGHT)), _HEAD)
        passage: list[PixelBox] = []
        quote: list[PixelBox] = []
        for line, words in enumerate(self._document.text[page.start : page.end].split("\n")):
            column = 0
            for word in words.split(" "):
                if word:
                    paint(box(column, line, len(word)), _INK)
                column += len(word) + 1
            for lines, found in ((wanted.passage, passage), (wanted.quote, quote)):
                if words and words in lines.split("\n"):
                    found.append(box(0, line, len(words)))
        rgb = b"".join(rows)
        count = len(self._document.pages)
        return PagePicture(wanted.number, count, width, height, rgb, tuple(passage), tuple(quote))

    def close(self) -> None:
        self.is_closed = True
