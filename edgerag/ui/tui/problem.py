"""What went wrong, as it is shown: a sentence and what to do next."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from edgerag.errors import EdgeragError, LibraryEmpty, LibraryMissing
from edgerag.memory_shortage import memory_short
from edgerag.ui.tui import shown

_MOST_KEPT = 500
_FRAMES_KEPT = 12  # the last ones, where the fault lies


@dataclass(frozen=True, slots=True)
class Problem:
    message: str
    remedy: str
    frames: tuple[str, ...] = ()  # of a fault of the program: file, line and function, the last the deepest

    @classmethod
    def of(cls, error: BaseException) -> Problem:
        """An EdgeragError speaks for itself; anything else is a fault of the program and says where."""
        if isinstance(error, (LibraryMissing, LibraryEmpty)):
            return cls(error.message, "Press F2 to add documents.")
        error = memory_short(error) or error
        if isinstance(error, EdgeragError):
            return cls(error.message, error.remedy)
        frames = traceback.extract_tb(error.__traceback__)
        where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        places = tuple(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames[-_FRAMES_KEPT:])
        said = f"Something in edgerag broke: {detail}{where}."
        return cls(said, "This is a fault of the program: please report it.", places)

    def content(self) -> Content:
        message = shown.text(self.message, "$text-error")
        return Content.assemble(message, "\n", shown.text(self.remedy)) if self.remedy else message

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


@dataclass(frozen=True, slots=True)
class NotedProblem:
    at_s: float  # since the epoch
    problem: Problem


class ProblemLog:
    """What went wrong since the start, in memory: nothing that was typed or read goes to a file for it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._noted: deque[NotedProblem] = deque(maxlen=_MOST_KEPT)

    def note(self, problem: Problem) -> None:
        """One that is shown in two places is noted once."""
        if self._noted and self._noted[-1].problem is problem:
            return
        self._noted.append(NotedProblem(self._clock(), problem))

    @property
    def noted(self) -> tuple[NotedProblem, ...]:
        """The newest last."""
        return tuple(self._noted)
