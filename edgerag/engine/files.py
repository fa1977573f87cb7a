"""Files that are either whole or not there: checksums, atomic writes, and copies."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from edgerag.errors import ModelDamaged, StorageFull
from edgerag.machine.disk import put_in_place, storage_error


def printable(text: str) -> str:
    """``text`` from a foreign file as it may be shown: no terminal escapes, no line breaks."""
    return "".join(character if character.isprintable() else "?" for character in text)


def sha256_of(file: Path) -> str:
    """Hex digest of the whole file. Raises ModelDamaged when it cannot be read to its end."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelDamaged(f"{file} cannot be read: {error.strerror or error}.") from error


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Gives a temporary path beside ``target``; what is written there becomes ``target`` when the block
    ends well, durably and at once, and is removed when it does not. Raises StorageFull."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        put_in_place(temporary, target)
    except OSError as error:
        raise storage_error(error, target) from error
    finally:
        temporary.unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copies durably; the target appears when it is whole. Raises StorageFull before it begins to
    write what cannot fit."""
    free = shutil.disk_usage(target.parent).free
    size = source.stat().st_size
    if size > free:
        raise StorageFull(
            f"{source.name} needs {size / 1e6:,.0f} MB in {target.parent}, where {free / 1e6:,.0f} MB are free.",
            remedy="Make room and try again.",
        )
    with whole_file(target) as temporary:
        shutil.copyfile(source, temporary)


def move_file(source: Path, target: Path) -> None:
    """Moves durably within one file system. Raises StorageFull."""
    try:
        put_in_place(source, target)
    except OSError as error:
        raise storage_error(error, target) from error


def remove_partial(folder: Path) -> None:
    """Removes what interrupted writers left behind: each carries the number of its process."""
    for partial in folder.glob(".*.partial"):
        number = partial.name.split(".")[-2]
        if number.isdigit() and not _is_running(int(number)):
            partial.unlink(missing_ok=True)  # another process may tidy at the same time


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it belongs to someone else
    return True
