"""Tells the keeper of the model's states what commits did to them.

Right after each commit, so that a removed document's states go at once; and on opening, what a process that ended
too early left. A writer forgets what was carried out in its next transaction, as that costs no commit of its own, or
on closing; a reader cannot. What is not forgotten yet is told again to the next who opens: done twice, it costs some
states that have to be computed again.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from edgerag.errors import EdgeragError
from edgerag.index import kv_keys
from edgerag.index.store import Store
from edgerag.types import KvSink


class KvNews:
    """Of one open library; without a sink nothing is told and nothing forgotten."""

    def __init__(self, store: Store, sink: KvSink | None) -> None:
        self._store = store
        self._sink = sink
        self._told = 0  # changes up to this number were carried out ...
        self._forgotten = 0  # ... and up to this one forgotten
        self._tell()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that may put or remove documents; what it did to states is told when it is committed."""
        told = self._told
        with self._store.writing() as db:
            if told > self._forgotten:
                kv_keys.settle(db, through=told)
            yield db
        self._forgotten = told
        self._tell()

    def close(self) -> None:
        """A writer forgets what was told."""
        if self._store.mode == "write" and self._told > self._forgotten:
            # A disk that is full now: it is told again, and forgotten then.
            with contextlib.suppress(EdgeragError), self._store.writing() as db:
                kv_keys.settle(db, through=self._told)

    def _tell(self) -> None:
        if self._sink is None:
            return
        with self._store.reading() as db:
            changes = kv_keys.changes(db, since=self._told)
        if changes and self._sink(changes):
            self._told = changes.through
