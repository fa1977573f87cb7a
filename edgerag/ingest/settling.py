"""Which changes have come to rest: pure, told the time by its caller.

A path at rest may be read. It waits a little for others that are not, since what belongs together (a folder that is
being unpacked, a file that moves) changes together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Times in seconds."""

    quiet: float = 0.7  # so long nothing may happen to a path before it is read
    gather: float = 3.0  # a path at rest waits no longer than this for others that are not
    longest: float = 30.0  # what never rests, such as a log, is read then
    presence: float = 1.0  # between two looks at whether the named folders are there
    poll: float = 2.0  # between two comparisons where the kernel does not tell
    poll_share: float = 0.05  # the part of the time that comparing may take
    sweep: float = 600.0  # between two looks at everything
    retry: float = 2.0  # until the library is tried again that another process writes to


@dataclass(slots=True)
class _Change:
    first: float
    last: float


class Settling:
    """Paths that changed, from the first word of it until they are taken."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._changes: dict[str, _Change] = {}
        self._not_before = float("-inf")

    def __len__(self) -> int:
        return len(self._changes)

    def note(self, path: str, now: float) -> None:
        """Something happened to it just now."""
        self._changes.setdefault(path, _Change(now, now)).last = now

    def note_rested(self, path: str, now: float) -> None:
        """It is to be looked at, and need not rest for that."""
        self._changes.setdefault(path, _Change(now - self._patience.longest, now))

    def put_back(self, paths: Collection[str], now: float) -> None:
        """They could not be read; nothing is taken for a while."""
        self._not_before = now + self._patience.retry
        for path in paths:
            self.note_rested(path, now)

    def forget(self, holds: Callable[[str], bool]) -> None:
        self._changes = {path: change for path, change in self._changes.items() if not holds(path)}

    def take(self, now: float, *, quiet: Callable[[str], float], may: Callable[[str], bool]) -> set[str]:
        """The paths at rest that ``may`` be taken. ``quiet`` is how long one must rest, in seconds."""
        if now < self._not_before or not self._changes:
            return set()
        at_rest = {
            path
            for path, change in self._changes.items()
            if now - change.last >= quiet(path) or now - change.first >= self._patience.longest
        }
        waits = all(now - self._changes[path].first < self._patience.gather for path in at_rest)
        if waits and len(at_rest) < len(self._changes):
            return set()
        taken = {path for path in at_rest if may(path)}
        for path in taken:
            del self._changes[path]
        return taken
