"""Finds the one bit that was flipped in a block, from its CRC-32.

A CRC is linear: the sum of a block with one bit flipped differs from the right one by the CRC of that bit alone, which
is a power of x modulo the polynomial. Its exponent is the place of the bit, and x has the order 2^32 - 1, so that each
place within half a gigabyte has a difference of its own. Whether the block is right after the change must be confirmed
by another checksum: more than one flipped bit may look like one.
"""

from __future__ import annotations

from math import isqrt

# The polynomial of zlib's CRC-32 with its bits turned round: the highest bit is x^0.
_POLYNOMIAL = 0xEDB88320


def flipped_bit(difference: int, size_bytes: int) -> int | None:
    """The bit (bit ``n % 8`` of byte ``n // 8``) whose flip changes the CRC-32 of so many bytes by ``difference``, the
    exclusive or of the right one and the present one; None if no single bit does.

    Baby steps and giant steps: the square root of the number of bits in time and room.
    """
    if not difference:
        return None
    bits = size_bytes * 8
    step = isqrt(bits) + 1
    # The last bit of a message, bit 7 of its last byte, adds x^32; each bit before it one more.
    power = 0x80000000  # x^0
    for _ in range(32):
        power = _times_x(power)
    baby: dict[int, int] = {}
    for exponent in range(step):
        baby.setdefault(power, exponent)
        power = _times_x(power)
    back = _inverse_power(step)
    wanted = difference
    for giant in range(step + 1):
        if wanted in baby:
            from_the_end = giant * step + baby[wanted]
            if from_the_end < bits:
                return bits - 1 - from_the_end  # the lowest bit of each byte comes first
        wanted = _product(wanted, back)
    return None


def _times_x(value: int) -> int:
    return value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)


def _over_x(value: int) -> int:
    return (value ^ _POLYNOMIAL) << 1 & 0xFFFFFFFF | 1 if value & 0x80000000 else value << 1


def _inverse_power(exponent: int) -> int:
    """x to the power of minus ``exponent``."""
    value = 0x80000000
    for _ in range(exponent):
        value = _over_x(value)
    return value


def _product(a: int, b: int) -> int:
    """Of two polynomials, modulo the polynomial."""
    result = 0
    for bit in range(31, -1, -1):  # the highest bit is x^0
        if a >> bit & 1:
            result ^= b
        b = _times_x(b)
    return result
