"""Follows named files and folders and says what changed there, once it has come to rest.

A change waits until nothing more happens to its path: an editor that writes a new file and renames it, one that
empties a file before it writes, a copy that still grows, a folder that is being unpacked are each read once, when
they are whole. What never rests, such as a log, is read now and then.

Nothing is believed blindly. A named folder that is gone is not a folder of deleted files: the disk may have been
unplugged. Very many changes may be not all of them: the whole folder is looked at; and so it is from time to time,
since the kernel does not tell everything. Where it tells nothing (file systems of other machines) or cannot (too many
folders), sizes and times are compared every few seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgerag.errors import LibraryBusy
from edgerag.ingest.discover import Discovery, discover
from edgerag.ingest.ignore import GIT_NAME, OWN_NAME, Selection
from edgerag.ingest.observe import Observer
from edgerag.ingest.settling import Patience, Settling
from edgerag.machine.mounts import is_remote
from edgerag.types import CancelCheck, IngestDone, IngestEvent, WatchEvent, WatchNote

_TICK_S = 0.1


# Beyond, the kernel's queue (16,384 events) may have overflowed.
_MOST_CHANGES = 4_000
# A watch that failed so often is given up for comparing.
_MOST_FAILURES = 3
_RULES = (GIT_NAME, OWN_NAME)
_REPOSITORY_RULES = f"{os.sep}.git{os.sep}info{os.sep}exclude"


@dataclass(slots=True)
class _Root:
    """One named file or folder."""

    path: str
    identity: tuple[int, int] | None  # file system and inode; while it is gone those that it had
    present: bool
    is_folder: bool
    polled: bool = False
    missed: int = 0  # looks in a row that did not find it
    folders: set[str] = field(default_factory=set)
    stats: dict[str, tuple[int, int]] = field(default_factory=dict)
    next_poll: float = 0.0
    poll_every: float = 0.0

    def holds(self, path: str) -> bool:
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")


def follow(
    paths: Sequence[Path],
    *,
    run: Callable[[Collection[str] | None], Iterator[IngestEvent]],
    own: Path,
    selection: Selection,
    withheld: Collection[str] = (),
    cancelled: CancelCheck,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Iterator[WatchEvent]:
    """Ingests ``paths``, then what changes there, until ``cancelled()``.

    ``run`` is one ingest: of everything (None), or of these absolute paths. It holds the library only while it lasts.
    When another process writes to the library then, that is said and the changes wait; everything else that ``run``
    raises ends it.
    """
    with Watch(paths, own=own, selection=selection, withheld=withheld, patience=patience) as watch:
        interrupted = yield from _watched(run(None))
        if interrupted:
            return
        yield WatchNote("watching", watch.sentence())
        busy = False
        for change in watch.changes(cancelled):
            if isinstance(change, WatchNote):
                yield change
                continue
            try:
                yield from _watched(run(change))
                busy = False
            except LibraryBusy as error:
                if not busy:
                    yield WatchNote("busy", f"{error.message} What changed is read when it is done.")
                busy = True
                watch.put_back(change)


def _watched(events: Iterator[IngestEvent]) -> Generator[WatchEvent, None, bool]:
    """Passes the events on; returns whether the ingest was interrupted."""
    interrupted = False
    for event in events:
        if isinstance(event, IngestDone):
            interrupted = event.interrupted
        yield event
    return interrupted


class Watch:
    """Watches from its construction, so that nothing is lost between a first ingest and :meth:`changes`."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        own: Path,
        selection: Selection,
        withheld: Collection[str] = (),
        patience: Patience = Patience(),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._paths = paths
        self._own = own
        self._own_path = os.path.abspath(own)  # noqa: PTH100
        self._selection = selection
        self._withheld = withheld
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._settling = Settling(patience)
        self._failures = 0
        self._notes: list[WatchNote] = []
        self._next_sweep = clock() + patience.sweep
        self._next_presence = clock() + patience.presence
        self._roots = [self._new_root(path) for path in _absolute(paths)]
        self._observer: Observer | None = None
        self._observed: frozenset[str] = frozenset()
        for root in self._roots:
            self._begin(root)
        self._observe()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._observer is not None:
            self._observer.stop()

    def sentence(self) -> str:
        """What is followed, and how."""
        polled = [root.path for root in self._roots if root.polled]
        names = ", ".join(root.path for root in self._roots)
        how = f" Of {', '.join(polled)} sizes and times are compared every few seconds." if polled else ""
        return f"Watching {names}.{how}"

    def changes(self, cancelled: CancelCheck) -> Iterator[frozenset[str] | WatchNote]:
        """What came to rest, as sets of absolute paths; and what should be told."""
        while not cancelled():
            now = self._clock()
            if now >= self._next_presence:
                self._next_presence = now + self._patience.presence
                self._look_for_roots(now)
            self._take_observed(now)
            self._compare_polled(now)
            if now >= self._next_sweep:
                self._next_sweep = now + self._patience.sweep
                for root in self._roots:
                    self._settling.note_rested(root.path, now)
            notes, self._notes = self._notes, []
            yield from notes
            ready = self._ready(now)
            if ready:
                yield ready
            else:
                self._sleep(_TICK_S)

    def put_back(self, changed: Collection[str]) -> None:
        """Changes that could not be read; they come again after a while."""
        self._settling.put_back(changed, self._clock())

    # ------------------------------------------------------------ what is watched

    def _new_root(self, path: str) -> _Root:
        identity = _identity(path)
        return _Root(path, identity, present=identity is not None, is_folder=os.path.isdir(path))  # noqa: PTH112

    def _begin(self, root: _Root) -> None:
        """Looks at a folder for the first time, or again after it was gone."""
        started = self._clock()
        found = self._discover({root.path})
        root.folders = set(found.folders) if root.is_folder else {os.path.dirname(root.path)}  # noqa: PTH120
        root.stats = _stats(found)
        if is_remote(root.path) or any(not _is_utf8(folder) for folder in root.folders):
            root.polled = True
        seconds = self._clock() - started
        root.poll_every = max(self._patience.poll, seconds / self._patience.poll_share)
        root.next_poll = self._clock() + root.poll_every

    def _observe(self) -> None:
        """Watches the folders as they are known now; the old watch ends when the new one has begun."""
        folders = frozenset(
            folder
            for root in self._roots
            if not root.polled and root.present
            for folder in root.folders
            if os.path.isdir(folder)  # noqa: PTH112
        )
        if folders == self._observed and self._observer is not None and not self._observer.failure:
            return
        old, self._observer, self._observed = self._observer, None, folders
        if folders:
            self._observer = Observer(folders)
        if old is not None:
            old.stop()
            self._note_changes(old.take(), self._clock())

    def _discover(self, changed: Collection[str]) -> Discovery:
        return discover(self._paths, own=self._own, selection=self._selection, changed=changed, withheld=self._withheld)

    # ------------------------------------------------------------ what is seen

    def _take_observed(self, now: float) -> None:
        if self._observer is None:
            return
        failure = self._observer.failure
        changed = self._observer.take()
        if changed:
            self._note_changes(changed, now)
            self._follow_folders(changed)
        if failure:
            self._mend(failure, now)

    def _note_changes(self, changed: Collection[str], now: float) -> None:
        for path in changed:
            path = _readable(path)
            if path == self._own_path or path.startswith(self._own_path + "/"):
                continue  # the library being written
            if os.path.basename(path) in _RULES:  # noqa: PTH119
                path = os.path.dirname(path)  # noqa: PTH120
            elif path.endswith(_REPOSITORY_RULES):
                path = path.removesuffix(_REPOSITORY_RULES)
            root = next((root for root in self._roots if root.holds(path)), None)
            if root is None:
                continue
            if len(self._settling) >= _MOST_CHANGES:
                self._settling.forget(lambda _: True)
                for every in self._roots:
                    self._settling.note(every.path, now)
                self._notes.append(WatchNote("looking", "Very much changed: everything is looked at."))
            self._settling.note(path, now)

    def _follow_folders(self, changed: Collection[str]) -> None:
        """Watches folders that are new, and no more those that are gone."""
        new: set[str] = set()
        for path in changed:
            root = next((root for root in self._roots if root.is_folder and root.holds(path)), None)
            if root is None or root.polled:
                continue
            if path in root.folders:
                inside = path.rstrip("/") + "/"
                root.folders = {folder for folder in root.folders if folder != path and not folder.startswith(inside)}
                new.add(path)
            elif os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                new.add(path)
        if new:
            self._learn_folders(self._discover(new))

    def _learn_folders(self, found: Discovery) -> None:
        """Watches the folders that were seen."""
        for folder in found.folders:
            root = next((root for root in self._roots if root.is_folder and root.holds(folder)), None)
            if root is not None and not root.polled:
                if _is_utf8(folder):
                    root.folders.add(folder)
                else:
                    root.polled = True
        self._observe()

    def _mend(self, failure: str, now: float) -> None:
        """The watch ended: it begins again, or sizes and times are compared from now on."""
        self._failures += 1
        if self._failures >= _MOST_FAILURES or "limit" in failure.lower():
            self._notes.append(
                WatchNote(
                    "watching",
                    f"The system does not tell what changes ({failure}): sizes and times are compared every few "
                    "seconds. More folders can be watched with a higher fs.inotify.max_user_watches.",
                )
            )
            for root in self._roots:
                root.polled = True
        self._observe()
        for root in self._roots:
            if root.present:
                self._settling.note(root.path, now)

    def _compare_polled(self, now: float) -> None:
        for root in self._roots:
            if not root.polled or not root.present or now < root.next_poll:
                continue
            started = self._clock()
            found = self._discover({root.path})
            stats = _stats(found)
            if _identity(root.path) is not None:  # otherwise it was going while it was looked at
                changed = {path for path, stat in stats.items() if root.stats.get(path) != stat}
                changed |= root.stats.keys() - stats.keys()
                root.stats = stats
                self._note_changes(changed, self._clock())
            root.poll_every = max(self._patience.poll, (self._clock() - started) / self._patience.poll_share)
            root.next_poll = self._clock() + root.poll_every

    def _look_for_roots(self, now: float) -> None:
        for root in self._roots:
            identity = _identity(root.path)
            if identity is not None and root.identity is not None and identity[0] != root.identity[0]:
                # Another file system at this place. Where a disk was mounted an empty folder is left.
                identity = identity if not root.is_folder or _has_entries(root.path) else None
            if identity is None:
                root.missed += 1
                if root.missed == 2 and root.present:  # an editor may be replacing a file just now
                    root.present = False
                    self._settling.forget(root.holds)
                    self._notes.append(
                        WatchNote(
                            "root_gone", f"{root.path} is gone. Its documents stay in the library until it is back."
                        )
                    )
                    self._observe()
                continue
            root.missed = 0
            if identity == root.identity and root.present:
                continue
            if not root.present:
                self._notes.append(WatchNote("root_back", f"{root.path} is back."))
            root.identity, root.present = identity, True
            root.is_folder = os.path.isdir(root.path)  # noqa: PTH112
            self._begin(root)
            self._observed = frozenset()  # the same names may be other folders now
            self._observe()
            self._settling.note(root.path, now)

    # ------------------------------------------------------------ what has come to rest

    def _ready(self, now: float) -> frozenset[str]:
        if any(root.present and root.missed for root in self._roots):
            return frozenset()  # a named folder may be going: nothing of it is taken for deleted
        return self._of_interest(self._settling.take(now, quiet=self._quiet, may=self._stands))

    def _quiet(self, path: str) -> float:
        root = next(root for root in self._roots if root.holds(path))
        # Of what is compared, the next comparison has to find it as the last one did.
        return 1.5 * root.poll_every if root.polled and path != root.path else self._patience.quiet

    def _stands(self, path: str) -> bool:
        root = next(root for root in self._roots if root.holds(path))
        return root.present and _identity(root.path) == root.identity

    def _of_interest(self, changed: Collection[str]) -> frozenset[str]:
        """Without what the rules leave out; folders that were not known are watched from now on."""
        if not changed:
            return frozenset()
        found = self._discover(changed)
        if any(folder not in self._observed for folder in found.folders):
            self._learn_folders(found)
        for root in self._roots:
            if root.polled:
                root.stats |= {path: stat for path, stat in _stats(found).items() if root.holds(path)}
        return frozenset(path for path in changed if not found.leaves_out(path))


def _absolute(paths: Sequence[Path]) -> list[str]:
    return list(dict.fromkeys(os.path.abspath(path) for path in paths))  # noqa: PTH100


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_entries(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _stats(found: Discovery) -> dict[str, tuple[int, int]]:
    return {candidate.path: (candidate.size_bytes, candidate.mtime_ns) for candidate in found.files}


def _is_utf8(path: str) -> bool:
    return path.isprintable() or not any("\ud800" <= character <= "\udfff" for character in path)


def _readable(path: str) -> str:
    """The path, or the folder above the first part of it that could not be told exactly."""
    place = path.find("\ufffd")
    return path if place < 0 or os.path.lexists(path) else path[: path.rfind("/", 0, place)]
