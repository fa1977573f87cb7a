"""How processes that share a folder of states learn that states were dropped.

A file holds a random number that every drop replaces. A process that finds another number than it knew lets go of
all that it holds in memory, and a state computed before the change is not kept: it may be of a document that is gone.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

_NUMBER_BYTES = 16
_NOTHING_DROPPED = bytes(_NUMBER_BYTES)


class DropNotice:
    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """Makes the file, so that a drop finds room for its number on a full disk too. Raises OSError."""
        descriptor = self._open(os.O_RDWR | os.O_CREAT)
        try:
            if not os.fstat(descriptor).st_size:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not os.pread(descriptor, 1, 0):
                    os.pwrite(descriptor, _NOTHING_DROPPED, 0)
        finally:
            os.close(descriptor)

    def read(self) -> bytes:
        """The number; b"" where nothing was dropped yet."""
        try:
            descriptor = self._open(os.O_RDONLY)
        except OSError:  # not there, or something else is in its place
            return b""
        try:
            number = os.read(descriptor, _NUMBER_BYTES)
            return b"" if number == _NOTHING_DROPPED else number
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def change(self) -> tuple[bytes, bytes]:
        """Announces a drop; the numbers before and after. Raises OSError."""
        descriptor = self._open(os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # two that drop at once must see each other's number
            before = os.pread(descriptor, _NUMBER_BYTES, 0)
            if before == _NOTHING_DROPPED:
                before = b""
            after = secrets.token_bytes(_NUMBER_BYTES)
            os.pwrite(descriptor, after, 0)
            return before, after
        finally:
            os.close(descriptor)

    def _open(self, flags: int) -> int:
        # Not waiting for the writer of a named pipe, should somebody have put one here.
        return os.open(self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
