"""How far this session is with a library of an older version, for whoever shows it; and the word to stop."""

from __future__ import annotations

from edgerag.errors import Cancelled
from edgerag.types import BringingUp, BringingUpWatch


class Upgrading:
    """A watch over all libraries of a session. For any thread."""

    def __init__(self) -> None:
        self.now: BringingUp | None = None
        self.told: BringingUpWatch | None = None  # by the thread that does the work
        self._is_stopped = False

    def stop(self) -> None:
        """What is at work ends soon; what was committed stays, and the next opening goes on."""
        self._is_stopped = True

    def __call__(self, state: BringingUp | None, /) -> None:
        """Raises Cancelled."""
        self.now = state
        if self.told is not None:
            self.told(state)
        if self._is_stopped and state is not None:
            raise Cancelled(
                f"Library {state.library!r} was not brought up to its end.", remedy="It goes on when it is opened next."
            )
