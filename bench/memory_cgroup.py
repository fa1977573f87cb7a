"""A memory limit that counts the page cache too: a control group, version 1 or 2, for processes of a bench.

Needs root. :func:`limited` raises Unavailable with the reason where the system does not let us.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_REMOVAL_TRIES, _REMOVAL_PAUSE_S = 50, 0.1  # the kernel lets go of an ended process a little later


class Unavailable(Exception):
    """No such group can be made here; the text says why."""


@dataclass(frozen=True, slots=True)
class Version:
    """Where the groups are and what the files in them are called."""

    mount: Path
    limit: str
    most_used: str
    cached: str  # the field of memory.stat that counts the page cache


_VERSIONS = (
    Version(_MOUNT / "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes", "cache"),
    Version(_MOUNT, "memory.max", "memory.peak", "file"),
    Version(_MOUNT / "unified", "memory.max", "memory.peak", "file"),
)


@dataclass(frozen=True, slots=True)
class Group:
    folder: Path
    version: Version

    @contextlib.contextmanager
    def inherited(self) -> Iterator[None]:
        """Processes started inside are in the group from their first page on; this process goes back afterwards."""
        before = _own_group(self.version)
        _join(self.folder)
        try:
            yield
        finally:
            _join(before)

    def usage(self) -> dict[str, int | None]:
        """The most that was used, and the page cache in it now, in bytes; None where this kernel does not tell."""
        stat = dict(line.split() for line in (self.folder / "memory.stat").read_text(encoding="ascii").splitlines())
        most = self.folder / self.version.most_used
        return {
            "group_most_bytes": int(most.read_text(encoding="ascii")) if most.exists() else None,
            "group_page_cache_bytes": int(stat[self.version.cached]),
        }


@contextlib.contextmanager
def limited(limit_bytes: int) -> Iterator[Group]:
    """A group with that limit, removed when the block ends. Raises Unavailable."""
    version = _usable_version()
    folder = version.mount / f"edgerag-bench-{os.getpid()}"
    try:
        folder.mkdir(exist_ok=True)
        (folder / version.limit).write_text(str(limit_bytes), encoding="ascii")
    except OSError as error:
        raise Unavailable(f"{folder} cannot be set up: {error.strerror}; it needs root") from error
    try:
        yield Group(folder, version)
    finally:
        _remove(folder)


def drop_page_cache(file: Path) -> None:
    """Makes the kernel forget what it holds of ``file``, which nothing may have mapped meanwhile."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill_page_cache(file: Path) -> None:
    """Reads ``file`` through, so that the kernel holds it if it has the room."""
    with file.open("rb") as opened:
        while opened.read(2**22):
            continue


def _usable_version() -> Version:
    for version in _VERSIONS:
        if (version.mount / "memory.limit_in_bytes").exists():
            return version
        controllers, passed_on = version.mount / "cgroup.controllers", version.mount / "cgroup.subtree_control"
        if controllers.exists() and "memory" in controllers.read_text(encoding="ascii").split():
            try:
                if "memory" not in passed_on.read_text(encoding="ascii").split():
                    passed_on.write_text("+memory", encoding="ascii")
            except OSError as error:
                raise Unavailable(f"{passed_on} cannot be written: {error.strerror}; it needs root") from error
            return version
    raise Unavailable(f"no memory controller under {_MOUNT}")


def _own_group(version: Version) -> Path:
    """The folder of the group of this process."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, name = line.split(":", 2)
        if "memory" in controllers.split(",") or (not controllers and version.limit == "memory.max"):
            return version.mount / name.lstrip("/")
    raise Unavailable("/proc/self/cgroup names no memory group")


def _join(folder: Path) -> None:
    try:
        (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        raise Unavailable(f"{folder} cannot be joined: {error.strerror}; it needs root") from error


def _remove(folder: Path) -> None:
    for _ in range(_REMOVAL_TRIES):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(_REMOVAL_PAUSE_S)
        else:
            return
    print(f"{folder} could not be removed: a process is still in it")
