"""A running computation of llama.cpp ends soon after the user asks to stop.

``cancelled`` is asked from a thread of its own while llama.cpp computes, as the thread that waits cannot ask.
"""

from __future__ import annotations

import threading

from edgerag.engine.llama import Context
from edgerag.types import CancelCheck

_WATCH_S = 0.03  # how often a running computation looks whether it was cancelled


class Watch:
    """Aborts a running computation as soon as ``check`` says so; a failing check is passed on."""

    def __init__(self, context: Context, check: CancelCheck) -> None:
        self._context = context
        self._check = check
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cancel-watch", daemon=True)
        self._abortable = context.abortable()

    def cancelled(self) -> bool:
        """Asked between two computations, in the caller's thread."""
        if self._error is not None:
            raise self._error
        return self._check()

    def __enter__(self) -> Watch:
        self._abortable.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()
        self._abortable.__exit__(None, None, None)

    def _run(self) -> None:
        while not self._ended.wait(_WATCH_S):
            try:
                stop = self._check()
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for the answer
                self._error, stop = error, True
            if stop:
                self._context.abort()
                return
