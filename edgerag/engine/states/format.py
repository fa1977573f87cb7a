"""The file of one saved state: a header, then the state's bytes. docs/states-format.md has it byte by byte.

A file never changes once it has its name. What does change is kept outside of the header: the file's time says
when the state was last used, its ending whether it is deprecated. The header has a CRC-32 of all of it, zeros
included, and one of the bytes that follow. CRC-32 (zlib) for the reasons given in index/hnsw/format.py; zlib's
checks 6.4 GB a second on the machine of the benches, so that a state of 20 MB costs 3 ms once.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
import zlib
from dataclasses import dataclass

from edgerag.engine.states.key import StateKey, checked_labels

# Not text, and broken by any transfer that changes line ends or cuts the eighth bit.
MAGIC = b"\x89ERKV\r\n\x1a"
VERSION = 1
# The state's bytes begin at a multiple of this, as in memory that is asked for in pages.
ALIGNMENT = 4096

_FIXED = struct.Struct("<8sIIIIQIIqqd")
_CRC_OFFSET = 16
_NEVER_NS = 2**63 - 1
# Name, scope, hash and 64 labels need 9 KB; more is a damaged count.
_MOST_HEADER_BYTES = 64 * 1024


class StateDamaged(Exception):
    """A file is not what was written. Never leaves this package: to the user it is a miss and a sentence."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a state beside its bytes."""

    key: StateKey
    token_count: int
    cost_s: float  # seconds that computing it took
    created_ns: int
    expires_ns: int | None
    labels: frozenset[str]

    def __post_init__(self) -> None:
        """Raises ValueError for what can be no facts."""
        checked_labels(self.labels)
        if not 0 <= self.token_count < 2**32:
            raise ValueError(f"a state of {self.token_count} tokens")
        if not (math.isfinite(self.cost_s) and self.cost_s >= 0):
            raise ValueError(f"a state that took {self.cost_s} s")

    def expired(self, now_ns: int) -> bool:
        return self.expires_ns is not None and now_ns >= self.expires_ns


@dataclass(frozen=True, slots=True)
class Header:
    facts: Facts
    header_bytes: int
    payload_bytes: int
    payload_crc: int

    @property
    def file_bytes(self) -> int:
        return self.header_bytes + self.payload_bytes


def header_for(facts: Facts, payload: memoryview) -> tuple[Header, bytes]:
    """The header of a file that holds ``payload``, and its bytes."""
    key = facts.key
    names = {"name": key.name, "scope": key.scope, "tokens_sha256": key.tokens_sha256, "labels": sorted(facts.labels)}
    text = json.dumps(names).encode("ascii")
    header_bytes = -(-(_FIXED.size + len(text)) // ALIGNMENT) * ALIGNMENT
    header = Header(facts, header_bytes, payload.nbytes, zlib.crc32(payload))
    fixed = _FIXED.pack(
        MAGIC,
        VERSION,
        header_bytes,
        0,
        len(text),
        header.payload_bytes,
        header.payload_crc,
        facts.token_count,
        facts.created_ns,
        _NEVER_NS if facts.expires_ns is None else facts.expires_ns,
        facts.cost_s,
    )
    raw = bytearray((fixed + text).ljust(header_bytes, b"\0"))
    struct.pack_into("<I", raw, _CRC_OFFSET, zlib.crc32(raw))
    return header, bytes(raw)


def read_header(descriptor: int, *, name: str, scope: str) -> Header:
    """The header of an open file that lies at that name. Raises StateDamaged when the file is not whole, OSError."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise StateDamaged("it is no file")
    raw = os.pread(descriptor, ALIGNMENT, 0)
    if len(raw) < ALIGNMENT or not raw.startswith(MAGIC):
        raise StateDamaged("it does not begin as a state does")
    _, version, header_bytes, crc, text_bytes, payload_bytes, payload_crc, *numbers = _FIXED.unpack_from(raw)
    if version != VERSION:
        raise StateDamaged(f"it has the unknown version {version}")
    if header_bytes % ALIGNMENT or not _FIXED.size + text_bytes <= header_bytes <= _MOST_HEADER_BYTES:
        raise StateDamaged("its header has no possible size")
    if status.st_size != header_bytes + payload_bytes:
        raise StateDamaged("its size is not what its header says")
    raw += os.pread(descriptor, header_bytes - ALIGNMENT, ALIGNMENT)
    unsigned = raw[:_CRC_OFFSET] + bytes(4) + raw[_CRC_OFFSET + 4 :]
    if zlib.crc32(unsigned) != crc:
        raise StateDamaged("its header does not match its checksum")
    token_count, created_ns, expires_ns, cost_s = numbers
    try:
        names = json.loads(raw[_FIXED.size : _FIXED.size + text_bytes])
        facts = Facts(
            key=StateKey(names["name"], names["scope"], names["tokens_sha256"]),
            token_count=token_count,
            cost_s=cost_s,
            created_ns=created_ns,
            expires_ns=None if expires_ns == _NEVER_NS else expires_ns,
            labels=frozenset(names["labels"]),
        )
    except (ValueError, KeyError, TypeError) as error:  # a checksum that fits by chance, or by intention
        raise StateDamaged(f"its header is not understood: {error}") from error
    if (facts.key.name, facts.key.scope) != (name, scope):
        raise StateDamaged("it is the file of another state")
    return Header(facts, header_bytes, payload_bytes, payload_crc)
