"""The index in memory: a map of its blocks against the budget, and what each holds and how hot it is. Refreshed each
second."""

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
from edgerag.ui.tui.ingest_view import bar
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.widgets.block_map import BlockMap, legend

_REFRESH_S = 1.0
_BAR_CELLS = 10
_BUDGET_BAR_CELLS = 40
_WARM_S = 10.0  # a block used within so many seconds counts as in use
_WIDE_CELLS = 96  # from here on a row of the list has room for long bars
_MOST_LISTED = 64  # the map has all of them


class BlocksScreen(SideScreen):
    """What ``session.library_blocks()`` says, while the program is asked."""

    KEYS_TITLE = "Index"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("m", "budget", "Budget", tooltip="Change the ceiling on the memory of the index"),
    ]
    AUTO_FOCUS = "BlockMap"

    def __init__(self) -> None:
        super().__init__()
        self._budget = Static(Content("Looking …"))
        self._map = BlockMap()
        self._list = Static()
        self._detail = Static(classes="detail")
        self._looking = False

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("The index in memory", "bold"), classes="title")
        with VerticalScroll(can_focus=False):
            yield self._budget
            yield self._map
            yield self._list
        yield self._detail
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
        self._budget.update(budget_content(segments, budget_bytes=self.session.budget_bytes()))
        self._map.show(segments)
        self._list.update(list_content(segments, width=self._list.content_size.width or self.size.width))
        if not segments:
            self._detail.update()

    def on_block_map_chosen(self, message: BlockMap.Chosen) -> None:
        block = message.block
        heading = Content.assemble(shown.line(message.segment, 60, "bold"), f", block {block.number}: {block.kind}")
        facts = (
            f"{size(block.size_bytes)}, {size(block.resident_bytes)} of it in this program, {size(block.cached_bytes)} "
            f"in the system's cache; {block.hits:,} hits, {_used(block)}"
        )
        self._detail.update(Content("\n").join([heading, Content(facts)]))

    def action_budget(self) -> None:
        self.edgerag.action_settings("memory.budget")

    def _fail(self, problem: Problem) -> None:
        self._budget.update(problem.content())


def budget_content(segments: list[SegmentBlocks], *, budget_bytes: int) -> Content:
    """How full the budget is, and how to read the map."""
    blocks = [block for segment in segments for block in segment.blocks]
    if not blocks:
        return Content("No vectors are in segments yet: small libraries keep them in their database.")
    resident_bytes = sum(block.resident_bytes for block in blocks)
    cached_bytes = sum(block.cached_bytes for block in blocks)
    whole_bytes = sum(block.size_bytes for block in blocks)
    share = resident_bytes / budget_bytes if budget_bytes else 0.0
    full, empty = bar(share, _BUDGET_BAR_CELLS)
    return Content("\n").join(
        [
            Content.assemble(
                (full, "$text-error" if share > 1 else "$text-primary"), (empty, "$foreground 25%"), f" {share:.0%}"
            ),
            Content(
                f"{size(resident_bytes)} of a budget of {size(budget_bytes)} in this program, "
                f"{size(cached_bytes)} in the page cache of the system, {size(whole_bytes)} in all"
            ),
            legend(),
            Content(),
        ]
    )


def list_content(segments: list[SegmentBlocks], *, width: int) -> Content:
    """The blocks with their figures: all of them, or where they are many the hottest."""
    listed = [(segment.name, block) for segment in segments for block in segment.blocks]
    most_hits = max((block.hits for _, block in listed), default=0)
    lines = []
    if len(listed) > _MOST_LISTED:
        hottest = sorted(listed, key=lambda each: -each[1].hits)[:_MOST_LISTED]
        lines = [Content(), Content.styled(f"the {_MOST_LISTED} most used", "bold")]
        for name, block in hottest:
            line = _line(block, most_hits, narrow=width < _WIDE_CELLS)
            lines.append(Content.assemble(line, "  ", shown.line(name, 40)))
        return Content("\n").join(lines)
    before = ""
    for name, block in listed:
        if name != before:
            lines += [Content(), shown.line(name, 100, "bold")]
            before = name
        lines.append(_line(block, most_hits, narrow=width < _WIDE_CELLS))
    return Content("\n").join(lines)


def _line(block: BlockHeat, most_hits: int, *, narrow: bool) -> Content:
    full = block.resident_bytes / block.size_bytes if block.size_bytes else 0.0
    # Hits run over many powers of ten: their logarithm is what an eye can compare.
    heat = math.log1p(block.hits) / math.log1p(most_hits) if most_hits else 0.0
    in_use = block.idle_s is not None and block.hits > 0 and block.idle_s < _WARM_S
    memory, warmth = (full, "$text-primary"), (heat, "bold $text-error" if in_use else "$text-warning")
    if narrow:
        cells = _BAR_CELLS // 2
        return Content.assemble(
            f"{block.number:>4} {block.kind:<8}{size(block.size_bytes):>9} mem ",
            (_bar(memory[0], cells), memory[1]),
            " heat ",
            (_bar(warmth[0], cells), warmth[1]),
            f" {block.hits:>9,} hits {_used(block)}",
        )
    return Content.assemble(
        f"  {block.number:>4}  {block.kind:<8} {size(block.size_bytes):>9}  in memory ",
        (_bar(memory[0], _BAR_CELLS), memory[1]),
        "  heat ",
        (_bar(warmth[0], _BAR_CELLS), warmth[1]),
        f"  {block.hits:>10,} hits  {_used(block)}",
    )


def _used(block: BlockHeat) -> str:
    return "not used yet" if block.idle_s is None or not block.hits else f"{block.idle_s:.0f} s ago"


def _bar(share: float, cells: int) -> str:
    full = min(cells, max(0, round(share * cells)))
    return "█" * full + "░" * (cells - full)
