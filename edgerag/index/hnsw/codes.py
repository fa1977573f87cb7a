"""Compact codes of vectors and links: what a walk reads instead of the vectors.

A vector is rotated at random first, which makes all its dimensions alike; then one bit or four bits of each
say enough to tell near from far. ``sum(code * query) * factor`` is an unbiased estimate of the cosine when
the factor is one over the product of the code with its own vector (Gao and Long, RaBitQ, SIGMOD 2024,
arXiv:2405.12497). The rotation is a fixed one, four turns of random signs and a Walsh-Hadamard transform,
which costs a microsecond where a matrix costs ten. Every step is an exact float32 operation in a fixed
order, so that kernel.c rotates a query to the same bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edgerag.types import Vectors

Bytes = NDArray[np.uint8]

# Part of the format: another seed is another rotation, and codes made with it mean nothing.
_SIGN_SEED = 0x65646765726167
_TURNS = 4
_LANE = 64  # codes are padded to so many dimensions
# Half the range of 16 even levels, in standard deviations: the least squared error for normal values.
_NIBBLE_RANGE = 2.6
_CACHE_LINE = 64
# Standard deviation of an estimate, times the square root of the dimension; measured, see docs/decisions/018.
_ERRORS = {"bits": 0.755, "nibbles": 0.108}


def padded_dimension(dimension: int) -> int:
    """Dimensions of the codes of a vector."""
    return -(-dimension // _LANE) * _LANE


def estimate_error(code: Literal["bits", "nibbles"], dimension: int) -> float:
    """Standard deviation of the error of an estimated cosine."""
    return float(_ERRORS[code] / np.sqrt(padded_dimension(dimension)))


def bits_row_bytes(dimension: int) -> int:
    """One bit a dimension and a factor; filled up to whole cache lines where that costs less than a quarter."""
    size = padded_dimension(dimension) // 8 + 4
    whole = -(-size // _CACHE_LINE) * _CACHE_LINE
    return whole if (whole - size) * 4 <= size else size


def nibbles_row_bytes(dimension: int) -> int:
    """Four bits a dimension and a factor."""
    return padded_dimension(dimension) // 2 + 4


def link_bits(row_count: int) -> int:
    """Bits of one packed link."""
    return max(1, (row_count - 1).bit_length())


def links_row_bytes(row_count: int, m0: int) -> int:
    """A count of 16 bits and ``m0`` packed links."""
    return 2 + (m0 * link_bits(row_count) + 7) // 8


@lru_cache(maxsize=8)
def signs(dimension: int) -> NDArray[np.float32]:
    """(4, padded dimension) of 1 and -1: the signs of each turn, from splitmix64."""
    count = _TURNS * padded_dimension(dimension)
    with np.errstate(over="ignore"):
        state = np.uint64(_SIGN_SEED) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    flags = np.where(state >> np.uint64(63), -1.0, 1.0).astype(np.float32)
    flags.setflags(write=False)
    return flags.reshape(_TURNS, -1)


def rotated(vectors: Vectors) -> Vectors:
    """(n, padded dimension) float32: the rows in the space of the codes, lengths kept."""
    count, dimension = vectors.shape
    size = padded_dimension(dimension)
    values = np.zeros((count, size), dtype=np.float32)
    values[:, :dimension] = vectors
    power = 1 << (size.bit_length() - 1)
    for turn, flags in enumerate(signs(dimension)):
        values *= flags
        start = size - power if turn % 2 else 0
        _hadamard(values[:, start : start + power])
    return values


def _hadamard(values: NDArray[np.float32]) -> None:
    """Walsh-Hadamard transform of each row, in place, lengths kept."""
    count, size = values.shape
    work = np.ascontiguousarray(values)
    step = 1
    while step < size:
        pairs = work.reshape(count, size // (2 * step), 2, step)
        first, second = pairs[:, :, 0].copy(), pairs[:, :, 1]
        pairs[:, :, 0] = first + second
        pairs[:, :, 1] = first - second
        step *= 2
    values[:] = work * np.float32(1 / np.sqrt(size))


def encode_bits(values: Vectors, dimension: int) -> Bytes:
    """(n, row bytes) of rotated unit rows: sign bits, lowest dimension in the lowest bit; then the factor, f32."""
    out = np.zeros((len(values), bits_row_bytes(dimension)), dtype=np.uint8)
    size = values.shape[1] // 8
    out[:, :size] = np.packbits(values > 0, axis=1, bitorder="little")
    out[:, size : size + 4] = _as_bytes(_factor(np.abs(values).sum(axis=1, dtype=np.float64)))
    return out


def encode_nibbles(values: Vectors) -> Bytes:
    """(n, row bytes) of rotated unit rows: 64 dimensions in 32 bytes, the first 32 of them in the low halves; then
    the factor, f32."""
    count, size = values.shape
    step = 2 * _NIBBLE_RANGE / 15 / np.sqrt(size)
    levels = np.clip(np.floor(values / step) + 8, 0, 15).astype(np.uint8)
    codes = 2 * levels.astype(np.float64) - 15
    halves = levels.reshape(count, size // _LANE, 2, _LANE // 2)
    packed = (halves[:, :, 0] | (halves[:, :, 1] << 4)).reshape(count, size // 2)
    factors = _factor(np.einsum("ij,ij->i", codes, values.astype(np.float64)))
    return np.concatenate([packed, _as_bytes(factors)], axis=1)


def pack_links(links: NDArray[np.uint32], row_count: int) -> Bytes:
    """(n, row bytes) from (n, 1 + m0): count, links; packed from the lowest bit up."""
    bits = link_bits(row_count)
    count, m0 = len(links), links.shape[1] - 1
    out = np.zeros((count, links_row_bytes(row_count, m0)), dtype=np.uint8)
    out[:, 0], out[:, 1] = links[:, 0] & 0xFF, links[:, 0] >> 8
    spread = (links[:, 1:, None] >> np.arange(bits, dtype=np.uint32)) & np.uint32(1)
    out[:, 2:] = np.packbits(spread.astype(np.uint8).reshape(count, m0 * bits), axis=1, bitorder="little")
    return out


def unpack_links(rows: Bytes, row_count: int, m0: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) counts and (n, m0) links, as they are in the file: not checked."""
    bits = link_bits(row_count)
    counts = rows[:, 0].astype(np.int64) | (rows[:, 1].astype(np.int64) << 8)
    spread = np.unpackbits(rows[:, 2:], axis=1, bitorder="little")[:, : m0 * bits].reshape(len(rows), m0, bits)
    return counts, spread.astype(np.int64) @ (np.int64(1) << np.arange(bits, dtype=np.int64))


def _factor(products: NDArray[np.float64]) -> NDArray[np.float32]:
    safe = np.where(products > 0, products, np.inf)  # a row without direction estimates to zero
    factors: NDArray[np.float32] = (1 / safe).astype(np.float32)
    return factors


def _as_bytes(factors: NDArray[np.float32]) -> Bytes:
    return np.ascontiguousarray(factors, dtype="<f4").view(np.uint8).reshape(-1, 4)
