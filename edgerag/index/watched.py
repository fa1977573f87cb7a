"""Long work of SQLite's that is watched: whoever watches is told how far it is, and stops it by raising something.

A single statement may take minutes, in which no signal is handled and nobody hears of a wish to stop. So SQLite calls
back every so many of its steps (sqlite3_progress_handler); what is raised there ends the statement, whose transaction
is undone, and is raised again behind it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

from edgerag.types import BringingUp, BringingUpStage, BringingUpWatch

_STEPS = 100_000  # of SQLite's virtual machine between two calls: milliseconds
_PAGES = 512  # of a copy between two
_LEAST_S = 0.05  # between two tellings of the same stage


class Watched:
    """The work on one library; ``watch`` None: nobody watches."""

    def __init__(self, library: str, watch: BringingUpWatch | None) -> None:
        self._library = library
        self._watch = watch
        self._state: BringingUp | None = None
        self._told_at = 0.0
        self._raised: BaseException | None = None

    def tell(self, stage: BringingUpStage, done: int, total: int) -> None:
        """Raises what the watch raises."""
        if self._watch is None:
            return
        is_new = self._state is None or self._state.stage != stage
        self._state = BringingUp(self._library, stage, done, total)
        if is_new or done >= total or time.monotonic() - self._told_at >= _LEAST_S:
            self._told_at = time.monotonic()
            self._watch(self._state)

    def over(self) -> None:
        if self._watch is not None and self._state is not None:
            self._state = None
            self._watch(None)

    @contextlib.contextmanager
    def statements(self, db: sqlite3.Connection) -> Iterator[None]:
        """In the block, a statement of ``db`` ends where the watch raises something, which is raised then."""
        if self._watch is None:
            yield
            return
        db.set_progress_handler(self._go_on, _STEPS)
        try:
            yield
        except sqlite3.Error:
            if self._raised is not None:
                raise self._raised from None
            raise
        finally:
            db.set_progress_handler(None, 0)

    def copy(self, source: sqlite3.Connection, target: sqlite3.Connection, stage: BringingUpStage) -> None:
        """SQLite's backup. Raises sqlite3.Error, and what the watch raises."""
        if self._watch is None:
            source.backup(target)
            return

        def copied(_status: int, left: int, total: int) -> None:
            self.tell(stage, total - left, total)

        source.backup(target, pages=_PAGES, progress=copied)

    def _go_on(self) -> int:
        """Not 0: the statement ends."""
        try:
            if self._watch is not None and self._state is not None:
                self._watch(self._state)
        except BaseException as error:  # noqa: BLE001 - SQLite would swallow it: it is raised behind the statement
            self._raised = error
            return 1
        return 0
