"""How the place of a chunk is said to a person."""

from __future__ import annotations

from pathlib import Path

from edgerag.types import Chunk


def place(chunk: Chunk) -> str:
    """``page 3``, ``pages 3-4``, ``line 7`` or ``lines 7-19``."""
    if chunk.page_first is not None and chunk.page_last is not None:
        return _span("page", chunk.page_first, chunk.page_last)
    return _span("line", chunk.line_first, chunk.line_last)


def short_path(path: str) -> str:
    """The path from the working folder where that is shorter."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):  # it lies elsewhere, or the working folder is gone
        return path


def _span(unit: str, first: int, last: int) -> str:
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"
