"""The text page of a PDF page: its characters as PDFium finds them, whatever fonts the machine has.

PDFium passes over each text object whose rectangle has no width (``CPDF_TextPage::ProcessTextObject``), and makes the
rectangle of the shapes of the glyphs. Where a font is not in the file and none of the machine has its letters, they
have no shape: a letter that is drawn alone, a vertical line and a line turned by a quarter have no width then, and
were lost without a word. So such objects are outlined while PDFium looks: it counts the stroke as part of the
rectangle. What they say, where they stand and how they are painted afterwards stays as it is.
"""

from __future__ import annotations

import ctypes
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

_DEEPEST = 40  # forms in forms: PDFium parses no more of them
_NO_WIDTH = 0.01  # points: PDFium's own limit (kSizeEpsilon)
# Of the type's size: about as wide as a letter. PDFium tells by the rectangles lines that stand side by side, and
# letters that are painted twice, from others.
_STROKE = 0.6
_LEAST_STROKE = 0.1  # points: also type without any size is text
_UNMOVED = pdfium.FS_MATRIX(1, 0, 0, 1, 0, 0)
_LAST_CODE = 0x10FFFF
_BLANK = frozenset("ZC")  # categories of Unicode: separators, control and format characters


@dataclass(frozen=True, slots=True)
class _Thin:
    """A text object without width."""

    raw: Any
    mode: int  # in which it is painted
    stroke: float  # points

    def outline(self) -> None:
        pdfium.FPDFPageObj_SetStrokeWidth(self.raw, max(_LEAST_STROKE, _STROKE * _height(self.raw)))
        pdfium.FPDFTextObj_SetTextRenderMode(self.raw, pdfium.FPDF_TEXTRENDERMODE_STROKE)
        pdfium.FPDFPageObj_TransformF(self.raw, _UNMOVED)  # has it measured

    def put_back(self) -> None:
        """Painted as before, without width."""
        pdfium.FPDFPageObj_SetStrokeWidth(self.raw, self.stroke)
        pdfium.FPDFTextObj_SetTextRenderMode(self.raw, self.mode)
        pdfium.FPDFPageObj_TransformF(self.raw, _UNMOVED)


@contextmanager
def text_page_of(page: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """The text page, which is closed at the end, and the text objects of the page, also those within forms. Raises
    PdfiumError for a page that has none."""
    objects = list(_text_objects(page))
    text_page = _outlined(page, _saying_something(page, objects))
    try:
        yield text_page, objects
    finally:
        text_page.close()


def address(drawn: Any) -> int:
    """By which an object is known: each call of PDFium gives another pointer to it."""
    return ctypes.cast(drawn, ctypes.c_void_p).value or 0


def object_size(drawn: Any) -> float:
    """Of the type of a text object, in points, where it is drawn: see ``character_size``."""
    size, matrix = _size_and_matrix(drawn)
    return _extent(size, matrix)


def character_size(text_page: Any, number: int) -> float:
    """Of its type as drawn on the page, in points; of flattened or condensed type the smaller extent."""
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFText_GetMatrix(text_page.raw, number, matrix)
    return _extent(pdfium.FPDFText_GetFontSize(text_page.raw, number), matrix)


def _extent(size: float, matrix: Any) -> float:
    longest = max(math.hypot(matrix.a, matrix.b), math.hypot(matrix.c, matrix.d))
    return abs(size * (matrix.a * matrix.d - matrix.b * matrix.c)) / longest if longest else 0.0


def _size_and_matrix(drawn: Any) -> tuple[float, Any]:
    size, matrix = ctypes.c_float(), pdfium.FS_MATRIX()
    pdfium.FPDFTextObj_GetFontSize(drawn, size)
    pdfium.FPDFPageObj_GetMatrix(drawn, matrix)
    return size.value, matrix


def _height(drawn: Any) -> float:
    size, matrix = _size_and_matrix(drawn)
    return abs(size) * math.hypot(matrix.c, matrix.d)


def _text_objects(page: Any) -> Iterator[Any]:
    count, get = pdfium.FPDFPage_CountObjects(page.raw), pdfium.FPDFPage_GetObject
    return _text_among(page.raw, count, get, _DEEPEST)


def _text_among(holder: Any, count: int, get: Callable[[Any, int], Any], deepest: int) -> Iterator[Any]:
    kind_of, text, form = pdfium.FPDFPageObj_GetType, pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_FORM
    for number in range(count):
        drawn = get(holder, number)
        kind = kind_of(drawn)
        if kind == text:
            yield drawn
        elif kind == form and deepest:
            within = pdfium.FPDFFormObj_CountObjects(drawn)
            yield from _text_among(drawn, within, pdfium.FPDFFormObj_GetObject, deepest - 1)


def _outlined(page: Any, thin: Sequence[_Thin]) -> Any:
    """The text page of a page on which these have a width."""
    for drawn in thin:
        drawn.outline()
    try:
        return page.get_textpage()
    finally:
        for drawn in thin:
            drawn.put_back()


def _thin_and_others(objects: Iterable[Any]) -> tuple[list[_Thin], list[Any]]:
    left, bottom, right, top, stroke = (ctypes.c_float() for _ in range(5))
    bounds_of, thin, others = pdfium.FPDFPageObj_GetBounds, list[_Thin](), list[Any]()
    for drawn in objects:
        if bounds_of(drawn, left, bottom, right, top) and abs(right.value - left.value) < _NO_WIDTH:
            pdfium.FPDFPageObj_GetStrokeWidth(drawn, stroke)
            thin.append(_Thin(drawn, pdfium.FPDFTextObj_GetTextRenderMode(drawn), stroke.value))
        else:
            others.append(drawn)
    return thin, others


def _saying_something(page: Any, objects: Sequence[Any]) -> list[_Thin]:
    """Those without width that have a character other than spaces and signs without a shape.

    Spaces are left to PDFium, which puts in its own where words stand apart.
    """
    thin, others = _thin_and_others(objects)
    if not thin:
        return []
    for drawn in others:
        pdfium.FPDFPageObj_SetIsActive(drawn, False)
    try:
        text_page = _outlined(page, thin)
    finally:
        for drawn in others:
            pdfium.FPDFPageObj_SetIsActive(drawn, True)
    try:
        found: set[int] = set()
        for number in range(text_page.count_chars()):
            drawn = pdfium.FPDFText_GetTextObject(text_page.raw, number)
            if drawn and address(drawn) not in found and not _is_blank(text_page, number, drawn):
                found.add(address(drawn))
        return [drawn for drawn in thin if address(drawn.raw) in found]
    finally:
        text_page.close()


def _is_blank(text_page: Any, number: int, drawn: Any) -> bool:
    code = pdfium.FPDFText_GetUnicode(text_page.raw, number)
    if code == 0 or pdfium.FPDFText_HasUnicodeMapError(text_page.raw, number) == 1:
        # Nobody can say what it is; a font that lies in the file would have a shape for what can be seen.
        return bool(pdfium.FPDFFont_GetIsEmbedded(pdfium.FPDFTextObj_GetFont(drawn)))
    return code <= _LAST_CODE and unicodedata.category(chr(code))[0] in _BLANK
