"""The index as a map, a cell for each block: its sign says how much of it is in memory, its colour how hot it is.

The signs alone tell residency, so that the map can be read without colour. The cursor goes from block to block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget

from edgerag.types import BlockHeat, SegmentBlocks
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed

CELL_CELLS = 2
# From nothing to all of a block in memory. Where it is not mapped here, the page cache may still hold it.
_SIGNS = ("··", "░░", "▒▒", "▓▓", "██")
_CACHED_SIGN = "::"
# From never used to the hottest.
_HEATS = ("$foreground 40%", "$text-primary", "$text-success", "$text-warning", "$text-error")
_FULL = 0.99


@dataclass(frozen=True, slots=True)
class MapRow:
    """A row of the map: the name of a segment, or a run of its blocks."""

    name: str
    blocks: tuple[BlockHeat, ...]
    first: int  # number of the first block over all segments


def lay_out_map(segments: list[SegmentBlocks], width: int) -> list[MapRow]:
    """Each segment begins a row with its name."""
    per_row = max(1, width // CELL_CELLS)
    rows: list[MapRow] = []
    first = 0
    for segment in segments:
        rows.append(MapRow(segment.name, (), first))
        for start in range(0, len(segment.blocks), per_row):
            run = segment.blocks[start : start + per_row]
            rows.append(MapRow("", run, first))
            first += len(run)
    return rows


def sign(block: BlockHeat) -> str:
    """How much of the block is in memory."""
    share = block.resident_bytes / block.size_bytes if block.size_bytes else 0.0
    if share <= 0:
        return _CACHED_SIGN if block.cached_bytes else _SIGNS[0]
    return _SIGNS[-1] if share >= _FULL else _SIGNS[1 + min(2, int(share * 3))]


def heat_colour(block: BlockHeat, most_hits: int) -> str:
    """Hits run over many powers of ten: their logarithm is what an eye can compare."""
    if not block.hits or not most_hits:
        return _HEATS[0]
    return _HEATS[1 + min(3, int(4 * math.log1p(block.hits) / math.log1p(most_hits)))]


def legend() -> Content:
    """Two lines: a sign and its word are never parted by the end of a row that both would fill."""
    return Content.assemble(
        "in memory: ", "██ all  ▓▓ ▒▒ ░░ a part  :: only in the system's cache  ·· not\n",
        "used: ", ("██", _HEATS[1]), " little ", ("██", _HEATS[2]), " ", ("██", _HEATS[3]), " ", ("██", _HEATS[4]),
        " most",
    )  # fmt: skip


class BlockMap(Keyed, Widget, can_focus=True):
    """Arrows and the mouse choose a block."""

    KEYS_TITLE = "Map of the index"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "go(-1, 0)", "Block before", show=False),
        Binding("right", "go(1, 0)", "Block after", show=False),
        Binding("up", "go(0, -1)", "Block above", show=False),
        Binding("down", "go(0, 1)", "Block below", show=False),
        Binding("home", "go(-1000000, 0)", "First block", show=False),
        Binding("end", "go(1000000, 0)", "Last block", show=False),
    ]

    class Chosen(Message):
        """The cursor is on another block."""

        def __init__(self, segment: str, block: BlockHeat) -> None:
            super().__init__()
            self.segment = segment
            self.block = block

    def __init__(self) -> None:
        super().__init__()
        self._segments: list[SegmentBlocks] = []
        self._at = 0

    def show(self, segments: list[SegmentBlocks]) -> None:
        self._segments = segments
        self._at = min(self._at, max(0, self._count - 1))
        self.refresh(layout=True)
        self._tell()

    @property
    def _count(self) -> int:
        return sum(len(segment.blocks) for segment in self._segments)

    @property
    def _width(self) -> int:
        return self.content_size.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        return len(lay_out_map(self._segments, width))

    def render(self) -> Content:
        most_hits = max((block.hits for segment in self._segments for block in segment.blocks), default=0)
        lines = []
        for row in lay_out_map(self._segments, self._width):
            if not row.blocks:
                lines.append(shown.line(row.name, max(1, self._width), "bold"))
                continue
            cells = []
            for number, block in enumerate(row.blocks, row.first):
                style = heat_colour(block, most_hits)
                cells.append((sign(block), f"{style} reverse" if number == self._at and self.has_focus else style))
            lines.append(Content.assemble(*cells))
        return Content("\n").join(lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return self._count > 0 if action == "go" else True

    def action_go(self, columns: int, rows: int) -> None:
        per_row = max(1, self._width // CELL_CELLS)
        to = self._at + columns + rows * per_row
        if rows and not 0 <= to < self._count:
            return
        self._move(to)

    def on_click(self, event: events.Click) -> None:
        rows = lay_out_map(self._segments, self._width)
        if 0 <= event.y < len(rows):
            row = rows[event.y]
            if event.x // CELL_CELLS < len(row.blocks):
                self._move(row.first + event.x // CELL_CELLS)

    def _move(self, to: int) -> None:
        self._at = min(max(0, to), max(0, self._count - 1))
        self.refresh()
        for line, row in enumerate(lay_out_map(self._segments, self._width)):
            if row.first <= self._at < row.first + len(row.blocks) and isinstance(self.parent, Widget):
                self.parent.scroll_to_region(
                    Region(0, self.region.y - self.parent.region.y + line, 1, 1), animate=False
                )
        self._tell()

    def on_focus(self) -> None:
        self.refresh()
        self._tell()

    def on_blur(self) -> None:
        self.refresh()

    def _tell(self) -> None:
        first = 0
        for segment in self._segments:
            if first <= self._at < first + len(segment.blocks):
                self.post_message(self.Chosen(segment.name, segment.blocks[self._at - first]))
            first += len(segment.blocks)
