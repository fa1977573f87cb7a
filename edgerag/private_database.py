"""A database of SQLite that is its owner's alone (0600): how its file is made, and how one is opened to be read.

Conversations and traces are kept so, each by its own owner of sqlite3. SQLite gives what lies beside a database, such
as its log, the mode of the database.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from urllib.parse import quote


def make_private(path: Path) -> bool:
    """Makes the file, or takes it from everybody but its owner; False for one that is there and can only be read.
    Raises OSError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES) and os.access(path, os.R_OK) and path.stat().st_size:
            return False
        raise
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return True


def writing_uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}"


def reading_uri(path: Path, *, can_make_files: bool) -> str:
    """``can_make_files``: beside it, as SQLite does where somebody may be writing."""
    logs = [path.with_name(f"{path.name}-{kind}") for kind in ("wal", "journal")]
    # Without a log nobody is writing, and SQLite need not make files to read it.
    is_at_rest = not can_make_files and not any(log.exists() and log.stat().st_size for log in logs)
    return f"{writing_uri(path)}?mode=ro{'&immutable=1' if is_at_rest else ''}"
