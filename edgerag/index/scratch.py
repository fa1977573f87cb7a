"""Folders beside a library in which something is made that nobody sees before it is whole.

Each is held by a lock while somebody works in it. What a killed process left goes with the next one, or by
:func:`remove_left`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

ENCRYPTING_PREFIX = ".encrypting-"  # beside a library: may hold what lay there before it was encrypted
_LOCK = ".lock"


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A private folder in ``parent`` that goes again; those that killed processes left go now."""
    remove_left(parent, prefix)
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    descriptor = os.open(scratch / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield scratch
    finally:
        os.close(descriptor)
        _remove(scratch)  # what cannot be deleted now goes with the next one


def remove_left(parent: Path, prefix: str) -> None:
    """Removes the folders of that prefix that nobody holds."""
    for left in parent.glob(f"{prefix}*"):
        _remove_if_left(left)


def _remove_if_left(folder: Path) -> None:
    """Its lock is held as long as somebody is at work in it."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # being made just now, or not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    """The lock goes last: a folder without one is taken for somebody else's, and would stay for ever."""
    for entry in folder.iterdir():
        if entry.name != _LOCK:
            shutil.rmtree(entry, ignore_errors=True)
            with contextlib.suppress(OSError):  # it was a folder, or cannot be deleted now
                entry.unlink()
    if [entry.name for entry in folder.iterdir()] == [_LOCK]:
        shutil.rmtree(folder, ignore_errors=True)
