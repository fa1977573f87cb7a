"""A database's file, read beside SQLite.

Locks of POSIX belong to the process: closing any descriptor of a file drops all that SQLite holds of it, and the next
program that writes takes itself for the only one (sqlite.org/howtocorrupt.html, section 2.2). So what is opened here
stays open as long as there is such a file.
"""

from __future__ import annotations

import io
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def open_beside_sqlite(path: Path) -> io.BufferedReader:
    """For reading; a ``with`` leaves the descriptor open. Raises OSError."""
    return io.BufferedReader(_Reading(_held_of(path)))


@dataclass(slots=True, eq=False)
class _Held:
    descriptor: int
    readers: int = 0


_every_held: dict[tuple[int, int], list[_Held]] = {}  # by device and inode; two where the file was exchanged meanwhile
_lock = threading.Lock()


def _held_of(path: Path) -> _Held:
    with _lock:
        _let_go_of_deleted()
        stat = path.stat()
        held = next(iter(_every_held.get((stat.st_dev, stat.st_ino), ())), None)
        if held is None:
            held = _Held(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            stat = os.fstat(held.descriptor)
            _every_held.setdefault((stat.st_dev, stat.st_ino), []).append(held)
        held.readers += 1
        return held


def _let_go_of_deleted() -> None:
    for file, every in list(_every_held.items()):
        if not any(each.readers for each in every) and not os.fstat(every[0].descriptor).st_nlink:
            del _every_held[file]
            for each in every:
                os.close(each.descriptor)


class _Reading(io.RawIOBase):
    """With a place of its own, as others read the same descriptor."""

    def __init__(self, held: _Held) -> None:
        self._held = held
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self._held.descriptor).st_size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        data = os.pread(self._held.descriptor, memoryview(buffer).nbytes, self._at)
        memoryview(buffer)[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with _lock:
                self._held.readers -= 1
        super().close()
