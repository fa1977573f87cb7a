"""The bytes of one state, between its file and the memory."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path

from edgerag.engine.states.format import Header, StateDamaged

_AT_A_TIME = 4 * 2**20  # bytes; does not throw the rest out of the processor's cache for long


def write_file(path: Path, header: bytes, payload: memoryview, *, time_s: float) -> None:
    """A new file that only its owner may read, with the time given. Raises OSError."""
    path.unlink(missing_ok=True)  # of a dead process that had our number
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for part in (memoryview(header), payload):
            written = 0
            while written < part.nbytes:
                written += os.write(descriptor, part[written:])
        os.utime(descriptor, (time_s, time_s))
    finally:
        os.close(descriptor)


def check_bytes(descriptor: int, header: Header) -> None:
    """Reads them all, and not through a mapping: a sector that cannot be read is an error here and a signal there.

    Raises StateDamaged, OSError.
    """
    buffer = memoryview(bytearray(min(_AT_A_TIME, header.payload_bytes)))
    checked = crc = 0
    while checked < header.payload_bytes:
        part = buffer[: header.payload_bytes - checked]
        count = os.preadv(descriptor, [part], header.header_bytes + checked)
        if not count:
            raise StateDamaged("it was cut short while it was read")
        crc = zlib.crc32(part[:count], crc)
        checked += count
    if crc != header.payload_crc:
        raise StateDamaged("its bytes do not match their checksum")


def map_bytes(descriptor: int, header: Header) -> memoryview:
    """The bytes where they lie. From the beginning of the file: where pages are larger than 4 KiB, a mapping cannot
    begin where the bytes do. Raises OSError."""
    whole = memoryview(mmap.mmap(descriptor, header.file_bytes, prot=mmap.PROT_READ))
    return whole[header.header_bytes :]
