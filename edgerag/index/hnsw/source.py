"""Where the bytes of a segment come from: the file as it lies, or one that is decrypted as it is read.

Everything that reads a segment other than through its mapping reads here. Offsets are those of the plaintext, which is
the segment file that format.py describes, whatever lies on the disk.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgerag.encryption.keys import LibraryKey
from edgerag.encryption.units import UNIT_BYTES, UnitReader

# Decrypted units that are kept of one open segment, the last that were read: 4 MiB. A search reads some dozens of rows,
# many of them the same as the one before.
_KEPT_UNITS = 1024


class SegmentSource(Protocol):
    """An open segment file. For any thread."""

    @property
    def descriptor(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """As it was when it was opened."""
        ...

    def read(self, offset: int, size_bytes: int) -> bytes:
        """So many bytes, fewer at the end. Raises OSError, UnitDamaged."""
        ...

    def gather(self, offsets: NDArray[np.int64], size_bytes: int) -> bytes:
        """So many bytes from each of the offsets on, one behind the other. Raises as :meth:`read` does."""
        ...

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fills ``target``, or as much of it as there is; how much. Raises OSError, UnitDamaged."""
        ...

    def close(self) -> None: ...


class FileSource:
    """A plain file."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self.descriptor).st_size

    def read(self, offset: int, size_bytes: int) -> bytes:
        return os.pread(self.descriptor, size_bytes, offset)

    def gather(self, offsets: NDArray[np.int64], size_bytes: int) -> bytes:
        return b"".join([os.pread(self.descriptor, size_bytes, offset) for offset in offsets.tolist()])

    def read_into(self, target: memoryview, offset: int) -> int:
        return os.preadv(self.descriptor, [target], offset)

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class UnitSource:
    """An encrypted file. ``read`` is for rows and remembers what it decrypted; ``read_into`` is for more than that."""

    def __init__(self, path: Path, key: LibraryKey) -> None:
        """Raises OSError, UnitDamaged."""
        self._units = UnitReader(path, key, role_of(path))
        self._kept: dict[int, bytes] = {}
        self._lock = threading.Lock()

    @property
    def descriptor(self) -> int:
        return self._units.descriptor

    @property
    def size_bytes(self) -> int:
        return self._units.size_bytes

    def read(self, offset: int, size_bytes: int) -> bytes:
        end = min(offset + size_bytes, self.size_bytes)
        first, last = offset // UNIT_BYTES, max(offset, end - 1) // UNIT_BYTES
        start = offset - first * UNIT_BYTES
        if first == last:
            return self._unit(first)[start : start + end - offset]
        joined = b"".join(self._unit(number) for number in range(first, last + 1))
        return joined[start : start + end - offset]

    def read_into(self, target: memoryview, offset: int) -> int:
        count = max(0, min(len(target), self.size_bytes - offset))
        if count:
            self._units.read_into(target[:count], offset)
        return count

    def gather(self, offsets: NDArray[np.int64], size_bytes: int) -> bytes:
        numbers, starts = np.divmod(offsets, UNIT_BYTES)
        parts = []
        for number, start in zip(numbers.tolist(), starts.tolist(), strict=True):
            plain = self._kept.get(number) or self._unit(number)
            part = plain[start : start + size_bytes]
            if len(part) < size_bytes:  # the rest is in the next one
                part = self.read(number * UNIT_BYTES + start, size_bytes)
            parts.append(part)
        return b"".join(parts)

    def _unit(self, number: int) -> bytes:
        plain = self._kept.get(number)
        if plain is None:
            plain = self._units.unit(number)
            with self._lock:
                self._kept[number] = plain
                if len(self._kept) > _KEPT_UNITS:
                    del self._kept[next(iter(self._kept))]
        return plain

    def close(self) -> None:
        self._units.close()


def open_source(path: Path, key: LibraryKey | None) -> FileSource | UnitSource:
    """Raises OSError, UnitDamaged."""
    return FileSource(path) if key is None else UnitSource(path, key)


def role_of(path: Path) -> str:
    """What an encrypted segment says that it is: its final name in the library, which no later segment is given."""
    return f"segments/{path.name.removesuffix('.tmp')}"
