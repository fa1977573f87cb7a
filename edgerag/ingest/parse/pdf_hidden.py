"""Text of a PDF page that nobody sees on it: white on white, without ink, or too small to be read.

What is suspect is found from how it is painted; then the page is drawn, and where the suspect text should stand there
must be something to see. So white on a dark ground is visible, and so is the invisible text layer over a scan.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.pdf_lines import Line

_MOST_OBJECTS = 100_000  # of a page are looked at
_DEEPEST = 8  # forms in forms
_SMALLEST_POINTS = 1.0  # as drawn; a letter of less is a dot
_LIGHT = 200  # of 255 in each colour: anything darker is seen on white paper
_FAINT = 40  # of 255: less ink is none
_CONTRAST = 24  # of 255 within the place of the text
_MOST_PIXELS = 4_000_000
_SCALE = 2.0  # pixels to a point
_NO_INK = (pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP)


def mark_unseen(lines: Sequence[Line], page: Any, text_page: Any) -> list[Line]:
    """The lines, with what cannot be seen of them noted; their pieces too."""
    suspects = set(_suspects(page))
    view: _View | None = None
    marked: list[Line] = []
    for line in lines:
        words = line.text.strip() if line.size and line.size < _SMALLEST_POINTS else ""
        if not words and suspects and line.size:
            for first, end in _suspect_runs(text_page, line.numbers, suspects):
                view = view or _View(page)
                if not view.shows_something(text_page, first, end):
                    words = f"{words} {_text(text_page, first, end)}".strip()
        if words:
            pieces = tuple(replace(piece, unseen=words) for piece in line.pieces)
            line = replace(line, unseen=words, pieces=pieces)
        marked.append(line)
    return marked


def _suspects(page: Any) -> Iterator[int]:
    """The addresses of text objects that may not be seen."""
    red, green, blue, ink = (ctypes.c_uint() for _ in range(4))
    for count, drawn in enumerate(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT], max_depth=_DEEPEST)):
        if count >= _MOST_OBJECTS:
            return
        mode = pdfium.FPDFTextObj_GetTextRenderMode(drawn.raw)
        painted = pdfium.FPDFPageObj_GetFillColor(drawn.raw, red, green, blue, ink)
        light = painted and (min(red.value, green.value, blue.value) >= _LIGHT or ink.value < _FAINT)
        if mode in _NO_INK or light:
            yield _address(drawn.raw)


def _suspect_runs(text_page: Any, numbers: tuple[int, int], suspects: set[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring characters of suspect objects, half open."""
    start: int | None = None
    for number in range(*numbers):
        drawn = pdfium.FPDFText_GetTextObject(text_page.raw, number)
        if drawn and _address(drawn) in suspects:
            start = number if start is None else start
        elif drawn and start is not None:  # a space that PDFium put in belongs to no object
            yield start, number
            start = None
    if start is not None:
        yield start, numbers[1]


def _address(drawn: Any) -> int:
    return ctypes.cast(drawn, ctypes.c_void_p).value or 0


def _text(text_page: Any, first: int, end: int) -> str:
    codes = (pdfium.FPDFText_GetUnicode(text_page.raw, number) for number in range(first, end))
    return "".join(chr(code) if 32 <= code <= 0xFFFF else " " for code in codes).strip()


class _View:
    """A page as it is seen, in grey."""

    def __init__(self, page: Any) -> None:
        width, height = page.get_size()
        scale = min(_SCALE, math.sqrt(_MOST_PIXELS / max(width * height, 1.0)))
        self._page = page
        bitmap = page.render(scale=scale, grayscale=True)
        self._width, self._height, self._stride = bitmap.width, bitmap.height, bitmap.stride
        self._pixels = bytes(memoryview(bitmap.buffer).cast("B"))
        bitmap.close()

    def shows_something(self, text_page: Any, first: int, end: int) -> bool:
        """Whether anything stands out where these characters are."""
        box, place = pdfium.FS_RECTF(), None
        dark, light = 255, 0
        for number in range(first, end):
            if not pdfium.FPDFText_GetLooseCharBox(text_page.raw, number, ctypes.byref(box)):
                continue
            place = self._pixel(box.left, box.top), self._pixel(box.right, box.bottom)
            columns = sorted((place[0][0], place[1][0]))
            rows = sorted((place[0][1], place[1][1]))
            for row in range(max(0, rows[0]), min(self._height, rows[1] + 1)):
                start = row * self._stride
                part = self._pixels[start + max(0, columns[0]) : start + min(self._width, columns[1] + 1)]
                if part:
                    dark, light = min(dark, min(part)), max(light, max(part))
            if light - dark >= _CONTRAST:
                return True
        return False

    def _pixel(self, x: float, y: float) -> tuple[int, int]:
        across, down = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(self._page.raw, 0, 0, self._width, self._height, 0, x, y, across, down)
        return across.value, down.value
