"""Parts of texts that were unpacked lately: a question and the next look into the same documents.

Those of one connection, and forgotten as soon as anything in the database changes.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import OrderedDict


class UnpackedParts:
    """By document and number of the part."""

    def __init__(self, *, most_bytes: int = 16_000_000) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._parts: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._of: tuple[int, int] | None = None  # the state of the database that they are of

    def look_at(self, db: sqlite3.Connection) -> None:
        """To be called before a read: forgets what is of an older state."""
        (version,) = db.execute("PRAGMA data_version").fetchone()  # changes with what others write, the other with ours
        if self._of != (version, db.total_changes):
            self._parts.clear()
            self._held_bytes, self._of = 0, (version, db.total_changes)

    def find(self, key: tuple[int, int]) -> str | None:
        if key in self._parts:
            self._parts.move_to_end(key)
        return self._parts.get(key)

    def keep(self, key: tuple[int, int], text: str) -> None:
        self._parts[key] = text
        self._held_bytes += sys.getsizeof(text)
        while self._held_bytes > self._most_bytes:
            self._held_bytes -= sys.getsizeof(self._parts.popitem(last=False)[1])
