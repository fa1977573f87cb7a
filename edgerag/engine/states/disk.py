"""States as files.

Promises: a file is whole or not there (temporary name, fsync, rename) and is never changed afterwards, so nobody
locks anything to read it, and a mapping stays good when the file is replaced or removed. Whatever else lies at the
name of a state (damaged, cut short, of another version, a link, a pipe, unreadable) is a miss, and is removed. No
method raises for what it finds there. A file's time is that of its last use; of a deprecated one, since when it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edgerag.engine.files import remove_partial, whole_file
from edgerag.engine.states import folder as places
from edgerag.engine.states import format as layout
from edgerag.engine.states import transfer
from edgerag.engine.states.folder import Entry
from edgerag.engine.states.format import Facts, Header, StateDamaged
from edgerag.engine.states.key import StateKey
from edgerag.engine.states.troubles import Troubles
from edgerag.errors import StorageFull

# Readers that were given a deprecated state's key are done long before; after this it only takes room.
DEPRECATED_KEPT_S = 72 * 3600.0

# A pipe is not waited for, a link not followed.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What lies there is no file of ours; any other error (too many open files, ...) says nothing about the file.
_NO_FILE_OF_OURS = frozenset({errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.EIO, errno.EISDIR})
_TOUCH_EVERY_S = 60.0  # a file's time need not be more exact than this, and each change of it is a write
# Other processes write, too: the limit can be passed by what they write in that time.
_LOOK_EVERY_S = 30.0
_EVICTED_AHEAD = 0.05  # of the limit, so that a full store does not look at all files for every state
_WRITTEN_WITHIN_S = 3600.0  # 200 MB on the slowest card take two minutes
# A state that lay idle for a day is worth half: what was asked today is asked again rather than last month's.
_HALF_LIFE_S = 86_400.0


def is_over(facts: Facts, deprecated_s: float | None, now_s: float) -> bool:
    """Whether a state's time is up."""
    return facts.expired(int(now_s * 1e9)) or (deprecated_s is not None and now_s - deprecated_s > DEPRECATED_KEPT_S)


class DiskTier:
    """Any thread, any number of processes."""

    def __init__(self, folder: Path, *, limit_bytes: int, left_free_bytes: int, troubles: Troubles) -> None:
        self._folder = folder
        self.limit_bytes = limit_bytes
        self._left_free_bytes = left_free_bytes
        self._troubles = troubles
        self._writing = threading.Lock()  # the temporary names are those of a process, not of a thread
        self._checked: set[tuple[int, Header]] = set()  # inode and header of files whose bytes were checked
        self._known: dict[str, tuple[int, int, Facts]] = {}  # path: inode, size, facts; headers read before
        self._room_bytes = 0  # may be written before the files are looked at again ...
        self._look_at = 0.0  # ... and until then, by time.monotonic()
        self.evictions = 0

    # ------------------------------------------------------------ reading

    def read(self, key: StateKey, *, now_s: float) -> tuple[Facts, memoryview] | None:
        """The state of exactly that key, mapped: a copy takes five times as long, and the system's cache of the file
        is memory as good as ours."""
        for deprecated in (False, True):
            path = places.path_of(self._folder, key, deprecated=deprecated)
            with self._opened(path) as descriptor:
                if descriptor is None:
                    continue
                header = layout.read_header(descriptor, name=key.name, scope=key.scope)
                if header.facts.key != key:
                    continue
                time_s = os.fstat(descriptor).st_mtime
                deprecated_s = time_s if deprecated else None
                if is_over(header.facts, deprecated_s, now_s):
                    self._remove(path)
                    continue
                identity = (os.fstat(descriptor).st_ino, header)
                if identity not in self._checked:
                    transfer.check_bytes(descriptor, header)
                    self._checked.add(identity)
                data = transfer.map_bytes(descriptor, header)
                if not deprecated and abs(now_s - time_s) > _TOUCH_EVERY_S:
                    with contextlib.suppress(OSError):  # a read-only folder remembers no uses
                        os.utime(descriptor, (now_s, now_s))
                return header.facts, data
        return None

    def has(self, key: StateKey) -> bool:
        """Whether there is a file of that name."""
        return any(places.path_of(self._folder, key, deprecated=deprecated).is_file() for deprecated in (False, True))

    def touch(self, key: StateKey, *, now_s: float) -> None:
        """Notes a use of a state whose bytes came from elsewhere."""
        path = places.path_of(self._folder, key)
        with contextlib.suppress(OSError):
            if abs(now_s - path.lstat().st_mtime) > _TOUCH_EVERY_S:
                os.utime(path, (now_s, now_s), follow_symlinks=False)

    @contextlib.contextmanager
    def _opened(self, path: Path) -> Iterator[int | None]:
        """The file's descriptor, None where there is none. What the block finds damaged is removed."""
        try:
            descriptor = os.open(path, _READ_FLAGS)
        except OSError as error:
            self._judge(path, error)
            yield None
            return
        try:
            yield descriptor
        except StateDamaged as damage:
            self._remove_damaged(path, str(damage))
        except OSError as error:
            self._judge(path, error)
        finally:
            os.close(descriptor)

    # ------------------------------------------------------------ writing

    def write(self, facts: Facts, payload: memoryview, *, now_s: float, wanted: Callable[[], bool]) -> bool:
        """Keeps a state in place of all others of its name; whether it did.

        ``wanted`` is asked once the file is there: one that is not wanted any more is removed again.
        """
        if payload.nbytes + layout.ALIGNMENT > self.limit_bytes:
            return False
        path = places.path_of(self._folder, facts.key)
        try:
            with self._writing:
                places.make_private(self._folder)
                places.make_private(path.parent)
                header, raw = layout.header_for(facts, payload)
                if not self._make_room_for(header, now_s=now_s):
                    return False
                with whole_file(path) as temporary:
                    transfer.write_file(temporary, raw, payload, time_s=now_s)
            if not wanted():
                self._remove(path)
                return False
            for scope in places.scopes(self._folder):
                for ending in (places.LIVE, places.DEPRECATED):
                    if (other := scope / (facts.key.name + ending)) != path:
                        self._remove(other)
        except (OSError, StorageFull) as error:
            reason = error.message if isinstance(error, StorageFull) else f"{path.parent}: {error.strerror or error}."
            self._tell_memory_only(reason)
            return False
        return True

    def _make_room_for(self, header: Header, *, now_s: float) -> bool:
        """Removes what is worth less per byte; False when that is not enough, and then nothing is removed.

        A look at all files takes long where there are many, so it says how much may be written before the next.
        """
        free = shutil.disk_usage(self._folder).free - self._left_free_bytes
        if header.file_bytes <= min(self._room_bytes, free) and time.monotonic() < self._look_at:
            self._room_bytes -= header.file_bytes
            return True
        self._room_bytes = 0
        found = list(places.entries(self._folder))
        used = sum(entry.size_bytes for entry in found)
        limit = self._limit_bytes(used)
        if header.file_bytes > limit:
            if header.file_bytes <= self.limit_bytes:
                self._tell_memory_only(
                    f"the disk of {self._folder} is full; {self._left_free_bytes / 1e6:,.0f} MB of it are left free."
                )
            return False
        name = header.facts.key.name
        others = [entry for entry in found if entry.name != name]  # what has the same name is replaced
        surplus = sum(entry.size_bytes for entry in others) + header.file_bytes - limit
        own_rank = (True, _worth(header.facts, header.file_bytes, idle_s=0.0))
        victims = []
        for rank, entry in self._ranked(others, now_s=now_s) if surplus > 0 else ():
            if rank >= own_rank or surplus <= -_EVICTED_AHEAD * limit:
                break
            victims.append(entry)
            surplus -= entry.size_bytes
        if surplus > 0:
            return False
        self._evict(victims)
        self._room_bytes = -surplus
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        return True

    def _limit_bytes(self, used_bytes: int) -> int:
        """The limit that was set, or less, so that states never fill the disk for everybody else. Raises OSError."""
        free = shutil.disk_usage(self._folder).free
        return min(self.limit_bytes, used_bytes + free - self._left_free_bytes)

    def _ranked(self, found: list[Entry], *, now_s: float) -> list[tuple[tuple[bool, float], Entry]]:
        """Whole files with their rank: the first in the list goes first, deprecated ones before all others."""
        ranked = []
        for entry in found:
            facts = self._facts(entry)
            if facts is not None:
                worth = _worth(facts, entry.size_bytes, idle_s=now_s - entry.time_s)
                ranked.append(((not entry.deprecated, worth), entry))
        return sorted(ranked, key=lambda pair: (pair[0], pair[1].path))

    def _evict(self, victims: list[Entry]) -> None:
        for entry in victims:
            self.evictions += self._remove(Path(entry.path))

    # ------------------------------------------------------------ the end of states

    def deprecate(self, names: frozenset[str], *, now_s: float) -> None:
        # A folder that cannot be read or written keeps them as they are: that costs room, no more.
        with contextlib.suppress(OSError):
            for entry in places.entries(self._folder):
                if entry.name in names and not entry.deprecated:
                    path = Path(entry.path)
                    with contextlib.suppress(FileNotFoundError):
                        os.utime(path, (now_s, now_s), follow_symlinks=False)
                        path.replace(path.with_suffix(places.DEPRECATED))

    def drop(self, names: frozenset[str], labels: frozenset[str], *, now_s: float) -> bool:
        """Removes states by name or label at once; whether all of them are gone."""

        def goes(entry: Entry) -> bool:
            # A file whose labels cannot be read may be the one that has to go.
            return entry.name in names or (
                bool(labels) and ((facts := self._facts(entry)) is None or bool(facts.labels & labels))
            )

        return self._drop(goes, now_s=now_s)

    def drop_all(self, *, now_s: float) -> bool:
        """Removes every state at once; whether all of them are gone."""
        return self._drop(lambda _: True, now_s=now_s)

    def _drop(self, goes: Callable[[Entry], bool], *, now_s: float) -> bool:
        try:
            gone = [self._remove(Path(entry.path)) for entry in places.entries(self._folder) if goes(entry)]
            self._remove_partial(now_s)
        except OSError as error:
            self._tell_unremovable(self._folder, error)
            return False
        return all(gone)

    def sweep(self, *, now_s: float) -> int:
        """Removes what is over, damaged, left by dead writers, or above the limit; the number of states removed."""
        removed = 0
        with contextlib.suppress(OSError):  # a folder that cannot be read
            for entry in places.entries(self._folder):
                facts = self._facts(entry)
                if facts is None or is_over(facts, entry.time_s if entry.deprecated else None, now_s):
                    removed += self._remove(Path(entry.path))
            removed += self._shrink(now_s=now_s)
            self._remove_partial(now_s)
            for scope in places.scopes(self._folder):
                with self._writing, contextlib.suppress(OSError):  # not empty
                    scope.rmdir()
        return removed

    def _shrink(self, *, now_s: float) -> int:
        found = list(places.entries(self._folder))
        if not found:
            return 0
        used = sum(entry.size_bytes for entry in found)
        surplus = used - self._limit_bytes(used)
        victims = []
        for _, entry in self._ranked(found, now_s=now_s) if surplus > 0 else ():
            if surplus <= 0:
                break
            victims.append(entry)
            surplus -= entry.size_bytes
        self._evict(victims)
        return len(victims)

    def _remove_partial(self, now_s: float) -> None:
        """Removes what dead writers left. Raises OSError."""
        for scope in places.scopes(self._folder):
            remove_partial(scope)
            for left in scope.glob(".*.partial"):  # by a process whose number another one has now
                with contextlib.suppress(FileNotFoundError):
                    if now_s - left.lstat().st_mtime > _WRITTEN_WITHIN_S:
                        left.unlink()

    # ------------------------------------------------------------ the folder

    def usage(self) -> tuple[int, int, int]:
        """Files, those of them that are deprecated, and bytes of all."""
        found: list[Entry] = []
        with contextlib.suppress(OSError):  # a folder that cannot be read holds nothing for us
            found.extend(places.entries(self._folder))
        return len(found), sum(entry.deprecated for entry in found), sum(entry.size_bytes for entry in found)

    def _facts(self, entry: Entry) -> Facts | None:
        """What the header says; None where there is none to be had, and then what was damaged is removed."""
        known = self._known.get(entry.path)
        if known is not None and known[:2] == (entry.inode, entry.size_bytes):
            return known[2]
        with self._opened(Path(entry.path)) as descriptor:
            if descriptor is not None:
                facts = layout.read_header(descriptor, name=entry.name, scope=entry.scope).facts
                self._known[entry.path] = (entry.inode, entry.size_bytes, facts)
                return facts
        return None

    def _remove(self, path: Path) -> bool:
        """Whether nothing is there any more."""
        self._known.pop(str(path), None)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.rmdir()  # an empty folder in a file's place
                return True
            self._tell_unremovable(path, error)
            return False
        return True

    def _judge(self, path: Path, error: OSError) -> None:
        """Removes what gives this error because of what it is."""
        if error.errno in _NO_FILE_OF_OURS:
            self._remove_damaged(path, error.strerror or str(error))

    def _remove_damaged(self, path: Path, reason: str) -> None:
        if self._remove(path):
            self._troubles.note(
                "damaged", f"The saved state {path.name} was damaged ({reason}); what it held is computed again."
            )

    def _tell_memory_only(self, reason: str) -> None:
        self._troubles.note("full", f"States of the model are kept in memory only, until the program ends: {reason}")

    def _tell_unremovable(self, path: Path, error: OSError) -> None:
        self._troubles.note(
            "unremovable",
            f"{path} cannot be removed: {error.strerror or error}. Delete it yourself: it may hold what the model made"
            " of a document that you removed.",
        )


def _worth(facts: Facts, size_bytes: int, *, idle_s: float) -> float:
    """Seconds saved per byte, halved for every day without use. A clock that was set back makes nothing idle."""
    halvings = max(0.0, idle_s) / _HALF_LIFE_S
    return facts.cost_s / max(1, size_bytes) * float(0.5**halvings)
