"""A document of the library, chunk by chunk: what can be found and cited of it, in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from edgerag.types import Hit, Scores, Source, StoredChunk
from edgerag.ui.place import full_place, headings_below, short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.screens.viewer import ViewerScreen

_UNSCORED = Scores(keyword=None, keyword_rank=None, vector=None, vector_rank=None, fused=0.0)


class ChunksScreen(ViewerScreen):
    """The viewer over all chunks of a document in place of the sources of an answer."""

    KEYS_TITLE = "Chunks of a document"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,right", "step(1)", "Next chunk"),
        Binding("p,left", "step(-1)", "Prev chunk", tooltip="Previous chunk"),
        Binding("h", "home", "Chunk", tooltip="Back to the chunk"),
        Binding("c", "copy", "Copy", tooltip="Copy the chunk"),
    ]

    def __init__(self, chunks: Sequence[StoredChunk], *, number: int = 1) -> None:
        """``chunks``: one at least. ``number``: the one to begin with, from 1."""
        super().__init__([_as_source(chunk, at) for at, chunk in enumerate(chunks, 1)], number)

    def heading(self, source: Source, count: int) -> Content:
        stored = source.hit.chunk
        name = shown.line(stored.title or short_path(stored.path), 200, "bold")
        chunk = Content.assemble((f"chunk {source.number:,}", "bold $text-accent"), f" of {count:,}  ")
        where = " › ".join([full_place(stored), *headings_below(stored)])
        facts = f"{stored.chunk.token_count:,} tokens, {where}"
        path = shown.line(short_path(stored.path), 300)
        below = Content.assemble(path, "  ", shown.line(facts, 300, "$foreground 75%"))
        return Content("\n").join([Content.assemble(chunk, name), below])


def _as_source(stored: StoredChunk, number: int) -> Source:
    """All of it is its quote."""
    chunk = stored.chunk
    return Source(number=number, hit=Hit(stored, _UNSCORED), quote=chunk.text, quote_start=chunk.start, cited=False)
