"""From the paths a user names to the files to read, and the reasons for those that are not.

Paths are the text that ``os.fsdecode`` gives: bytes that are not valid UTF-8 become lone surrogates,
which the store keeps byte for byte and JSON writes as escapes, so that every name survives.
Symbolic links inside a folder are followed only to files of the same folder that are not read already;
a link that the user names is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgerag.errors import UsageError

_KINDS = (
    (stat.S_ISFIFO, "It is a named pipe."),
    (stat.S_ISSOCK, "It is a socket."),
    (stat.S_ISCHR, "It is a device."),
    (stat.S_ISBLK, "It is a device."),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may hold a document."""

    path: str  # absolute, as found
    root: str  # the folder or file that was named
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that was found and is not read. ``trouble``: it should have been possible."""

    path: str
    reason: str
    trouble: bool


@dataclass(frozen=True, slots=True)
class Discovery:
    """What lies under the named paths; both lists sorted by path."""

    roots: tuple[str, ...]
    files: tuple[Candidate, ...]
    unread: tuple[Unread, ...]

    def covers(self, path: str) -> bool:
        """True for a path that is one of the named ones or lies under one."""
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in self.roots)


@dataclass(slots=True)
class _Found:
    files: dict[str, Candidate] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)  # (path, root) of links met in folders
    unread: dict[str, Unread] = field(default_factory=dict)

    def refuse(self, path: str, reason: str, *, trouble: bool = False) -> None:
        self.unread.setdefault(path, Unread(path, reason, trouble))


def discover(paths: Sequence[Path], *, own: Path) -> Discovery:
    """The candidate files under ``paths``, each once; ``own`` is the library's folder, which is left out.

    Raises UsageError for a path that does not exist.
    """
    found = _Found()
    roots: list[str] = []
    own_identity = _identity(own)
    own_path = os.path.realpath(own)
    for path in paths:
        root = os.path.abspath(path)  # noqa: PTH100 - Path.absolute() keeps "..", resolve() follows links
        if root in roots:
            continue
        roots.append(root)
        try:
            status = os.stat(root)  # noqa: PTH116 - a string with surrogates stays what it is
        except FileNotFoundError as error:
            raise UsageError(
                f"There is no file or folder {str(path)!r}.", remedy="Check the spelling and the working folder."
            ) from error
        except OSError as error:
            found.refuse(root, f"It cannot be opened: {os.strerror(error.errno or 0)}.", trouble=True)
            continue
        if _inside(os.path.realpath(root), own_path):
            found.refuse(root, "It belongs to the library itself.")
        elif stat.S_ISDIR(status.st_mode):
            _walk(root, found, own_identity)
        elif stat.S_ISREG(status.st_mode):
            found.files.setdefault(root, Candidate(root, root, status.st_size, status.st_mtime_ns))
        else:
            found.refuse(root, _kind(status.st_mode))
    _follow_links(found, own_path)
    return Discovery(
        roots=tuple(roots),
        files=tuple(sorted(found.files.values(), key=lambda candidate: candidate.path)),
        unread=tuple(sorted(found.unread.values(), key=lambda unread: unread.path)),
    )


def _walk(root: str, found: _Found, own_identity: tuple[int, int] | None) -> None:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(_entries(folder))
        except OSError as error:
            found.refuse(folder, f"The folder cannot be opened: {os.strerror(error.errno or 0)}.", trouble=True)
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_symlink():
                    found.links.append((entry.path, root))
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                if error.errno is not None and os.path.lexists(entry.path):
                    found.refuse(entry.path, f"It cannot be examined: {os.strerror(error.errno)}.", trouble=True)
                continue  # otherwise it was deleted between listing and looking
            if stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) != own_identity:
                    folders.append(entry.path)
            elif stat.S_ISREG(status.st_mode):
                found.files.setdefault(entry.path, Candidate(entry.path, root, status.st_size, status.st_mtime_ns))
            else:
                found.refuse(entry.path, _kind(status.st_mode))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


def _follow_links(found: _Found, own_path: str) -> None:
    """Takes links to files of the same root that are not candidates themselves (such as git-annex keeps)."""
    if not found.links:
        return
    taken = {os.path.realpath(path) for path in found.files} if found.links else set()
    for path, root in sorted(found.links):
        target = os.path.realpath(path)
        try:
            status = os.stat(target)  # noqa: PTH116 - see discover()
        except OSError:
            found.refuse(path, "It is a symbolic link to nothing that can be opened.")
            continue
        if not _inside(target, os.path.realpath(root)):
            found.refuse(path, "It is a symbolic link that leaves the folder.")
        elif target in taken or _inside(target, own_path):
            continue  # read in its own place
        elif stat.S_ISREG(status.st_mode):
            taken.add(target)
            found.files.setdefault(path, Candidate(path, root, status.st_size, status.st_mtime_ns))
        # A folder inside the root is walked where it stands.


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None  # not made yet
    return status.st_dev, status.st_ino


def _kind(mode: int) -> str:
    return next((reason for test, reason in _KINDS if test(mode)), "It is not a regular file.")
