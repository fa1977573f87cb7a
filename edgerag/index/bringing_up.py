"""A library of an older version is brought to the newest: checked before, kept beside, checked after.

A step of the schema gives rows checksums, and reads texts to make them: of a damaged library it would make damage look
right. So nothing is changed in one that is not whole. Then its database is copied beside itself, as
``library.sqlite.vN``, durably; the steps run, each one transaction; and when the result is whole the copy goes. Stopped
anywhere, the library is whole, of the old version, the new one, or one between them that the next writer takes up from;
the copy is there until it has. If the result is not whole, the library is made again what the copy holds.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from edgerag.encryption.database import connect
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged
from edgerag.index import migrations, wholeness
from edgerag.machine.disk import put_in_place, sync_folder

_KEPT = re.compile(r"\.v([0-9]+)(\.tmp)?")  # behind the name of the database


def check(db: sqlite3.Connection, path: Path, version: int, *, is_copy: bool = False) -> None:
    """Raises LibraryDamaged for a database that no step of the schema may be made of, sqlite3.Error. Of a private copy,
    which is made for each command, structures alone are looked at: texts have sums of their own, and are compared when
    they are read; no step changes words."""
    if faults := wholeness.structure_damage(db) if is_copy else wholeness.damage(db):
        raise LibraryDamaged(
            f"{path} has the older version {version} and is damaged, so that it was not brought up:"
            f" {'; '.join(faults[:3])}.",
            remedy=REPAIR_LIBRARY,
        )


def bring_up(db: sqlite3.Connection, path: Path, *, steps: Sequence[str], key: LibraryKey | None = None) -> None:
    """Runs the steps that are missing. ``db`` writes to ``path``, holds nothing open, and was checked. ``key``: of an
    encrypted one, whose copy is encrypted, too.

    Raises LibraryDamaged where the result is not whole; then it is as it was. sqlite3.Error, OSError: no room for the
    copy, above all.
    """
    version = migrations.version_of(db)
    if version < len(steps) and not _kept(path):
        _keep(db, path, version, key)
    migrations.migrate(db, where=str(path), steps=steps)
    _finish(db, path, key)


def _finish(db: sqlite3.Connection, path: Path, key: LibraryKey | None) -> None:
    """Where a copy is kept: looks at what was made of it, and lets go of the copy. Raises as :func:`bring_up`."""
    copies = _kept(path)
    if copies and (faults := wholeness.damage(db)):
        oldest = copies[0]
        with contextlib.closing(connect(oldest, key=key)) as before:
            before.backup(db)
        _discard(path)
        raise LibraryDamaged(
            f"{path} could not be brought up to a newer version: {'; '.join(faults[:3])}. It is as it was.",
            remedy=REPAIR_LIBRARY,
        )
    _discard(path)


def _keep(db: sqlite3.Connection, path: Path, version: int, key: LibraryKey | None) -> None:
    kept = path.with_name(f"{path.name}.v{version}")
    unfinished = kept.with_name(f"{kept.name}.tmp")
    try:
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        with contextlib.closing(connect(unfinished, key=key)) as copy:
            # It is renamed when it is whole: no journal is needed, and nobody else sees it.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        put_in_place(unfinished, kept)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _kept(path: Path) -> list[Path]:
    """Whole copies, that of the oldest version first."""
    return [copy for version, copy in sorted(_beside(path)) if version >= 0]


def _discard(path: Path) -> None:
    left = [copy for _, copy in _beside(path)]
    for copy in left:
        copy.unlink(missing_ok=True)
    if left:
        sync_folder(path.parent)


def _beside(path: Path) -> list[tuple[int, Path]]:
    """(version, copy), -1 for one that was never finished."""
    found = []
    for copy in path.parent.glob(f"{path.name}.v*"):
        match = _KEPT.fullmatch(copy.name.removeprefix(path.name))
        if match and copy.is_file():
            found.append((-1 if match[2] else int(match[1]), copy))
    return found
