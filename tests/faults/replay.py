"""What a disk may hold after a power loss, from the log of a writer's calls.

The model is the strictest that POSIX allows: what was written to a file is safe once that file was synced;
a name is safe once its folder was synced; everything else may be there, or not, or in part, in any
combination (:data:`VARIANTS`). A sync that failed drops what was to be synced for good. Names in one folder become safe
in order, as on any file system with a journal. Shared memory of SQLite's (``-shm``) is never there.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

_RECORD = struct.Struct("=IiIIIIQQ")
_OPS = ("open", "close", "write", "fsync", "rename", "unlink", "truncate", "mkdir", "rmdir", "allocate", "note")
_SECTOR = 512

Variant = Literal["lost", "names", "sized", "data", "torn", "last", "random", "all"]
# lost: nothing that was not synced is there.
# names: names are, data is not: the empty files after a rename that was not preceded by a sync.
# sized: names are, and files have their sizes, filled with zeros.
# data: data is there, names are not.
# torn: names are, of each write the first half.
# last: names are, of each file's writes the last one only.
# random: some names, some sectors.
VARIANTS: tuple[Variant, ...] = ("lost", "names", "sized", "data", "torn", "last", "random")


@dataclass(frozen=True, slots=True)
class Record:
    op: str
    fd: int
    number: int  # of the counted call
    flags: int
    path: str
    second: str
    offset: int
    data: bytes


def read_log(file: Path) -> Iterator[Record]:
    """The calls in order. A record cut off at the end (by a kill) raises ValueError: the shim writes them whole."""
    raw = file.read_bytes()
    at = 0
    while at < len(raw):
        op, fd, number, flags, path_bytes, second_bytes, offset, data_bytes = _RECORD.unpack_from(raw, at)
        at += _RECORD.size
        path = os.fsdecode(raw[at : at + path_bytes])
        at += path_bytes
        second = os.fsdecode(raw[at : at + second_bytes])
        at += second_bytes
        data = raw[at : at + data_bytes]
        at += data_bytes
        if at > len(raw):
            raise ValueError(f"{file} ends inside a record")
        yield Record(_OPS[op], fd, number, flags, path, second, offset, data)


@dataclass(slots=True)
class Change:
    """One change of a file's content; ``data`` None sets its size."""

    offset: int
    data: bytes | None

    def apply(self, content: bytearray) -> None:
        end = self.offset if self.data is None else self.offset + len(self.data)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        if self.data is None:
            del content[end:]
        else:
            content[self.offset : end] = self.data


@dataclass(slots=True)
class File:
    safe: bytearray = field(default_factory=bytearray)
    now: bytearray = field(default_factory=bytearray)  # as processes see it
    waiting: list[Change] = field(default_factory=list)  # not synced

    def change(self, change: Change) -> None:
        change.apply(self.now)
        self.waiting.append(change)

    def sync(self) -> None:
        for change in self.waiting:
            change.apply(self.safe)
        self.waiting.clear()


Names = dict[str, File | None]  # None is a folder
Renaming = tuple[str, str | None, File | None]  # name gone, name new (or None), what it names


class Disk:
    """The state of one folder tree, as it is seen and as it is safe."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: Names = {root: None}
        self._safe_names: Names = {root: None}
        self._waiting: list[tuple[str, Callable[[Names], None]]] = []  # folder, change of names; in order
        self._open: dict[int, File | None] = {}

    def apply(self, record: Record) -> None:
        """Follows one call."""
        _OF_OP[record.op](self, record)

    def _rename_in(self, path: str, change: Callable[[Names], None]) -> None:
        change(self._names)
        self._waiting.append((str(PurePosixPath(path).parent), change))

    def _opened(self, record: Record) -> None:
        if record.path not in self._names:
            new = File()
            self._rename_in(record.path, lambda names: names.__setitem__(record.path, new))
        file = self._names[record.path]
        self._open[record.fd] = file
        if file is not None and record.flags & os.O_TRUNC and file.now:
            file.change(Change(0, None))

    def _closed(self, record: Record) -> None:
        self._open.pop(record.fd, None)

    def _written(self, record: Record) -> None:
        self._file(record).change(Change(record.offset, record.data))

    def _truncated(self, record: Record) -> None:
        self._file(record).change(Change(record.offset, None))

    def _allocated(self, record: Record) -> None:
        if record.offset > len(self._file(record).now):
            self._truncated(record)

    def _file(self, record: Record) -> File:
        file = self._open[record.fd]
        assert file is not None, f"{record.op} of the folder {record.path}"
        return file

    def _synced(self, record: Record) -> None:
        file = self._open[record.fd]
        failed = record.flags == 1
        if file is not None:
            if failed:
                file.waiting.clear()
            file.sync()
            return
        for folder, change in self._waiting:
            if folder == record.path and not failed:
                change(self._safe_names)
        self._waiting = [waiting for waiting in self._waiting if waiting[0] != record.path]

    def _renamed(self, record: Record) -> None:
        def change(names: Names) -> None:
            if record.path in names:
                names[record.second] = names.pop(record.path)

        self._rename_in(record.second, change)

    def _removed(self, record: Record) -> None:
        self._rename_in(record.path, lambda names: names.pop(record.path, None))

    def _made(self, record: Record) -> None:
        self._rename_in(record.path, lambda names: names.__setitem__(record.path, None))

    def _noted(self, record: Record) -> None:
        if record.path == "process":  # another one goes on; what the last had open is closed
            self._open.clear()

    def contents(self, variant: Variant, *, seed: int = 0) -> dict[str, bytes | None]:
        """Paths below the root with their bytes; None for folders. ``all`` is what processes see."""
        chance = random.Random(seed)
        names = dict(self._safe_names)
        if variant not in ("lost", "data"):
            stopped: set[str] = set()
            for folder, change in self._waiting:
                if variant == "random" and chance.random() < 0.3:
                    stopped.add(folder)
                if folder not in stopped:
                    change(names)
        found: dict[str, bytes | None] = {}
        for path, file in sorted(names.items()):
            if path == self._root or path.endswith("-shm"):
                continue
            if str(PurePosixPath(path).parent) not in names:
                continue  # its folder is lost, and so it is
            relative = path[len(self._root) + 1 :]
            found[relative] = None if file is None else bytes(_content(file, variant, chance))
        return found


def _content(file: File, variant: Variant, chance: random.Random) -> bytearray:
    content = bytearray(file.safe)
    if variant in ("lost", "names"):
        return content
    if variant == "sized":
        Change(len(file.now), None).apply(content)
        return content
    waiting = file.waiting[-1:] if variant == "last" else file.waiting
    for change in waiting:
        if change.data is None:
            if variant != "random" or chance.random() < 0.5:
                change.apply(content)
        elif variant == "torn":
            Change(change.offset, change.data[: len(change.data) // 2]).apply(content)
        elif variant == "random":
            for start in range(0, len(change.data), _SECTOR):
                if chance.random() < 0.5:
                    Change(change.offset + start, change.data[start : start + _SECTOR]).apply(content)
        else:
            change.apply(content)
    return content


_OF_OP: dict[str, Callable[[Disk, Record], None]] = {
    "open": Disk._opened,
    "close": Disk._closed,
    "write": Disk._written,
    "fsync": Disk._synced,
    "rename": Disk._renamed,
    "unlink": Disk._removed,
    "rmdir": Disk._removed,
    "truncate": Disk._truncated,
    "mkdir": Disk._made,
    "allocate": Disk._allocated,
    "note": Disk._noted,
}


def write_out(contents: dict[str, bytes | None], folder: Path) -> None:
    """Makes the folder hold exactly that; it must be empty or missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in contents.items():
        target = folder / path
        if data is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(data)


def read_in(folder: Path) -> dict[str, bytes | None]:
    """What is there, in the shape of :meth:`Disk.contents`."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    }
