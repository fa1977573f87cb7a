"""A new file that is there as a whole or not at all, and replaces nothing."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from edgerag.machine.disk import sync_folder

# How file systems without hard links refuse one.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})


def put_new(target: Path, content: bytes) -> None:
    """Makes the new file ``target``, its owner's alone: after whatever happens it is all of ``content``, or not there.
    Raises FileExistsError, OSError."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}-") as unfinished:
        unfinished.write(content)
        unfinished.flush()
        os.fsync(unfinished.fileno())
        try:
            os.link(unfinished.name, target)  # a rename would replace what is there
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _copy_new(target, content)
    sync_folder(target.parent)


def _copy_new(target: Path, content: bytes) -> None:
    """Where a file can have one name only (FAT, some shares)."""
    with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        try:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            target.unlink(missing_ok=True)  # ours: there was none before
            raise
