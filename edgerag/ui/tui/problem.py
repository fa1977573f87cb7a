"""What went wrong, as it is shown: a sentence and what to do next."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from edgerag.errors import EdgeragError, LibraryMissing
from edgerag.memory_shortage import memory_short
from edgerag.ui.tui import shown


@dataclass(frozen=True, slots=True)
class Problem:
    message: str
    remedy: str

    @classmethod
    def of(cls, error: BaseException) -> Problem:
        """An EdgeragError speaks for itself; anything else is a fault of the program and says where."""
        if isinstance(error, LibraryMissing):
            return cls(error.message, "Press F2 to add documents.")
        error = memory_short(error) or error
        if isinstance(error, EdgeragError):
            return cls(error.message, error.remedy)
        frames = traceback.extract_tb(error.__traceback__)
        where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        return cls(f"Something in edgerag broke: {detail}{where}.", "This is a fault of the program: please report it.")

    def content(self) -> Content:
        message = shown.text(self.message, "$text-error")
        return Content.assemble(message, "\n", shown.text(self.remedy)) if self.remedy else message

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()
