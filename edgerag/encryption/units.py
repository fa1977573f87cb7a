"""Files in units that are encrypted and authenticated one by one, so that any part of one is read without the rest.

    header (64 bytes) | unit 0 | unit 1 | ... | last unit

A unit is 4 KiB of plaintext, the last one less, encrypted by AES-256-GCM (NIST SP 800-38D): as many bytes of
ciphertext and a tag of 16. The key is derived from the library's master key, a random salt in the header and the *role*
of the file, such as ``segments/00000001.hnsw``; the nonce is the number of the unit, and whether it is the last one. So
a unit that was changed, moved, taken from another file, from another name or from another library does not open, nor
does a file that was cut off or made longer. A key encrypts one file, and each number in it once. docs/index-format.md
has it byte by byte.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from edgerag.encryption.keys import SALT_BYTES, LibraryKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# A page of a segment, in which its rows are packed: a search reads dozens of single rows, each out of one unit. The tag
# is a 256th of it.
UNIT_BYTES = 4_096
TAG_BYTES = 16
MAGIC = b"\x89ERENC\r\n"
VERSION = 1
_HEADER = struct.Struct(f"<8sII{SALT_BYTES}s16x")
HEADER_BYTES = _HEADER.size
_STORED_BYTES = UNIT_BYTES + TAG_BYTES
_MOST_AT_ONCE = 256  # units read by one call: a megabyte


class UnitDamaged(Exception):
    """A unit is not what was written by this key; never reaches the user as it is: who reads the file says what was in
    it. ``number`` is -1 for the file as a whole."""

    def __init__(self, path: Path, number: int, what: str) -> None:
        super().__init__(f"{path} {what}")
        self.path, self.number, self.what = path, number, what


def is_unit_file(path: Path) -> bool:
    """Whether it begins as an encrypted file does; False for one that cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def stored_bytes(plain_bytes: int) -> int:
    """How long the file of so many bytes of plaintext is."""
    return HEADER_BYTES + plain_bytes + TAG_BYTES * _unit_count(plain_bytes)


def _unit_count(plain_bytes: int) -> int:
    return max(1, -(-plain_bytes // UNIT_BYTES))


def _cipher(key: LibraryKey, role: str, salt: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key.for_file(role, salt))


# The nonce of a unit: its number, and whether it is the last of the file.
_NONCE = struct.Struct("<QB3x")


class UnitWriter:
    """Writes a file from its beginning to its end; the first ``head_bytes`` of it may be written again before the end.
    Use it as a context manager: the file is whole when :meth:`finish` returned."""

    def __init__(self, path: Path, key: LibraryKey, role: str, *, head_bytes: int = 0) -> None:
        """Raises OSError."""
        self._salt = os.urandom(SALT_BYTES)
        self._header = _HEADER.pack(MAGIC, VERSION, UNIT_BYTES, self._salt)
        self._cipher = _cipher(key, role, self._salt)
        self._head = bytearray()  # whole units that are not written yet, because they may change
        self._head_units = -(-head_bytes // UNIT_BYTES)
        self._waiting = bytearray()
        self._number = 0
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._file.write(self._header)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Raises OSError."""
        self._waiting += data
        view = memoryview(self._waiting)
        done = 0
        # The last unit waits: it is encrypted as such.
        while len(view) - done > UNIT_BYTES:
            self._take(bytes(view[done : done + UNIT_BYTES]), is_last=False)
            done += UNIT_BYTES
        view.release()
        del self._waiting[:done]

    def rewrite_head(self, data: bytes) -> None:
        """The first bytes of the file. Raises ValueError for more than were announced, or written."""
        held = len(self._head) + (len(self._waiting) if self._number <= self._head_units else 0)
        if len(data) > held:
            raise ValueError(f"{len(data)} bytes at the beginning of a file whose first {held} may change")
        inside = data[: len(self._head)]
        self._head[: len(inside)] = inside
        self._waiting[: len(data) - len(inside)] = data[len(inside) :]

    def finish(self) -> None:
        """Writes what is left; the file is on the disk when this returns. Raises OSError."""
        self._take(bytes(self._waiting), is_last=True)
        self._waiting.clear()
        if self._head:
            self._file.seek(HEADER_BYTES)
            for number in range(len(self._head) // UNIT_BYTES):
                plain = bytes(self._head[number * UNIT_BYTES : (number + 1) * UNIT_BYTES])
                self._file.write(self._encrypted(plain, number, is_last=False))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _take(self, plain: bytes, *, is_last: bool) -> None:
        number, self._number = self._number, self._number + 1
        if number < self._head_units and not is_last:
            self._head += plain
            self._file.write(bytes(_STORED_BYTES))
        else:
            self._file.write(self._encrypted(plain, number, is_last=is_last))

    def _encrypted(self, plain: bytes, number: int, *, is_last: bool) -> bytes:
        return self._cipher.encrypt(_NONCE.pack(number, is_last), plain, self._header)


class UnitReader:
    """An open file. For any thread; reads what is asked for and keeps nothing."""

    def __init__(self, path: Path, key: LibraryKey, role: str, *, flags: int = 0) -> None:
        """Raises UnitDamaged where it was not written by this key under this role, or not to its end, OSError.
        ``flags``: more of those that ``os.open`` takes."""
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            self._begin(key, role)
        except BaseException:
            os.close(self.descriptor)
            self.descriptor = -1
            raise

    def _begin(self, key: LibraryKey, role: str) -> None:
        from cryptography.exceptions import InvalidTag

        self._invalid = InvalidTag
        stored = os.fstat(self.descriptor).st_size
        raw = os.pread(self.descriptor, HEADER_BYTES, 0)
        if len(raw) < HEADER_BYTES or not raw.startswith(MAGIC):
            raise UnitDamaged(self.path, -1, "is no encrypted file of this library")
        _, version, unit_bytes, salt = _HEADER.unpack(raw)
        if (version, unit_bytes) != (VERSION, UNIT_BYTES):
            raise UnitDamaged(self.path, -1, f"has the unknown version {version} of encrypted files")
        self._header = raw
        self._cipher = _cipher(key, role, salt)
        whole, rest = divmod(stored - HEADER_BYTES, _STORED_BYTES)
        self.unit_count = whole + (rest > 0)
        self.size_bytes = stored - HEADER_BYTES - TAG_BYTES * self.unit_count
        if not self.unit_count or (rest and rest < TAG_BYTES):
            raise UnitDamaged(self.path, -1, "is cut short")
        self.unit(self.unit_count - 1)  # it says that it is the last: the length is right

    def unit(self, number: int) -> bytes:
        """The plaintext of one unit. Raises UnitDamaged, OSError."""
        position = HEADER_BYTES + number * _STORED_BYTES
        return self._opened(os.pread(self.descriptor, _STORED_BYTES, position), number)

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fills ``target`` with the plaintext from ``offset`` on. Raises UnitDamaged, OSError, ValueError for more than
        there is."""
        if offset < 0 or offset + len(target) > self.size_bytes:
            raise ValueError(f"bytes {offset} to {offset + len(target)} of a file of {self.size_bytes}")
        number, done = offset // UNIT_BYTES, 0
        skipped = offset - number * UNIT_BYTES
        last = (offset + max(1, len(target)) - 1) // UNIT_BYTES
        while done < len(target):
            count = min(_MOST_AT_ONCE, last - number + 1)
            raw = memoryview(os.pread(self.descriptor, count * _STORED_BYTES, HEADER_BYTES + number * _STORED_BYTES))
            for place in range(count):
                plain = self._opened(raw[place * _STORED_BYTES : (place + 1) * _STORED_BYTES], number + place)
                part = memoryview(plain)[skipped : skipped + len(target) - done]
                target[done : done + len(part)] = part
                done += len(part)
                skipped = 0
            number += count

    def _opened(self, stored: bytes | memoryview, number: int) -> bytes:
        if len(stored) < TAG_BYTES:
            raise UnitDamaged(self.path, number, "is cut short")
        try:
            return self._cipher.decrypt(_NONCE.pack(number, number == self.unit_count - 1), stored, self._header)
        except self._invalid:
            raise UnitDamaged(
                self.path, number, f"is damaged or not of this library (unit {number} does not open with its key)"
            ) from None

    def close(self) -> None:
        """Closing twice is nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def copy_units(
    source: Path,
    source_role: str,
    target: Path,
    target_role: str,
    *,
    source_key: LibraryKey | None,
    target_key: LibraryKey | None,
) -> None:
    """Writes a file anew under another key or role; None for a plain one. ``target`` is on the disk when this returns.
    Raises UnitDamaged, OSError."""
    with ExitStack() as stack:
        pieces = stack.enter_context(_pieces(source, source_role, source_key))
        if target_key is not None:
            writer = stack.enter_context(UnitWriter(target, target_key, target_role))
            for piece in pieces:
                writer.write(piece)
            writer.finish()
            return
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        stream = stack.enter_context(os.fdopen(descriptor, "wb"))
        for piece in pieces:
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _pieces(path: Path, role: str, key: LibraryKey | None) -> Iterator[Iterator[bytes]]:
    """The plaintext of a file from its beginning to its end."""
    if key is None:
        with path.open("rb") as stream:
            yield iter(lambda: stream.read(UNIT_BYTES * _MOST_AT_ONCE), b"")
        return
    with closing(UnitReader(path, key, role)) as reader:
        yield (reader.unit(number) for number in range(reader.unit_count))
