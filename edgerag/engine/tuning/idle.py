"""Tuning on first use: begins when nobody has asked anything for a while, and is gone when somebody does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from edgerag.engine.tuning.background import BackgroundTuning

# Long enough that a question and its follow-up do not start a model in between.
IDLE_S = 20.0


class IdleTuning:
    """Any thread may call it. ``make`` is called when it is first needed; None: there is nothing to tune."""

    def __init__(self, make: Callable[[], BackgroundTuning | None], *, idle_s: float = IDLE_S) -> None:
        self._make = make
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._tuning: BackgroundTuning | None = None
        self._made = False
        self._users = 0
        self._timer: threading.Timer | None = None
        self._closed = False

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While open nothing is tuned; afterwards it begins, if nobody comes for a while."""
        with self._lock:
            self._users += 1
            self._cancel()
            tuning = self._tuning
        if tuning is not None:
            tuning.pause()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
            self.wait()

    def wait(self) -> None:
        """Begins to count the time in which nobody asks."""
        with self._lock:
            self._cancel()
            if self._users or self._closed:
                return
            self._timer = threading.Timer(self._idle_s, self._begin)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Ends it, and waits for that."""
        with self._lock:
            self._closed = True
            self._cancel()
            tuning = self._tuning
        if tuning is not None:
            tuning.stop()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        if not self._made:
            self._made, made = True, self._make()
            with self._lock:
                self._tuning = made
        with self._lock:
            tuning, wanted = self._tuning, not self._users and not self._closed
        if tuning is not None and wanted:
            tuning.start()
            with self._lock:
                too_late = bool(self._users) or self._closed
            if too_late:  # somebody asked, or left, while it was starting
                tuning.pause()
