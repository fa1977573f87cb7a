"""A key is painted before the answer that streams: what a person types must not wait for what only moves."""

from __future__ import annotations

import time
from collections.abc import Callable

# From a key to its paint it takes 3 ms of processor time, and some frames where the machine is busy.
_KEY_FIRST_S = 0.03


class KeysFirst:
    """Told of every key; asked before an answer is painted."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pressed_s = -_KEY_FIRST_S

    def touch(self) -> None:
        """A key was pressed."""
        self._pressed_s = self._clock()

    def wait_s(self) -> float:
        """How long a paint has to wait for the one of the last key; 0.0 where there is none on its way."""
        return max(0.0, self._pressed_s + _KEY_FIRST_S - self._clock())
