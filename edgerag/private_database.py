"""Files and folders that are their owner's alone (0600, 0700): how they are made, databases of SQLite first of all.

Libraries, conversations and traces are kept so, each by its own owner of sqlite3. SQLite gives what lies beside a
database, such as its log, the mode of the database. What is there already keeps its mode, but for conversations and
traces: whoever opened a library to others meant it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from urllib.parse import quote


def make_private(path: Path) -> bool:
    """Makes the file, or takes it from everybody but its owner; False for one that is there and can only be read.
    Raises OSError."""
    try:
        make_private_folders(path.parent)
        if not path.exists():
            with contextlib.suppress(FileExistsError):  # just now
                os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        elif not os.access(path, os.W_OK):  # to open it would drop the locks that SQLite may hold of it (beside_sqlite)
            if os.access(path, os.R_OK) and path.stat().st_size:
                return False
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        path.chmod(0o600)
    except OSError as error:
        if error.errno == errno.EROFS and os.access(path, os.R_OK) and path.stat().st_size:
            return False
        raise
    return True


def make_private_folders(folder: Path) -> None:
    """Makes it where it is missing, and what is missing above it. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not missing and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def private_opener(path: str, flags: int) -> int:
    """For ``open``: a new file is its owner's alone."""
    return os.open(path, flags, 0o600)


def writing_uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}"


def reading_uri(path: Path, *, can_make_files: bool) -> str:
    """``can_make_files``: beside it, as SQLite does where somebody may be writing."""
    logs = [path.with_name(f"{path.name}-{kind}") for kind in ("wal", "journal")]
    # Without a log nobody is writing, and SQLite need not make files to read it.
    is_at_rest = not can_make_files and not any(log.exists() and log.stat().st_size for log in logs)
    return f"{writing_uri(path)}?mode=ro{'&immutable=1' if is_at_rest else ''}"
