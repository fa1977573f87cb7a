"""What lies in the folder of a library: its own files, what it set aside, and what is somebody else's.

Whoever replaces the whole folder looks at every name in it first: a file that nobody carries over would be deleted
with the old one, and be missed later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from edgerag.encryption.key_record import FILE_NAME as KEY_NAME
from edgerag.errors import LibraryError
from edgerag.index import at_rest, bringing_up
from edgerag.index.lock import LOCK_NAME
from edgerag.index.right_of_way import LOCK_NAME as ASKING_NAME
from edgerag.index.segments import FOLDER_NAME as SEGMENTS
from edgerag.index.store import DATABASE_NAME

PRIVATE_FOLDER = "private"  # conversations and traces that belong to this library alone
STATES_FOLDER = "kv"  # what the model made of passages: it is made again

_LOGS = r"(-wal|-shm|-journal)?"  # what SQLite lays beside a database
_ANYTHING = r"(/.*)?"
_PLAIN_NAMES = (KEY_NAME, KEY_NAME + ".tmp", LOCK_NAME, ASKING_NAME, at_rest.NAME, at_rest.NAME + ".tmp", SEGMENTS)
# Of paths inside the folder. What a killed process left of something unfinished is ours, too.
_OURS = re.compile(
    "|".join(
        (
            *map(re.escape, _PLAIN_NAMES),
            re.escape(DATABASE_NAME) + _LOGS,
            r"\.repair" + _ANYTHING,
            re.escape(bringing_up.FOLDER_NAME) + _ANYTHING,
            PRIVATE_FOLDER,
            rf"{PRIVATE_FOLDER}/(threads|traces)\.sqlite(\.damaged)?{_LOGS}",
            rf"{PRIVATE_FOLDER}/\.new-[^/]+{_ANYTHING}",
            rf"{PRIVATE_FOLDER}/\.threads\.sqlite-[^/]+",
            STATES_FOLDER,
            rf"{STATES_FOLDER}/tokens\.sqlite{_LOGS}",
            rf"{STATES_FOLDER}/[0-9a-f]{{8,64}}(/[^/]+\.(kv|old|partial))?",
        )
    ),
    re.DOTALL,
)


def refuse_strangers(folder: Path, segments: frozenset[str]) -> None:
    """Raises LibraryError, with its name, for what is not the library's; ``segments``: the names of its own. OSError
    for a folder that cannot be looked into."""
    own = {f"{SEGMENTS}/{name}" for name in segments}
    for name in _names(folder):
        if name not in own and not _OURS.fullmatch(name):
            raise LibraryError(
                f"{folder} also holds {name!r}, which is not the library's.",
                remedy="Move it elsewhere: the whole folder is replaced.",
            )


def private_databases(folder: Path) -> tuple[list[Path], list[Path]]:
    """(databases of conversations and traces in use, damaged ones that were set aside)."""
    private = folder / PRIVATE_FOLDER
    return sorted(private.glob("*.sqlite")), sorted(private.glob("*.sqlite.damaged"))


def _names(folder: Path) -> Iterator[str]:
    """Of all files and folders inside it, by path; links are not followed."""

    def refused(error: OSError) -> None:
        raise error

    for where, folders, files in os.walk(folder, onerror=refused):
        folders.sort()
        for name in sorted(folders + files):
            yield (Path(where) / name).relative_to(folder).as_posix()
