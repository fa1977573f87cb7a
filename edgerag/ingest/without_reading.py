"""What an ingest settles without reading a file: what is as it was, moved, gone, or left out."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from edgerag.index.documents import MovedFile
from edgerag.ingest.ahead import ToRead
from edgerag.ingest.discover import Candidate, Discovery
from edgerag.ingest.emptied import emptied_mounts, keep_of_emptied, mounted_below
from edgerag.ingest.known import is_gone
from edgerag.ingest.run import MOVED_TOGETHER, Run
from edgerag.types import IngestEvent

# Files that cost only a stat go by too fast to be told one by one.
_PROGRESS_EVERY_S = 0.1
_SECOND_NS = 1_000_000_000


class WithoutReading(Run):
    """The first half of an ingest."""

    def _keep_left_out(self, discovery: Discovery, *, complete: bool) -> None:
        """Notes what was found and not read, so that the library can say why. What this run did not look at stays."""
        reasons = dict(discovery.left_out)
        reasons |= {path: report.reason for path, report in self._reports.items() if report.outcome == "skipped"}
        for known in self._library.left_out():
            outer = self._known.outer(known.path) or known.path
            around = self._reports.get(outer)
            is_in_unchanged = outer != known.path and around is not None and around.outcome == "unchanged"
            if known.path not in self._reports and (not complete or is_in_unchanged or not discovery.covers(outer)):
                reasons.setdefault(known.path, known.reason)
        self._library.keep_left_out(reasons)

    def _tag_unchanged(self) -> None:
        """Gives the tags to what was found as it was; what is read gets them when it is stored."""
        if self._tags:
            documents = self._known.documents
            unchanged = [path for path, report in self._reports.items() if report.outcome == "unchanged"]
            self._library.tag_documents([documents[path].id for path in unchanged if path in documents], self._tags)

    def _gone(self, discovery: Discovery) -> dict[str, None]:
        """Paths that the library knows and that no longer exist; one that cannot be examined now is kept. What lies in
        an archive that is there is judged when that is read."""
        known = self._known
        gone: dict[str, None] = {}  # in order
        for path in (*known.documents, *known.failures, *known.containers):
            outer = known.outer(path) or path
            is_missing = outer not in known.present and discovery.covers(outer) and is_gone(outer)
            if is_missing and discovery.root_stands(outer):
                gone[path] = None
        return gone

    def _keep_of_emptied(self, discovery: Discovery, gone: dict[str, None]) -> None:
        """Takes out of ``gone`` what lay in a folder in which nothing is left as where a disk is not mounted, and says
        so."""
        before = frozenset(self._library.mounts())
        now = mounted_below(discovery)
        places: list[str] = []
        if self._keeps != "nothing":
            whole = self._keeps == "emptied"
            places += discovery.emptied_roots() if whole else ()
            places += emptied_mounts(discovery, sorted(before | now), looked_at_whole=whole)
        kept = keep_of_emptied(places, gone, self._known.documents)
        self._notes |= dict.fromkeys(kept.values())
        self._library.keep_mounts(now | {place for place in before if place in kept or not discovery.covers(place)})

    def _move(self, discovery: Discovery, gone: dict[str, None]) -> None:
        """Gives documents whose file moved their new path; takes them out of ``gone``."""
        roots = {candidate.path: candidate.root for candidate in discovery.files}
        moved: list[MovedFile] = []
        for new, old in self._known.moved(discovery.files, gone).items():
            if self._is_another(new, old):
                continue
            # Never in the midst of an archive: one that moved by halves is not known again.
            if sum(1 + len(file.documents) + len(file.failures) for file in moved) >= MOVED_TOGETHER:
                self._library.move_files(moved)
                moved = []
            for path in (old, *self._known.members(old)):
                gone.pop(path, None)
                self._moved[new + path.removeprefix(old)] = path
            moved.append(self._known.move(old, new, roots[new]))
        self._library.move_files(moved)

    def _is_another(self, new: str, old: str) -> bool:
        """Whether a file that has size and time of one that is gone is another one all the same. A time of whole
        seconds says little: archives, copies and builds give many files one. Of such it is the content that has to be
        the same, since a run may end before it is read, and until then one file's text would stand under another's
        name. Of an archive no checksum is kept: it has to have the name of the one that is gone."""
        document = self._known.documents.get(old)
        mtime_ns = (document or self._known.containers[old]).mtime_ns
        if mtime_ns % _SECOND_NS:
            return False
        if document is None or not document.content_sha256:
            return PurePath(new).name != PurePath(old).name
        try:
            with Path(new).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() != document.content_sha256
        except OSError:
            return True  # nobody knows; why it cannot be read is said when it is its turn

    def _has(self, need: str) -> bool:
        """Whether this run has what a file of an earlier run could not be read without."""
        return bool(self._passwords) if need == "password" else self._recognition.recogniser is not None

    def _remove_gone(self, gone: Sequence[str]) -> Iterator[IngestEvent]:
        """Removes what was found to be gone."""
        yield from self._forget(gone, "The file is gone.")

    def _remove_left_out(self, discovery: Discovery) -> Iterator[IngestEvent]:
        """Removes what a rule leaves out now, such as an ignore file."""
        known = self._known
        left_out: dict[str, list[str]] = defaultdict(list)
        if discovery.left_out:
            for path in dict.fromkeys((*known.documents, *known.failures, *known.containers)):
                outer = known.outer(path) or path
                if outer not in known.present and discovery.covers(outer):
                    document = known.documents.get(path)
                    reason = discovery.reason_against(outer, root="" if document is None else document.root)
                    if reason:
                        left_out[reason].append(path)
        for reason, paths in left_out.items():
            yield from self._forget(paths, reason)

    def _without_reading(self, candidate: Candidate, to_read: list[ToRead]) -> Iterator[IngestEvent]:
        """Reports a file whose stat says that nothing changed since it was read or refused; else lists it.

        A refused file that was named itself, not found in a folder, is tried again: its user asks for it.
        """
        path, stat, known = candidate.path, (candidate.size_bytes, candidate.mtime_ns), self._known
        document = known.documents.get(path)
        failure = known.failures.get(path)
        members = known.members(path)
        refused = [member for member in members if member in known.failures]
        as_it_was = known.is_unchanged(candidate) and not self._is_read_otherwise(path)
        if as_it_was and not (refused and path == candidate.root) and path not in self._moved:
            yield self._report(path, "unchanged", "", document)
            for member in members:
                self._progress.files_total += 1
                yield self._report_known(member)
            for skipped in known.skipped(path):
                self._progress.files_total += 1
                yield self._report(skipped.path, "skipped", skipped.reason)
        elif failure is not None and stat == failure[:2] and path != candidate.root and not known.is_to_try(path):
            yield self._report(path, "failed", failure[2])
        else:
            again = refused and path == candidate.root
            to_read.append(ToRead(candidate, "" if again else self._comparable_sha256(path)))
            return
        now = time.monotonic()
        if now - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = now
            yield self._progress.event(path)
