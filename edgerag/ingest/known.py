"""What the library knows of the files when a run begins: documents, failures, archives, and which file has moved."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from edgerag.index.documents import UNREAD_NS, Move, MovedFile, ReadContainer
from edgerag.index.lost_paths import path_of, without_path
from edgerag.ingest.discover import Candidate, Discovery
from edgerag.ingest.member_paths import outer_path
from edgerag.types import MEMBER_MARK, Document, LeftOut

if TYPE_CHECKING:
    from edgerag.index.library import Library

Stat = tuple[int, int]  # size in bytes, time of change in ns
# Of a failure that may pass without the file changing, and nobody can tell when: a permission.
TRY_AGAIN: Stat = (-1, -1)


class Known:
    """By path. A member's size and time are those of the file on the disk that it lies in."""

    def __init__(
        self,
        library: Library,
        discovery: Discovery,
        *,
        has: Callable[[str], bool] = lambda _: False,
        max_file_bytes: int = 0,
    ) -> None:
        """``has`` tells whether there is now what a file could not be read without; see FailureNeeds. What was larger
        than a limit below ``max_file_bytes`` may be read now."""
        failures = library.failures()
        self._to_try = {failure.path for failure in failures if failure.needs and has(failure.needs)}
        self.documents: dict[str, Document] = {document.path: document for document in library.documents()}
        self.failures: dict[str, tuple[int, int, str]] = {
            failure.path: (failure.size_bytes, failure.mtime_ns, failure.reason) for failure in failures
        }
        self.containers: dict[str, ReadContainer] = library.containers()
        self._max_file_bytes = max_file_bytes
        self.present = {candidate.path for candidate in discovery.files}
        self._members: dict[str, list[str]] = defaultdict(list)
        for path in (*self.documents, *self.failures):
            if outer := self.outer(path):
                self._members[outer].append(path)
        self._failed_in: dict[str, list[str]] = defaultdict(list)  # by each file around them
        self._documents_in: dict[str, list[str]] = defaultdict(list)  # the same of documents
        for paths, inside in ((self.failures, self._failed_in), (self.documents, self._documents_in)):
            for path in paths:
                for around in _around(path):
                    inside[around].append(path)
        self._skipped_in: dict[str, list[LeftOut]] = defaultdict(list)  # the same of what was not read
        for found in library.left_out():
            for around in _around(found.path):
                self._skipped_in[around].append(found)

    def outer(self, path: str) -> str:
        """The file on the disk that a member lies in; "" for what is a file itself."""
        if path in self.present:
            return ""
        return outer_path(path, lambda file: file in self.present or file in self.containers or file in self.documents)

    def members(self, outer: str) -> list[str]:
        """Paths of the documents and failures in that file, each once."""
        return list(dict.fromkeys(self._members.get(outer, ())))

    def skipped(self, outer: str) -> list[LeftOut]:
        """What was found in that file and not read."""
        return self._skipped_in.get(outer, [])

    def is_to_try(self, path: str) -> bool:
        """Whether that file failed, and may be read now although it did not change."""
        return path in self._to_try or (path in self.failures and self.failures[path][:2] == TRY_AGAIN)

    def is_container(self, path: str) -> bool:
        return path in self.containers or path in self._members

    def may_hold_more(self, path: str) -> bool:
        """Whether files in that one, whose content is as it was, have to be looked at all the same: it was not read to
        its end, or what failed in it may be read now, or has to be told of under its new path."""
        failed = self._failed_in.get(path, ())
        unread = path in self._members and path not in self.containers
        if self._is_limit_raised(path) or self._may_read_skipped(path):
            return True
        if self.is_unread(path):
            return unread or bool(failed) or path in self._skipped_in
        return unread or any(map(self.is_to_try, failed))

    def is_unread(self, path: str) -> bool:
        """Whether that file, or the one that it lies in, moved and has to be read at its new path."""
        outer = self.outer(path) or path
        return any(
            known is not None and known.mtime_ns == UNREAD_NS
            for known in (self.documents.get(outer), self.containers.get(outer))
        )

    def is_unchanged(self, candidate: Candidate) -> bool:
        """Whether size and time say that all in it is known; an archive counts when it was read to its end."""
        stat = (candidate.size_bytes, candidate.mtime_ns)
        document = self.documents.get(candidate.path)
        if document is not None and stat != (document.size_bytes, document.mtime_ns):
            return False
        if self.is_container(candidate.path):
            members = self._members.get(candidate.path, ())
            as_read = self.containers.get(candidate.path)
            if as_read is None or (as_read.size_bytes, as_read.mtime_ns) != stat:
                return False
            return not self._is_limit_raised(candidate.path) and not any(map(self.is_to_try, members))
        return document is not None and not self._may_read_skipped(candidate.path)

    def _is_limit_raised(self, path: str) -> bool:
        """Whether something in that archive or mail was too large then, and may be read now."""
        return path in self.containers and 0 < self.containers[path].limit_bytes < self._max_file_bytes

    def _may_read_skipped(self, path: str) -> bool:
        """Whether something in it was not read that may be read now: as far as is known, not for good."""
        outer = self.outer(path) or path
        return path in self._skipped_in and (outer not in self.containers or self._is_limit_raised(outer))

    def was_read_to_its_end(self, path: str) -> bool:
        return path in self.containers

    def holds(self, path: str) -> list[Document]:
        """The documents that lie in a file, or in a member of one."""
        return [self.documents[member] for member in self._documents_in.get(path, ()) if member in self.documents]

    def found_again(self, document_id: int) -> str:
        """What the document that was just stored was called until now, where its path had been lost; else ""."""
        name = path_of(document_id)
        return name if self.documents.pop(name, None) is not None else ""

    def without_path(self) -> list[Document]:
        """Documents whose path was lost to damage, and which no file was found to be."""
        return without_path(self.documents.values())

    def moved(self, candidates: Iterable[Candidate], gone: Iterable[str]) -> dict[str, str]:
        """Which of the new files was which of those that are ``gone``: new path to old path.

        Size and time to the nanosecond agree, and no other file has them; what is in it is compared when it is read.
        """
        old: dict[Stat, list[str]] = defaultdict(list)
        for path in gone:
            document = self.documents.get(path)
            known = document or self.containers.get(path)
            if known is not None and not self.outer(path):  # what lies in it moves with it
                old[known.size_bytes, known.mtime_ns].append(path)
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

    def move(self, old: str, new: str, root: str) -> MovedFile:
        """Takes over that a file has another path now, and all that lies in it."""
        inside = (old, *self.members(old))
        failures = tuple((path, new + path.removeprefix(old)) for path in inside if path in self.failures)
        is_renamed = old in self.documents and PurePath(old).name != PurePath(new).name  # the title may be the name
        unread = bool(is_renamed or failures or self.skipped(old))
        moves = []
        for path in inside:
            document = self.documents.pop(path, None)
            if document is not None:
                target, marked = new + path.removeprefix(old), unread and path == old
                mtime_ns = UNREAD_NS if marked else document.mtime_ns
                self.documents[target] = replace(document, path=target, root=root, mtime_ns=mtime_ns)
                moves.append(Move(document.id, target, root, unread=marked))
        for failed, target in failures:
            self.failures[target] = self.failures.pop(failed)
        if (container := self.containers.pop(old, None)) is not None:
            mtime_ns = UNREAD_NS if unread else container.mtime_ns
            self.containers[new] = replace(container, mtime_ns=mtime_ns)
        if members := self._members.pop(old, []):
            self._members[new] = [new + path.removeprefix(old) for path in members]
        skipped = [found.path for found in self.skipped(old)]
        for around in {around for path in (*inside, *skipped) for around in _around(path)}:
            target = new + around.removeprefix(old)
            for index in (self._failed_in, self._documents_in):
                if paths := index.pop(around, []):
                    index[target] = [new + path.removeprefix(old) for path in paths]
            if around in self._skipped_in:
                self._skipped_in[target] = self._skipped_in.pop(around)
        return MovedFile(old, new, tuple(moves), failures, unread)


def _around(path: str) -> Iterator[str]:
    """Every path that ``path`` may lie in as a member."""
    end = path.find(MEMBER_MARK)
    while end >= 0:
        yield path[:end]
        end = path.find(MEMBER_MARK, end + 1)


def is_gone(path: str) -> bool:
    """Whether there is certainly nothing of that name; what cannot be examined may be there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # a folder above it cannot be entered
    return False
