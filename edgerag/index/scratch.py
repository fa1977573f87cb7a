"""Folders beside a library in which something is made that nobody sees before it is whole.

Each is held by a lock while somebody works in it. What a killed process left goes with the next one, or by
:func:`remove_left`. Such a folder gets its lock while the folder around it is held, so that an empty one that is found
while that is held was left.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ENCRYPTING_PREFIX = ".encrypting-"  # beside a library: may hold what lay there before it was encrypted
ARRIVING_PREFIX = ".arriving-"  # beside the libraries: one that is imported
_OWN_PREFIXES = (ENCRYPTING_PREFIX, ARRIVING_PREFIX)  # nobody else calls a folder so
_LOCK = ".lock"


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A private folder in ``parent`` that goes again; those that killed processes left go now."""
    remove_left(parent, prefix)
    scratch, descriptor = _made(parent, prefix)
    try:
        yield scratch
    finally:
        os.close(descriptor)
        _remove(scratch)  # what cannot be deleted now goes with the next one


def remove_left(parent: Path, prefix: str) -> None:
    """Removes the folders of that prefix that nobody holds, as far as they can be deleted."""
    left = list(parent.glob(f"{glob.escape(prefix)}*"))
    for folder in left:
        _remove_if_left(folder)
    if prefix in _OWN_PREFIXES and any(folder.is_dir() for folder in left):
        _remove_empty(parent, left)


def _made(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and its lock, held. Raises OSError."""
    around = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # where folders cannot be held, none that is empty is taken for left
            fcntl.flock(around, fcntl.LOCK_SH)
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            descriptor = os.open(scratch / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            scratch.rmdir()
            raise
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return scratch, descriptor
    finally:
        os.close(around)


def _remove_empty(parent: Path, folders: Sequence[Path]) -> None:
    """Those whose maker was killed before it had made their lock."""
    around = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(around, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for folder in folders:
            with contextlib.suppress(OSError):  # it is not empty, or went meanwhile
                folder.rmdir()
    except OSError:
        return  # somebody makes one just now: the next one looks again
    finally:
        os.close(around)


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
