"""What S/MIME has signed, taken out of its envelope (RFC 5652); the signature is not checked.

Just enough of BER to reach the one field: both length forms, strings in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2
_SEQUENCE, _OBJECT_ID, _OCTETS, _OCTET_PIECES, _FIRST = 0x30, 0x06, 0x04, 0x24, 0xA0
_INDEFINITE = 0x80
_DEEPEST = 20


def signed_content(data: bytes) -> bytes | None:
    """The content of a SignedData; None when it is encrypted, or nothing that can be taken apart."""
    try:
        info = _children(data, *_only(data, 0, len(data), _SEQUENCE))
        kind, wrapped = next(info), next(info)
        if data[kind[1] : kind[2]] != _SIGNED_DATA:
            return None
        signed = _only(data, wrapped[1], wrapped[2], _SEQUENCE)
        for tag, start, end in _children(data, *signed):
            if tag == _SEQUENCE:  # the first one: what is signed
                _, content = _children(data, start, end)
                return b"".join(_octets(data, content[1], content[2], 0))
    except (ValueError, IndexError, StopIteration):
        return None
    return None


def _only(data: bytes, start: int, end: int, tag: int) -> tuple[int, int]:
    found, inner_start, inner_end = next(_children(data, start, end))
    if found != tag:
        raise ValueError("another element")
    return inner_start, inner_end


def _octets(data: bytes, start: int, end: int, depth: int) -> Iterator[bytes]:
    for tag, inner_start, inner_end in _children(data, start, end):
        if tag == _OCTETS:
            yield data[inner_start:inner_end]
        elif tag == _OCTET_PIECES and depth < _DEEPEST:
            yield from _octets(data, inner_start, inner_end, depth + 1)
        else:
            raise ValueError("no string")


def _children(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Tag, start and end of each element in a span. Raises ValueError or IndexError for what is no BER."""
    while start < end and data[start : start + 2] != b"\x00\x00":
        tag, inner_start, inner_end, start = _element(data, start, end, 0)
        yield tag, inner_start, inner_end


def _element(data: bytes, start: int, end: int, depth: int) -> tuple[int, int, int, int]:
    tag, first, start = data[start], data[start + 1], start + 2
    if depth > _DEEPEST or tag & 0x1F == 0x1F:
        raise ValueError("an element that is not used here")
    if first == _INDEFINITE:
        position = start
        while data[position : position + 2] != b"\x00\x00":
            *_, position = _element(data, position, end, depth + 1)
        return tag, start, position, position + 2
    length = first
    if first > _INDEFINITE:
        size = first - _INDEFINITE
        length, start = int.from_bytes(data[start : start + size]), start + size
    if start + length > end:
        raise ValueError("it is cut short")
    return tag, start, start + length, start + length
