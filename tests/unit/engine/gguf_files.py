"""Small GGUF files written for the tests, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

_NUMBER = {int: 4, float: 6, bool: 7}


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, value: object) -> bytes:
    return text(key) + _value(value)


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)


def gguf_bytes(metadata: dict[str, object], *, tensors: dict[str, tuple[int, ...]] | None = None) -> bytes:
    """A whole file; every tensor is F32 zeros."""
    tensors = {"token_embd.weight": (4, 2)} if tensors is None else tensors
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(entry(key, value) for key, value in metadata.items())
    offset = 0
    for name, shape in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, offset)
        size = 4
        for length in shape:
            size *= length
        offset += -(-size // 32) * 32
    return head + bytes(-len(head) % 32) + bytes(offset)


CHAT = {
    "general.architecture": "llama",
    "general.license": "mit",
    "llama.context_length": 2048,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
