"""The blocks of the index: what each holds, how much of it is in memory, how hot it is. Refreshed each second."""

from __future__ import annotations

import asyncio
import math
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from edgerag.errors import LibraryMissing
from edgerag.types import BlockHeat, SegmentBlocks
from edgerag.ui.output import size
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SessionScreen

_REFRESH_S = 1.0
_BAR_CELLS = 10
_WARM_S = 10.0  # a block used within so many seconds counts as in use


class BlocksScreen(SessionScreen[None]):
    """What ``session.library_blocks()`` says, while the program is asked."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "app.pop_screen", "Back")]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self) -> None:
        super().__init__()
        self._text = Static(Content("Looking …"))
        self._looking = False

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("Blocks of the index", "bold"), classes="title")
        yield VerticalScroll(self._text)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._look()
        self.set_interval(_REFRESH_S, self._look)

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self.start(self._show(), failed=self._fail)

    async def _show(self) -> None:
        try:
            segments = await asyncio.to_thread(self.session.library_blocks)
        except LibraryMissing:
            segments = []
        finally:
            self._looking = False
        self._text.update(blocks_content(segments, budget_bytes=self.session.budget_bytes()))

    def _fail(self, problem: Problem) -> None:
        self._text.update(problem.content())


def blocks_content(segments: list[SegmentBlocks], *, budget_bytes: int) -> Content:
    """All segments with their blocks, and how full the budget is."""
    blocks = [block for segment in segments for block in segment.blocks]
    if not blocks:
        return Content("No vectors are in segments yet: small libraries keep them in their database.")
    resident_bytes = sum(block.resident_bytes for block in blocks)
    cached_bytes = sum(block.cached_bytes for block in blocks)
    lines = [
        Content(
            f"{size(resident_bytes)} of a budget of {size(budget_bytes)} in this program, "
            f"{size(cached_bytes)} in the page cache of the system"
        )
    ]
    most_hits = max(block.hits for block in blocks)
    for segment in segments:
        lines += [Content(""), shown.line(segment.name, 100, "bold")]
        lines += [_line(block, most_hits) for block in segment.blocks]
    return Content("\n").join(lines)


def _line(block: BlockHeat, most_hits: int) -> Content:
    full = block.resident_bytes / block.size_bytes if block.size_bytes else 0.0
    # Hits run over many powers of ten: their logarithm is what an eye can compare.
    heat = math.log1p(block.hits) / math.log1p(most_hits) if most_hits else 0.0
    in_use = block.idle_s is not None and block.hits > 0 and block.idle_s < _WARM_S
    used = "not used yet" if block.idle_s is None or not block.hits else f"{block.idle_s:.0f} s ago"
    return Content.assemble(
        f"  {block.number:>4}  {block.kind:<8} {size(block.size_bytes):>9}  in memory ",
        (_bar(full), "$text-primary"),
        "  heat ",
        (_bar(heat), "bold $text-error" if in_use else "$text-warning"),
        f"  {block.hits:>10,} hits  {used}",
    )


def _bar(share: float) -> str:
    cells = min(_BAR_CELLS, max(0, round(share * _BAR_CELLS)))
    return "█" * cells + "░" * (_BAR_CELLS - cells)
