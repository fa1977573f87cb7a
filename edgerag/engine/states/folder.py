"""What lies in a folder of states: ``FOLDER/SCOPE/NAME.kv``, or ``NAME.old`` once deprecated."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgerag.engine.states.key import StateKey, is_name, is_scope

LIVE, DEPRECATED = ".kv", ".old"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as a look into the folder shows it."""

    path: str
    name: str
    scope: str
    inode: int
    size_bytes: int
    time_s: float
    deprecated: bool


def path_of(folder: Path, key: StateKey, *, deprecated: bool = False) -> Path:
    return folder / key.scope / (key.name + (DEPRECATED if deprecated else LIVE))


def scopes(folder: Path) -> list[Path]:
    """The folders of the scopes; none where there is no folder yet. Raises OSError."""
    try:
        with os.scandir(folder) as found:
            names = sorted(each.name for each in found if is_scope(each.name) and each.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names]


def entries(folder: Path) -> Iterator[Entry]:
    """Everything that has the name of a state's file, whatever it is. Raises OSError."""
    for scope in scopes(folder):
        try:
            with os.scandir(scope) as found:
                files = list(found)
        except FileNotFoundError:  # empty, and removed by another process
            continue
        for file in files:
            name, ending = os.path.splitext(file.name)  # noqa: PTH122 - thousands of names, and Paths are slow
            if ending not in (LIVE, DEPRECATED) or not is_name(name):
                continue
            try:
                status = file.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield Entry(
                path=file.path,
                name=name,
                scope=scope.name,
                inode=status.st_ino,
                size_bytes=status.st_size,
                time_s=status.st_mtime,
                deprecated=ending == DEPRECATED,
            )


def make_private(folder: Path) -> None:
    """Makes a folder that nobody else may look into. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
