"""Scanned pages of a PDF: told apart from blank ones, drawn for OCR, and their recognised text as lines."""

from __future__ import annotations

import math
from typing import Any

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.pdf_lines import Box, Line
from edgerag.ingest.parse.source import OCR_DPI, Recognised, clean_text

_MOST_OBJECTS = 2_000  # of a page are looked at
_SMALLEST_PICTURE = 0.05  # of the page: less is a logo
_POINTS_PER_INCH = 72.0
_MOST_PIXELS = 40_000_000  # an A3 page at 300 dpi has 17 million


def is_scanned(page: Any) -> bool:
    """Whether a page without text shows a picture that may hold some."""
    width, height = page.get_size()
    for count, drawn in enumerate(page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=4)):
        if count >= _MOST_OBJECTS:
            break
        left, bottom, right, top = drawn.get_bounds()
        if (right - left) * (top - bottom) >= _SMALLEST_PICTURE * width * height:
            return True
    return False


def draw_page(page: Any) -> bytes:
    """The page as it is seen, in grey, as a PGM image of at most so many pixels."""
    width, height = page.get_size()
    scale = OCR_DPI / _POINTS_PER_INCH
    scale = min(scale, math.sqrt(_MOST_PIXELS / max(width * height, 1.0)))
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        rows = memoryview(bitmap.buffer).cast("B")
        body = b"".join(rows[row * bitmap.stride : row * bitmap.stride + bitmap.width] for row in range(bitmap.height))
        return b"P5\n%d %d\n255\n" % (bitmap.width, bitmap.height) + body
    finally:
        bitmap.close()


def recognised_lines(page: Recognised) -> list[Line]:
    """The lines that OCR read. It tells no places: an empty line between them parts paragraphs."""
    text = clean_text(page.text).strip("\n")
    nowhere = Box(0.0, 0.0, 0.0, 0.0)
    return [Line(line.rstrip(), nowhere, 0.0, 0.0, 0.0, "right") for line in text.split("\n")] if text else []
