"""One writer per library, across processes: an flock on a file beside the database.

The kernel lets go of it when the process ends, however it ends, so there is no stale lock. Where the whole folder was
exchanged for another while somebody waited to open the file (encrypting.py), the lock is taken in the new one.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Literal

from edgerag.errors import LibraryBusy
from edgerag.machine.disk import storage_error

LOCK_NAME = "writer.lock"

LockedFor = Literal["writing", "encryption"]
_DOES: dict[LockedFor, str] = {
    "writing": "is writing to the library in",
    "encryption": "encrypts, decrypts or rekeys the library in",
}


class WriterLock:
    """Held from construction to :meth:`close`."""

    def __init__(self, folder: Path, *, purpose: LockedFor = "writing") -> None:
        """Raises LibraryBusy with the holder's process id and what it does, StorageFull if the file cannot be made."""
        path = folder / LOCK_NAME
        while True:
            self._descriptor = _held(path, folder)
            if _is_still_there(self._descriptor, path):
                break
            self.close()
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {purpose}".encode("ascii"), 0)
        except OSError as error:
            self.close()
            raise storage_error(error, path) from error

    def close(self) -> None:
        os.close(self._descriptor)


def _held(path: Path, folder: Path) -> int:
    """The descriptor of the file, locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        busy = _busy(os.pread(descriptor, 64, 0).decode("ascii", "replace"), folder)
        os.close(descriptor)
        raise busy from error
    except OSError as error:
        os.close(descriptor)
        raise storage_error(error, path) from error
    return descriptor


def _is_still_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _busy(holder: str, folder: Path) -> LibraryBusy:
    pid, _, purpose = holder.strip().partition(" ")
    does = next((words for name, words in _DOES.items() if name == purpose), _DOES["writing"])
    return LibraryBusy(
        f"Another process{f' (pid {pid})' if pid else ''} {does} {folder}.",
        remedy="Wait until it is done, or stop it.",
    )
