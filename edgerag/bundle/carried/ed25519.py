"""Ed25519 signatures are checked with Python's integers alone: a target has no library for it before it has edgerag.

RFC 8032, sections 5.1.3 and 5.1.7, in extended coordinates (section 5.1.4). Only public values are handled, so that it
takes as long as its input wants gives nothing away. Stricter than it must be: numbers that are not in their one
shortest form are refused, and so are keys of small order, which would accept what nobody signed.
"""

from __future__ import annotations

import hashlib

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_SQRT_MINUS_1 = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]  # X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z
_NEUTRAL: _Point = (0, 1, 1, 0)


def is_signed(message: bytes, signature: bytes, public_key: bytes) -> bool:
    """Whether ``signature`` (64 bytes) is that of ``message`` by the owner of ``public_key`` (32 bytes)."""
    if len(signature) != 64 or len(public_key) != 32:
        return False
    key, commitment = _decoded(public_key), _decoded(signature[:32])
    response = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or response >= _ORDER or _same(_times(8, key), _NEUTRAL):
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % _ORDER
    return _same(_times(response, _BASE), _plus(commitment, _times(challenge, key)))


def _plus(first: _Point, second: _Point) -> _Point:
    a = (first[1] - first[0]) * (second[1] - second[0]) % _P
    b = (first[1] + first[0]) * (second[1] + second[0]) % _P
    c = 2 * first[3] * second[3] * _D % _P
    d = 2 * first[2] * second[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: _Point) -> _Point:
    total = _NEUTRAL
    while factor:
        if factor & 1:
            total = _plus(total, point)
        point = _plus(point, point)
        factor >>= 1
    return total


def _same(first: _Point, second: _Point) -> bool:
    return (first[0] * second[2] - second[0] * first[2]) % _P == 0 and (
        first[1] * second[2] - second[1] * first[2]
    ) % _P == 0


def _decoded(data: bytes) -> _Point | None:
    """The point; None where the bytes are none, or not in their one form."""
    number = int.from_bytes(data, "little")
    odd, y = number >> 255, number & (2**255 - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _SQRT_MINUS_1 % _P
    if (x * x - square) % _P or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = _P - x
    return x, y, 1, x * y % _P


def _base() -> _Point:
    point = _decoded((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    assert point is not None, "RFC 8032, section 5.1"
    return point


_BASE = _base()
