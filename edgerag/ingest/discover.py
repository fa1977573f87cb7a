"""From the paths a user names to the files to read, and the reasons for those that are not.

Paths are the text that ``os.fsdecode`` gives: bytes that are not valid UTF-8 become lone surrogates,
which the store keeps byte for byte and JSON writes as escapes, so that every name survives.
Symbolic links inside a folder are followed only to files of the same folder that are not read already;
a link that the user names is followed. What the rules of ignore.py leave out is not entered.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgerag.errors import UsageError
from edgerag.ingest.ignore import NOT_INCLUDED, Scope, Selection, scope_of
from edgerag.ingest.parse.dates import file_time_ns

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
    looked_at: frozenset[str]  # the roots, or those changed paths under them that were asked for
    left_out: Mapping[str, str]  # files and folders that a rule leaves out, and the reason
    folders: tuple[str, ...]  # whose entries were looked at

    def covers(self, path: str) -> bool:
        """True for a path that was looked at, or that lies under one."""
        return any(place in self.looked_at for place in _upwards(path))

    def reason_against(self, path: str, *, root: str) -> str:
        """Why a document of the library is not among the files although it may be there; "" where no rule says so.

        ``root`` is what was named when it was read: a rule that leaves out all of it holds for others, not for it.
        What no pattern of ``ingest.include`` names is not looked at this time, and stays.
        """
        for place in _upwards(path):
            if place == root:
                break
            reason = self.left_out.get(place, "")
            if reason:
                return "" if reason == NOT_INCLUDED else reason
        return ""

    def leaves_out(self, path: str) -> bool:
        """True for what a rule leaves out, and for all that lies in it."""
        return any(place in self.left_out for place in _upwards(path))

    def emptied_roots(self) -> tuple[str, ...]:
        """Named folders that were looked at whole and in which there is no file at all, not even one that a rule
        leaves out: as where a disk is not mounted."""
        return tuple(
            root
            for root in self.roots
            if root in self.looked_at and root in self.folders and not self.has_files_in(root)
        )

    def has_files_in(self, folder: str) -> bool:
        """Whether a file was found there, at any depth, be it one that a rule leaves out."""
        below = folder.rstrip("/") + "/"
        at = bisect_left(self.files, below, key=lambda candidate: candidate.path)
        return (at < len(self.files) and self.files[at].path.startswith(below)) or any(
            _inside(place, folder) for place in self.left_out
        )

    def root_stands(self, path: str) -> bool:
        """Whether what was named is still there: when a disk is unplugged, nothing on it was deleted."""
        return any(os.path.lexists(root) for root in self.roots if _inside(path, root))


def _upwards(path: str) -> Iterator[str]:
    """The path and every folder above it."""
    while path != "/" and path:
        yield path
        path = path[: path.rfind("/")]
    yield "/"


@dataclass(slots=True)
class _Found:
    own_path: str  # the library's folder
    own_identity: tuple[int, int] | None
    withheld: frozenset[str]  # files of this program's own
    files: dict[str, Candidate] = field(default_factory=dict)
    links: list[tuple[str, Scope]] = field(default_factory=list)  # met in folders
    unread: dict[str, Unread] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def refuse(self, path: str, reason: str, *, trouble: bool = False) -> None:
        self.unread.setdefault(path, Unread(path, reason, trouble))

    def leaves_out(self, path: str, name: str, scope: Scope, *, is_folder: bool) -> bool:
        reason = scope.reason_against(path, name, is_folder=is_folder)
        if path in self.withheld:
            reason = "It is a report of this program."
        if reason:
            self.left_out[path] = reason
        return bool(reason)


def discover(
    paths: Sequence[Path],
    *,
    own: Path,
    selection: Selection = Selection(),  # noqa: B008 - frozen
    changed: Collection[str] | None = None,
    withheld: Collection[str] = (),
) -> Discovery:
    """The candidate files under ``paths``, each once, that ``selection`` and the ignore files let through.

    ``own`` is the library's folder, which is left out, as are the absolute paths ``withheld``. A file that is named
    itself is read whatever the rules. With ``changed`` only these absolute paths are looked at, as far as they lie
    under ``paths``; one of ``paths`` that is gone is then passed over.

    Raises UsageError for a path that does not exist.
    """
    found = _Found(os.path.realpath(own), _identity(own), frozenset(withheld))
    roots: list[str] = []
    looked_at: set[str] = set()
    for path in paths:
        root = os.path.abspath(path)  # noqa: PTH100 - Path.absolute() keeps "..", resolve() follows links
        if root in roots:
            continue
        try:
            status = os.stat(root)  # noqa: PTH116 - a string with surrogates stays what it is
        except FileNotFoundError as error:
            if changed is not None:
                continue
            raise UsageError(
                f"There is no file or folder {str(path)!r}.", remedy="Check the spelling and the working folder."
            ) from error
        except OSError as error:
            roots.append(root)
            found.refuse(root, f"It cannot be opened: {os.strerror(error.errno or 0)}.", trouble=True)
            continue
        roots.append(root)
        below = [root] if changed is None or root in changed else sorted(p for p in changed if _inside(p, root))
        looked_at.update(below)
        if not below:
            continue
        if _inside(os.path.realpath(root), found.own_path):
            found.refuse(root, "It belongs to the library itself.")
        elif stat.S_ISDIR(status.st_mode):
            scope = scope_of(root, selection)
            for place in below:
                _look(place, scope, found)
            for place, reason in scope.troubles.items():
                found.refuse(place, reason, trouble=True)
        elif stat.S_ISREG(status.st_mode):
            found.files.setdefault(root, Candidate(root, root, status.st_size, file_time_ns(status)))
        else:
            found.refuse(root, _kind(status.st_mode))
    _follow_links(found, everything=changed is None)
    return Discovery(
        roots=tuple(roots),
        files=tuple(sorted(found.files.values(), key=lambda candidate: candidate.path)),
        unread=tuple(sorted(found.unread.values(), key=lambda unread: unread.path)),
        looked_at=frozenset(looked_at),
        left_out=found.left_out,
        folders=tuple(found.folders),
    )


def _look(place: str, scope: Scope, found: _Found) -> None:
    """Takes what lies at a path below the named folder, if the rules of all folders in between let it through."""
    root = scope.named
    if place == root:
        _walk(root, None, scope, found)
        return
    *folders, name = place[len(root.rstrip("/")) + 1 :].split("/")
    path = root.rstrip("/")
    for folder in folders:
        path = f"{path}/{folder}"
        try:
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            return
        if not is_folder or found.leaves_out(path, folder, scope, is_folder=True):
            return
        inside = _enter(path, scope, found, has=lambda name, path=path: os.path.lexists(f"{path}/{name}"))  # type: ignore[misc]
        if inside is None:
            return
        scope = inside
    path = f"{path}/{name}"
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        found.leaves_out(path, name, scope, is_folder=False)
        return
    except OSError as error:
        found.refuse(path, f"It cannot be examined: {os.strerror(error.errno or 0)}.", trouble=True)
        return
    is_folder = stat.S_ISDIR(status.st_mode)
    if found.leaves_out(path, name, scope, is_folder=is_folder):
        return
    if is_folder:
        if (status.st_dev, status.st_ino) != found.own_identity:
            _walk(path, scope, scope, found)
    elif stat.S_ISLNK(status.st_mode):
        found.links.append((path, scope))
    elif stat.S_ISREG(status.st_mode):
        found.files.setdefault(path, Candidate(path, root, status.st_size, file_time_ns(status)))
    else:
        found.refuse(path, _kind(status.st_mode))


def _enter(path: str, scope: Scope, found: _Found, *, has: Callable[[str], bool]) -> Scope | None:
    """The rules inside a folder that is an entry of ``scope``; None where it is left out for what it holds."""
    reason = scope.reason_against_folder(path, path[path.rfind("/") + 1 :], has)
    if reason:
        found.left_out[path] = reason
        return None
    return scope.inside(path, has)


def _walk(start: str, above: Scope | None, scope: Scope, found: _Found) -> None:
    """Takes what lies below a folder; ``above`` are the rules that hold for itself, None for the named one."""
    root = scope.named
    folders = [(start, above)]
    while folders:
        folder, outer = folders.pop()
        try:
            entries = list(_entries(folder))
        except OSError as error:
            found.refuse(folder, f"The folder cannot be opened: {os.strerror(error.errno or 0)}.", trouble=True)
            continue
        if outer is not None:
            inside = _enter(folder, outer, found, has={entry.name for entry in entries}.__contains__)
            if inside is None:
                continue
            scope = inside
        found.folders.append(folder)
        for entry in entries:
            name, path = entry.name, entry.path
            try:
                if found.leaves_out(path, name, scope, is_folder=entry.is_dir(follow_symlinks=False)):
                    continue
                if entry.is_symlink():
                    found.links.append((path, scope))
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                if error.errno is not None and error.errno != errno.ENOENT:
                    found.refuse(path, f"It cannot be examined: {os.strerror(error.errno)}.", trouble=True)
                continue  # otherwise it was deleted between listing and looking
            if stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) != found.own_identity:
                    folders.append((path, scope))
            elif stat.S_ISREG(status.st_mode):
                found.files.setdefault(path, Candidate(path, root, status.st_size, file_time_ns(status)))
            else:
                found.refuse(path, _kind(status.st_mode))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


def _follow_links(found: _Found, *, everything: bool) -> None:
    """Takes links to files of the same root that are not candidates themselves (such as git-annex keeps)."""
    if not found.links:
        return
    taken = {os.path.realpath(path) for path in found.files}
    for path, scope in sorted(found.links, key=lambda link: link[0]):
        target = os.path.realpath(path)
        real_root = os.path.realpath(scope.named)
        try:
            status = os.stat(target)  # noqa: PTH116 - see discover()
        except OSError:
            found.refuse(path, "It is a symbolic link to nothing that can be opened.")
            continue
        if not _inside(target, real_root):
            found.refuse(path, "It is a symbolic link that leaves the folder.")
        elif target in taken or _inside(target, found.own_path):
            continue  # read in its own place
        elif stat.S_ISREG(status.st_mode):
            taken.add(target)
            if everything or not _is_candidate(scope.named + target[len(real_root) :], scope, found):
                found.files.setdefault(path, Candidate(path, scope.named, status.st_size, file_time_ns(status)))
        # A folder inside the root is walked where it stands.


def _is_candidate(path: str, scope: Scope, found: _Found) -> bool:
    """Whether a file that was not looked at would have been taken in its own place."""
    alone = _Found(found.own_path, found.own_identity, found.withheld)
    _look(path, scope_of(scope.named, scope.selection), alone)
    return path in alone.files


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
