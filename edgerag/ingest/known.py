"""What the library knows of the files when a run begins: documents, failures, archives, and which file has moved."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from edgerag.ingest.discover import Candidate, Discovery
from edgerag.ingest.member_paths import outer_path
from edgerag.types import MEMBER_MARK, Document

if TYPE_CHECKING:
    from edgerag.index.library import Library

Stat = tuple[int, int]  # size in bytes, time of change in ns
# Of a failure that may pass without the file changing, and nobody can tell when: a permission.
TRY_AGAIN: Stat = (-1, -1)


class Known:
    """By path. A member's size and time are those of the file on the disk that it lies in."""

    def __init__(self, library: Library, discovery: Discovery, *, has: Callable[[str], bool] = lambda _: False) -> None:
        """``has`` tells whether there is now what a file could not be read without; see FailureNeeds."""
        failures = library.failures()
        self._to_try = {failure.path for failure in failures if failure.needs and has(failure.needs)}
        self.documents: dict[str, Document] = {document.path: document for document in library.documents()}
        self.failures: dict[str, tuple[int, int, str]] = {
            failure.path: (failure.size_bytes, failure.mtime_ns, failure.reason) for failure in failures
        }
        self.containers: dict[str, Stat] = library.containers()
        self.present = {candidate.path for candidate in discovery.files}
        self._members: dict[str, list[str]] = defaultdict(list)
        for path in (*self.documents, *self.failures):
            if outer := self.outer(path):
                self._members[outer].append(path)
        self._failed_in: dict[str, list[str]] = defaultdict(list)  # by each file around them
        for path in self.failures:
            end = path.find(MEMBER_MARK)
            while end >= 0:
                self._failed_in[path[:end]].append(path)
                end = path.find(MEMBER_MARK, end + 1)

    def outer(self, path: str) -> str:
        """The file on the disk that a member lies in; "" for what is a file itself."""
        if path in self.present:
            return ""
        return outer_path(path, lambda file: file in self.present or file in self.containers or file in self.documents)

    def members(self, outer: str) -> list[str]:
        """Paths of the documents and failures in that file, each once."""
        return list(dict.fromkeys(self._members.get(outer, ())))

    def is_to_try(self, path: str) -> bool:
        """Whether that file failed, and may be read now although it did not change."""
        return path in self._to_try or (path in self.failures and self.failures[path][:2] == TRY_AGAIN)

    def is_container(self, path: str) -> bool:
        return path in self.containers or path in self._members

    def may_hold_more(self, path: str, *, moved_from: str = "") -> bool:
        """Whether files in that one, whose content is as it was, have to be looked at all the same: it was not read to
        its end, or what failed in it may be read now, or has to be told of under its new path."""
        before = moved_from or path
        failed = self._failed_in.get(before, ())
        unread = before in self._members and before not in self.containers
        return unread or (bool(failed) if moved_from else any(map(self.is_to_try, failed)))

    def is_unchanged(self, candidate: Candidate) -> bool:
        """Whether size and time say that all in it is known; an archive counts when it was read to its end."""
        stat = (candidate.size_bytes, candidate.mtime_ns)
        document = self.documents.get(candidate.path)
        if document is not None and stat != (document.size_bytes, document.mtime_ns):
            return False
        if self.is_container(candidate.path):
            members = self._members.get(candidate.path, ())
            return self.containers.get(candidate.path) == stat and not any(map(self.is_to_try, members))
        return document is not None

    def moved(self, candidates: Iterable[Candidate], gone: Iterable[str]) -> dict[str, str]:
        """Which of the new files was which of those that are ``gone``: new path to old path.

        Size and time to the nanosecond agree, and no other file has them; what is in it is compared when it is read.
        """
        old: dict[Stat, list[str]] = defaultdict(list)
        for path in gone:
            document = self.documents.get(path)
            stat = (document.size_bytes, document.mtime_ns) if document is not None else self.containers.get(path)
            if stat is not None and not self.outer(path):  # what lies in it moves with it
                old[stat].append(path)
        new: dict[Stat, list[str]] = defaultdict(list)
        for candidate in candidates:
            if candidate.path not in self.documents and not self.is_container(candidate.path):
                new[candidate.size_bytes, candidate.mtime_ns].append(candidate.path)
        pairs: dict[str, str] = {}
        for stat, paths in old.items():
            targets = new.get(stat, [])
            by_name = {PurePath(path).name: path for path in targets}
            if len(paths) == len(targets) == 1:
                pairs[targets[0]] = paths[0]
            else:  # copied with their times, or unpacked from one archive: the name has to tell
                pairs |= {
                    by_name.pop(PurePath(path).name): path for path in sorted(paths) if PurePath(path).name in by_name
                }
        return pairs

    def rename(self, document: Document, moved: Document) -> None:
        """Takes over that a document has another path now."""
        del self.documents[document.path]
        self.documents[moved.path] = moved
        if outer := self.outer(moved.path):
            self._members[outer].append(moved.path)


def is_gone(path: str) -> bool:
    """Whether there is certainly nothing of that name; what cannot be examined may be there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # a folder above it cannot be entered
    return False
