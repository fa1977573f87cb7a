"""OCR with the real Tesseract, where it is on the machine; test_ocr.py and test_ocr_flow.py have one that is played."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pypdfium2
import pytest
from unit.ingest.craft import text_pdf

from edgerag.ingest.parse.ocr import find_recogniser
from edgerag.ingest.parse.pdf_scan import draw_page
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, Parsed

pytestmark = pytest.mark.skipif(shutil.which("tesseract") is None, reason="there is no Tesseract on this machine")
FIRST = "The harbour of Bergen was built in the eleventh century."
SECOND = "Ships from Iceland brought wool and dried fish to it."


def drawn(text: str) -> tuple[int, int, bytes]:
    """Width, height and grey pixels of a page with these words, ten times over."""
    document = pypdfium2.PdfDocument(text_pdf("\n".join([text] * 10)))
    image = draw_page(document[0])
    document.close()
    _, size, _, body = image.split(b"\n", 3)
    width, height = map(int, size.split())
    return width, height, body


def pgm(width: int, height: int, body: bytes) -> bytes:
    return b"P5\n%d %d\n255\n" % (width, height) + body


def turned(width: int, height: int, body: bytes, quarters: int) -> tuple[int, int, bytes]:
    for _ in range(quarters):
        body = b"".join(body[column::width][::-1] for column in range(width))
        width, height = height, width
    return width, height, body


def tiff(*pages: tuple[int, int, bytes]) -> bytes:
    """One TIFF with these pages in grey, not packed."""
    out = bytearray(b"II*\x00\x00\x00\x00\x00")
    link = 4
    for width, height, body in pages:
        start = len(out)
        out += body + b"\x00" * (len(body) % 2)
        struct.pack_into("<I", out, link, len(out))
        facts = (
            (256, width),
            (257, height),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, start),
            (278, height),
            (279, len(body)),
        )
        out += struct.pack("<H", len(facts))
        for tag, value in facts:
            out += struct.pack("<HHII", tag, 4, 1, value)
        link = len(out)
        out += bytes(4)
    return bytes(out)


def read(tmp_path: Path, name: str, data: bytes, *, deadline_s: float = 120.0) -> object:
    recogniser = find_recogniser("auto", "", deadline_s=deadline_s, memory_bytes=2_000_000_000)
    if recogniser is None:
        pytest.skip("there is no language for Tesseract on this machine")
    file = tmp_path / name
    file.write_bytes(data)
    process = ParserProcess(memory_bytes=2_000_000_000, max_file_bytes=10**9, deadline_s=120.0, recogniser=recogniser)
    try:
        return process.read(str(file))
    finally:
        process.close()


@pytest.mark.long
def test_each_page_of_a_tiff_is_read(tmp_path: Path) -> None:
    reply = read(tmp_path, "fax.tif", tiff(drawn(FIRST), drawn(SECOND)))
    assert isinstance(reply, Parsed) and reply.document is not None
    pages = [reply.document.text[page.start : page.end] for page in reply.document.pages]
    assert [page.splitlines()[0] for page in pages] == [FIRST, SECOND]
    assert SECOND not in pages[0] and FIRST not in pages[1]
    assert "read by OCR" in reply.document.warnings[0]


@pytest.mark.long
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_page_that_lies_on_its_side_or_head_is_read(tmp_path: Path, quarters: int) -> None:
    recogniser = find_recogniser("auto", "", deadline_s=120.0, memory_bytes=2_000_000_000)
    if recogniser is None or not recogniser.turns:
        pytest.skip("there is no osd data for Tesseract on this machine")
    found = recogniser.read(pgm(*turned(*drawn(FIRST), quarters)), 1)
    assert found is not None and FIRST in found.text


def test_a_page_that_takes_too_long_is_named(tmp_path: Path) -> None:
    reply = read(tmp_path, "fax.tif", tiff(drawn(FIRST)), deadline_s=0.01)
    assert isinstance(reply, Failed) and "Tesseract was stopped after 0.01 seconds" in str(reply.error)
