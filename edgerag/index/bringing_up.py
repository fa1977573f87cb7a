"""A library of an older version is brought to the newest: checked before, kept beside, checked after.

A step of the schema gives rows checksums, and reads texts to make them: of a damaged library it would make damage look
right. So nothing is changed in one that is not whole. Then its database is copied into ``.bringing-up`` beside it,
durably; the steps run, each one transaction; and when the result is whole the copy goes. Stopped anywhere, the library
is whole, of the old version, the new one, or one between them that the next writer takes up from; the copy is there
until it has. If the result is not whole, the library is made again what the copy holds.

A note beside the copy says of which state of the library it is and what its checksum is. Without a note of ours nothing
is ours: neither the folder nor any other file beside the library is taken for a copy, written to or deleted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from edgerag.encryption.database import connect
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged
from edgerag.index import migrations, wholeness
from edgerag.index.watched import Watched
from edgerag.machine.disk import put_in_place, sync_folder
from edgerag.private_database import private_opener, reading_uri
from edgerag.types import BringingUpStage

FOLDER_NAME = ".bringing-up"  # inside the library's folder
_COPY = "library.sqlite"
_NOTE = "note.json"
_FORMAT = "edgerag library before it is brought up"
_UNFINISHED = f"{_COPY}.tmp"
# What we make there. SQLite puts its log beside a copy that the disk had no room for.
_OURS = (*(f"{name}{end}" for name in (_COPY, _UNFINISHED) for end in ("", "-wal", "-shm", "-journal")), f"{_NOTE}.tmp")
_MOST_NOTE_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class _Note:
    """Of which state of a library the copy is."""

    version: int
    generation: str  # as in ``meta``: no step of the schema changes it, everybody else does
    documents: int
    sha256: str  # of the copy; "" until it is finished


def check(
    db: sqlite3.Connection, path: Path, version: int, *, is_copy: bool = False, watched: Watched | None = None
) -> None:
    """Raises LibraryDamaged for a database that no step of the schema may be made of, sqlite3.Error. Of a private copy,
    which is made for each command, structures alone are looked at: texts have sums of their own, and are compared when
    they are read; no step changes words. Raises what ``watched`` does."""
    faults = wholeness.structure_damage(db) if is_copy else _damage(db, watched or _unwatched(path), "checking")
    if faults:
        raise LibraryDamaged(
            f"{path} has the older version {version} and is damaged, so that it was not brought up:"
            f" {'; '.join(faults[:3])}.",
            remedy=REPAIR_LIBRARY,
        )


def _unwatched(path: Path) -> Watched:
    return Watched(path.parent.name, None)


def _damage(db: sqlite3.Connection, watched: Watched, stage: BringingUpStage) -> list[str]:
    """All that is looked at, told by the number of documents."""
    try:
        total = _document_count(db)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        total = 0  # what is wrong is found below
    watched.tell(stage, 0, total)
    with watched.statements(db):
        return wholeness.damage(db, looked_at=lambda number: watched.tell(stage, number, total))


def bring_up(
    db: sqlite3.Connection,
    path: Path,
    *,
    steps: Sequence[str],
    key: LibraryKey | None = None,
    watched: Watched | None = None,
) -> None:
    """Runs the steps that are missing. ``db`` writes to ``path``, holds nothing open, and was checked. ``key``: of an
    encrypted one, whose copy is encrypted, too.

    Raises LibraryDamaged where the result is not whole; then it is as it was. sqlite3.Error, OSError: no room for the
    copy, above all. Where ``watched`` raises something the next writer goes on.
    """
    watched = watched or _unwatched(path)
    version = migrations.version_of(db)
    if version < len(steps):
        note = _read_note(path)
        # One of this very version may be older than what was written to the library since.
        if note is None or not note.sha256 or note.version >= version or not _is_of(note, db):
            _keep(db, path, version, key, watched)
    for number in range(version + 1, len(steps) + 1):
        watched.tell("changing", number - version - 1, len(steps) - version)
        with watched.statements(db):
            migrations.migrate(db, where=str(path), steps=steps, until=number)
    migrations.migrate(db, where=str(path), steps=steps)  # what nobody brought up is refused
    _finish(db, path, key, watched)


def put_back(path: Path, *, key: LibraryKey | None = None) -> bool:
    """Makes a damaged database again what the copy beside it holds, where one is whole that was made of it. For the
    holder of the writer lock, with nothing open. Raises OSError."""
    note = _read_note(path)
    if note is None or not note.sha256:
        return False
    try:
        with contextlib.closing(connect(reading_uri(path, can_make_files=True), key=key, uri=True)) as damaged:
            if not _is_of(note, damaged):
                return False
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError):
        pass  # it does not say: damaged so far, while it was brought up
    copy = path.parent / FOLDER_NAME / _COPY
    if not _is_whole(copy, note, key):
        return False
    # A log that is left beside another database would be written into that.
    for ending in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    sync_folder(path.parent)
    copy.replace(path)
    sync_folder(path.parent)
    return True


def _is_of(note: _Note, db: sqlite3.Connection) -> bool:
    """Whether ``db`` is what was copied, or on its way from that to a newer version. Raises sqlite3.Error."""
    return migrations.version_of(db) >= note.version and _generation(db) == note.generation


def _generation(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return "" if row is None else str(row[0])


def _document_count(db: sqlite3.Connection) -> int:
    """Those whose record is there; one that was made anew around its text (reinstated.py) has no checksum of a file."""
    return int(db.execute("SELECT count(*) FROM documents NOT INDEXED WHERE content_sha256 <> ''").fetchone()[0])


def _finish(db: sqlite3.Connection, path: Path, key: LibraryKey | None, watched: Watched) -> None:
    """Where a copy is kept: looks at what was made of it, and lets go of the copy. Raises as :func:`bring_up`."""
    note = _read_note(path)
    if note is None:
        return
    is_made_of_it = _is_of(note, db)
    count = _document_count(db)
    if count < note.documents and not is_made_of_it:
        return  # of a library that was damaged, too: what it held is not here yet
    faults = _damage(db, watched, "checking again")
    if count < note.documents:
        faults.append(f"{count} documents in place of {note.documents}")
    if not faults:
        _discard(path)
        return
    if not is_made_of_it:
        return
    copy = path.parent / FOLDER_NAME / _COPY
    is_back = _is_whole(copy, note, key)
    if is_back:
        with contextlib.closing(connect(copy, key=key)) as before:
            before.backup(db)
        _discard(path)
    raise LibraryDamaged(
        f"{path} could not be brought up to a newer version: {'; '.join(faults[:3])}."
        f"{' It is as it was.' if is_back else ''}",
        remedy=REPAIR_LIBRARY,
    )


def _is_whole(copy: Path, note: _Note, key: LibraryKey | None) -> bool:
    """Whether it is what was copied, by its checksum and by all that is looked at before a library is brought up."""
    try:
        with copy.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != note.sha256:
                return False
    except OSError:
        return False
    with contextlib.closing(connect(copy, key=key)) as db:
        return migrations.version_of(db) == note.version and not wholeness.damage(db)


def _keep(db: sqlite3.Connection, path: Path, version: int, key: LibraryKey | None, watched: Watched) -> None:
    folder = path.parent / FOLDER_NAME
    note = _Note(version, _generation(db), _document_count(db), sha256="")
    _make_room(folder, documents=note.documents)
    unfinished = folder / _UNFINISHED
    try:
        _write_note(folder, note)
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        with contextlib.closing(connect(unfinished, key=key)) as copy:
            # It is renamed when it is whole: no journal is needed, and nobody else sees it.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            watched.copy(db, copy, "keeping a copy")
            copy.execute("PRAGMA journal_mode = DELETE")
        put_in_place(unfinished, folder / _COPY)
        with (folder / _COPY).open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        _write_note(folder, _Note(note.version, note.generation, note.documents, sha256=sha256))
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            _discard(path)
        raise


def _make_room(folder: Path, *, documents: int) -> None:
    """The folder, empty. One whose copy holds more than these documents is moved aside. Raises OSError where something
    stands there that is not ours."""
    if (folder.exists() or folder.is_symlink()) and not _is_ours(folder):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
    note = _read_note(folder.parent / _COPY)
    if note is not None and note.sha256 and note.documents > documents:
        numbers = itertools.count(1)
        folder.rename(next(place for n in numbers if not (place := Path(f"{folder}.aside-{n}")).exists()))
    _discard(folder.parent / _COPY)
    folder.mkdir(mode=0o700, exist_ok=True)


def _is_ours(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    # Killed before there was a note.
    return _read_note(folder.parent / _COPY) is not None or {each.name for each in folder.iterdir()} <= {f"{_NOTE}.tmp"}


def _read_note(path: Path) -> _Note | None:
    """None where there is none that we wrote."""
    file = path.parent / FOLDER_NAME / _NOTE
    try:
        if file.parent.is_symlink() or file.stat().st_size > _MOST_NOTE_BYTES:
            return None
        value = json.loads(file.read_bytes())
        if value.pop("format") != _FORMAT:
            return None
        note = _Note(**value)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    numbers, texts = (note.version, note.documents), (note.generation, note.sha256)
    return note if all(isinstance(n, int) for n in numbers) and all(isinstance(t, str) for t in texts) else None


def _write_note(folder: Path, note: _Note) -> None:
    unfinished = folder / f"{_NOTE}.tmp"
    with open(unfinished, "w", encoding="utf-8", opener=private_opener) as stream:
        json.dump({"format": _FORMAT, **asdict(note)}, stream)
    put_in_place(unfinished, folder / _NOTE)


def _discard(path: Path) -> None:
    """The note last: what lies there without one is not ours. Files of others stay, and the folder with them."""
    folder = path.parent / FOLDER_NAME
    if not folder.is_dir() or not _is_ours(folder):
        return
    for name in (*_OURS, _NOTE):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    sync_folder(path.parent)
