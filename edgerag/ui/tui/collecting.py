"""When Python looks through all of its objects for garbage while the terminal UI runs.

Left to itself it does so in the middle of a paint: with models, an ingest and some answers in the process that holds
every thread for a tenth of a second to more than a whole one. What is young is collected as ever; what is old, when
nobody would notice (docs/decisions/088).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_YOUNG, _MIDDLE = 10_000, 20  # objects, collections of young ones: a few milliseconds each
_NEVER = 1_000_000_000
_QUIET_S = 5.0  # without a key or any work: nobody is at it
_AT_LEAST_EVERY_S = 900.0  # whoever is at it: an ingest may go on for hours


class Collecting:
    """From ``begin`` to ``end``; ``look`` is called now and then."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before = gc.get_threshold()
        self._touched_s = self._collected_s = clock()
        self._is_due = False

    def begin(self) -> None:
        """What has been loaded until now stays as long as the program runs: it is never looked through again."""
        gc.freeze()
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)

    def touch(self) -> None:
        """Somebody is at it, or something is under way."""
        self._touched_s = self._clock()
        self._is_due = True

    def look(self) -> bool:
        """Collects what is old, if it is time; whether it did."""
        now = self._clock()
        is_quiet = now - self._touched_s >= _QUIET_S
        if not self._is_due or not (is_quiet or now - self._collected_s >= _AT_LEAST_EVERY_S):
            return False
        gc.collect()
        self._collected_s, self._is_due = now, False
        return True

    def end(self) -> None:
        """As it was before."""
        gc.set_threshold(*self._before)
        gc.unfreeze()
