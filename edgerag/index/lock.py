"""One writer per library, across processes: an flock on a file beside the database.

The kernel lets go of it when the process ends, however it ends, so there is no stale lock.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from edgerag.errors import LibraryBusy
from edgerag.machine.disk import storage_error

LOCK_NAME = "writer.lock"


class WriterLock:
    """Held from construction to :meth:`close`."""

    def __init__(self, folder: Path) -> None:
        """Raises LibraryBusy with the holder's process id, StorageFull if the file cannot be made."""
        path = folder / LOCK_NAME
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise LibraryBusy(
                f"Another process{f' (pid {holder})' if holder else ''} is writing to the library in {folder}.",
                remedy="Wait until it is done, or stop it.",
            ) from error
        except OSError as error:
            os.close(self._descriptor)
            raise storage_error(error, path) from error
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode("ascii"), 0)
        except OSError as error:
            self.close()
            raise storage_error(error, path) from error

    def close(self) -> None:
        os.close(self._descriptor)
