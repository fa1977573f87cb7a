"""How far this session is with a library of an older version, for whoever shows it; and the word to stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edgerag.errors import Cancelled
from edgerag.types import BringingUp, BringingUpWatch, CancelCheck


class Upgrading:
    """A watch over all libraries of a session. For any thread."""

    def __init__(self) -> None:
        self.now: BringingUp | None = None
        self.told: BringingUpWatch | None = None  # by the thread that does the work
        self._is_stopped = False
        self._is_to_stop: CancelCheck | None = None

    def stop(self) -> None:
        """What is at work ends soon, for good; what was committed stays, and the next opening goes on."""
        self._is_stopped = True

    @contextmanager
    def until(self, is_to_stop: CancelCheck) -> Iterator[None]:
        """What is at work meanwhile ends soon once it says so."""
        self._is_to_stop = is_to_stop
        try:
            yield
        finally:
            self._is_to_stop = None

    def __call__(self, state: BringingUp | None, /) -> None:
        """Raises Cancelled."""
        self.now = state
        if self.told is not None:
            self.told(state)
        if state is not None and (self._is_stopped or (self._is_to_stop is not None and self._is_to_stop())):
            raise Cancelled(
                f"Library {state.library!r} was not brought up to its end.", remedy="It goes on when it is opened next."
            )
