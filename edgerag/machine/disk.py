"""What every writer needs of the disk: renames that stay, and the error that says why a write was refused."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from edgerag.errors import StorageFull

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux
# No space, no quota, a limit on the size of files: to the user they are one.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# A folder where a file belongs, or the other way round.
_IN_THE_WAY = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


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
        remedy=f"{_way_out(error)}, and run it again; nothing committed is lost.",
    )


def _way_out(error: OSError) -> str:
    if is_full(error):
        return "Free some space"
    if error.errno == errno.ENOENT:
        return "Make the folder"
    if error.errno in _REFUSED:
        return "Make the folder writable for you"
    return "Check the disk, and that the folder can be written"


def exchange(first: Path, second: Path) -> None:
    """Each of two files or folders of one file system gets the name of the other, in one step that is never half done
    (renameat2, Linux 3.15). Raises OSError, also where the file system or the system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = [ctypes.c_char_p(os.fsencode(path.absolute())) for path in (first, second)]
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    for parent in {first.parent, second.parent}:
        sync_folder(parent)
