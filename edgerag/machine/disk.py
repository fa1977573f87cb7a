"""What every writer needs of the disk: renames that stay, and the error that says why a write was refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from edgerag.errors import StorageFull

# No space, no quota, a limit on the size of files: to the user they are one.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# A folder where a file belongs, or the other way round.
_IN_THE_WAY = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR})


def sync_folder(folder: Path) -> None:
    """Makes renames in ``folder`` survive a power loss. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(finished: Path, target: Path) -> None:
    """Renames a file that was written to its end, durably: after a power loss ``target`` is all of it, or what it was
    before. Raises OSError."""
    with finished.open("rb+") as stream:
        os.fsync(stream.fileno())
    finished.replace(target)
    sync_folder(target.parent)


def is_full(error: OSError) -> bool:
    """Whether a write was refused for want of room."""
    return error.errno in _FULL


def storage_error(error: OSError, path: Path) -> StorageFull:
    """The error of a write to ``path`` that the file system refused."""
    if error.errno in _IN_THE_WAY:
        where = error.filename if isinstance(error.filename, str | bytes) else path
        return StorageFull(
            f"Something stands in the place of {os.fsdecode(where)}: {error.strerror or error}.",
            remedy="Move it away, and run it again; nothing committed is lost.",
        )
    what = "The disk is full" if is_full(error) else "The file system refused"
    return StorageFull(
        f"{what} while working on {path}: {error.strerror or error}.",
        remedy="Free some space, or check that the folder can be written, and run it again; nothing committed is lost.",
    )
