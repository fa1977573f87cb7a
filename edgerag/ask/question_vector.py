"""The vector of a question, made in another thread while words are weighed, searched and read."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from edgerag.ask.background import unrelated_cosine
from edgerag.ask.waiting import start, wait
from edgerag.errors import TooLate
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import CancelCheck, Embedder

if TYPE_CHECKING:
    from edgerag.types import Vectors

_POLL_S = 0.005  # how late a deadline may be noticed
# Given to the other thread to begin in: it takes 0.1 ms where a core is free, and without that it would wait for the
# interpreter until this thread lets go of it, a millisecond later.
_TO_BEGIN_S = 0.001


class QuestionVector:
    """Begun when it is made. ``supplier`` may wait for a model to load. A deadline counts from when the model is there,
    and not from before :meth:`needed`."""

    def __init__(self, question: str, supplier: Callable[[], Embedder], stopwatch: Stopwatch) -> None:
        self._model: Future[Embedder] = Future()
        self._began = 0.0  # when the model was there
        self._needed = 0.0
        self.unrelated_cosine = 0.0  # from then on

        def make() -> Vectors:
            try:
                with stopwatch.measure_beside("embedder_load"):
                    model = supplier()
                self.unrelated_cosine = unrelated_cosine(model)
            except BaseException as error:
                self._model.set_exception(error)
                raise
            self._began = time.monotonic()
            self._model.set_result(model)
            with stopwatch.measure_beside("question_vector"):
                return model.embed_query(question)

        self._vector = start(make, name="embed-question")
        with suppress(TimeoutError):
            self._model.exception(timeout=_TO_BEGIN_S)

    def needed(self) -> None:
        """To be told when the search begins: what passes before is no time of its vector leg."""
        self._needed = time.monotonic()

    def model(self, cancelled: CancelCheck) -> Embedder:
        """Waits until the model is there, however long it loads. Raises ModelError, Cancelled."""
        return wait(self._model, cancelled)

    def vector(self, cancelled: CancelCheck, *, deadline_ms: int) -> Vectors:
        """Raises TooLate when it is not there in time, ModelError, Cancelled."""

        def is_over() -> bool:
            if self.is_late(deadline_ms) and not self.is_there():
                raise TooLate
            return cancelled()

        return wait(self._vector, is_over, poll_s=_POLL_S)

    def is_there(self) -> bool:
        """Or will never be."""
        return self._vector.done()

    def is_late(self, deadline_ms: int) -> bool:
        return bool(deadline_ms) and (time.monotonic() - max(self._began, self._needed)) * 1000 > deadline_ms
