"""The compression of RTF in Outlook messages (MS-OXRTFCP): LZ77 over a window that begins with common RTF."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<IIII")  # bytes that follow the first field, unpacked bytes, kind, CRC
_COMPRESSED, _PLAIN = 0x75465A4C, 0x414C454D
_WINDOW = 4096
_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)


def unpack_rtf(data: bytes, *, limit: int) -> bytes:
    """Raises ValueError for data that is nothing of the kind, or unpacks to more than ``limit`` bytes.

    A message that is cut short gives what is there.
    """
    if len(data) < _HEADER.size:
        raise ValueError("it is too short")
    _, size, kind, _ = _HEADER.unpack_from(data)
    if size > limit:
        raise ValueError(f"it unpacks to {size:,} bytes")
    if kind == _PLAIN:
        return data[_HEADER.size : _HEADER.size + size]
    if kind != _COMPRESSED:
        raise ValueError("its compression is not known")
    out = bytearray(_DICTIONARY)
    window_end = len(_DICTIONARY)  # in the window, which wraps around
    end = window_end + size
    position = _HEADER.size
    while position < len(data) and len(out) < end:
        control = data[position]
        position += 1
        for bit in range(8):
            if len(out) >= end or position >= len(data):
                break
            if not control >> bit & 1:
                out.append(data[position])
                position += 1
                continue
            if position + 1 >= len(data):
                return bytes(out[window_end:end])
            reference = data[position] << 8 | data[position + 1]
            position += 2
            offset, length = reference >> 4, (reference & 15) + 2
            distance = (len(out) - offset) % _WINDOW
            if distance == 0:  # a reference to the place being written marks the end
                return bytes(out[window_end:end])
            for _ in range(length):
                out.append(out[-distance] if distance <= len(out) else 0x20)
    return bytes(out[window_end:end])
