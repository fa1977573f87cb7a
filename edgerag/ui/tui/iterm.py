"""Pictures by iTerm2's inline images (https://iterm2.com/documentation-images.html): a PNG in one control string, shown
on so many cells."""

from __future__ import annotations

import base64
import struct
import zlib

from edgerag.ui.tui.few_colours import FewColours

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS, _BY_PALETTE = 8, 3  # of a pixel; colour type of the PNG specification
_QUICK = 1  # zlib's level: the higher ones take three times as long for a tenth less


def encoded(picture: FewColours, columns: int, rows: int) -> str:
    """The control string that shows ``picture`` on so many cells from the cursor on; the cursor stays."""
    file = png(picture)
    keys = f"inline=1;size={len(file)};width={columns};height={rows};preserveAspectRatio=0;doNotMoveCursor=1"
    return f"\x1b]1337;File={keys}:{base64.b64encode(file).decode('ascii')}\x07"


def png(picture: FewColours) -> bytes:
    """As a PNG file with a palette."""
    height, width = picture.numbers.shape
    lines = b"".join(b"\0" + line.tobytes() for line in picture.numbers)  # each is told as it is, unfiltered
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, _BITS, _BY_PALETTE, 0, 0, 0)),
            _chunk(b"PLTE", picture.colours.tobytes()),
            _chunk(b"IDAT", zlib.compress(lines, _QUICK)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
