"""Text of a PDF page that nobody sees on it: white on white, without ink, or too small to be read.

What is suspect is found from how it is painted; then the page is drawn, and where the suspect text should stand there
must be something to see. So white on a dark ground is visible, and so is the invisible text layer over a scan.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.pdf_lines import Line
from edgerag.ingest.parse.pdf_text_page import address, character_size, object_size

_SMALLEST_POINTS = 1.0  # as drawn; a letter of less is a dot
_LIGHT = 200  # of 255 in each colour: anything darker is seen on white paper
_FAINT = 40  # of 255: less ink is none
_CONTRAST = 24  # of 255 within the place of the text
_MOST_PIXELS = 4_000_000
_SCALE = 2.0  # pixels to a point
_Suspicion = Literal["small", "faint"]
_NO_INK = (pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP)


def mark_unseen(lines: Sequence[Line], page: Any, text_page: Any, text_objects: Iterable[Any]) -> list[Line]:
    """The lines, with what cannot be seen of them noted; their pieces too. ``text_objects`` are all of the page."""
    suspects = dict(_suspects(text_objects))
    view: _View | None = None
    marked: list[Line] = []
    for line in lines:
        words = "" if line.numbers[0] < line.numbers[1] else line.text.strip()  # nothing of it has an extent
        is_small = line.size < _SMALLEST_POINTS
        runs = _suspect_runs(text_page, line.numbers, suspects, is_small) if suspects or is_small else ()
        for first, end, why in runs:
            unseen = why == "small" and character_size(text_page, first) < _SMALLEST_POINTS
            if not unseen:
                view = view or _View(page)
                unseen = not view.shows_something(text_page, first, end)
            if unseen:
                words = f"{words} {_text(text_page, first, end)}".strip()
        if words:
            pieces = tuple(replace(piece, unseen=words) for piece in line.pieces)
            line = replace(line, unseen=words, pieces=pieces)
        marked.append(line)
    return marked


def _suspects(text_objects: Iterable[Any]) -> Iterator[tuple[int, _Suspicion]]:
    """The addresses of text objects that may not be seen."""
    red, green, blue, ink = (ctypes.c_uint() for _ in range(4))
    for drawn in text_objects:
        mode = pdfium.FPDFTextObj_GetTextRenderMode(drawn)
        painted = pdfium.FPDFPageObj_GetFillColor(drawn, red, green, blue, ink)
        light = painted and (min(red.value, green.value, blue.value) >= _LIGHT or ink.value < _FAINT)
        if object_size(drawn) < _SMALLEST_POINTS:
            yield address(drawn), "small"
        elif mode in _NO_INK or light:
            yield address(drawn), "faint"


def _suspect_runs(
    text_page: Any, numbers: tuple[int, int], suspects: Mapping[int, _Suspicion], is_small: bool
) -> Iterator[tuple[int, int, _Suspicion]]:
    """Neighbouring characters that are suspect for one reason, half open; small ones object by object. In a small line
    all are suspect: a form may have made them so."""
    known: tuple[_Suspicion | None, int] = (None, 0)
    start = numbers[0]
    for number in range(*numbers):
        drawn = pdfium.FPDFText_GetTextObject(text_page.raw, number)
        if not drawn:  # a space that PDFium put in belongs to no object
            continue
        why: _Suspicion | None = suspects.get(address(drawn), "small" if is_small else None)
        now = why, address(drawn) if why == "small" else 0
        if now != known:
            if known[0] is not None:
                yield start, number, known[0]
            start, known = number, now
    if known[0] is not None:
        yield start, numbers[1], known[0]


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
