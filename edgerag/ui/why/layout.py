"""Figures become cells of a row of characters. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgerag.telemetry.frames import Frame
from edgerag.types import StageSpan

# From a token that came with the one before it (drafted, see docs/decisions/028) to a stall.
HEAT_SIGNS = "·░▒▓█"
# In times of the median gap: from here on a token is hotter by one.
_HEATS = (0.5, 1.5, 2.5, 5.0)


def spread(parts: Sequence[float], cells: int) -> list[int]:
    """``cells`` shared out by ``parts``, to the largest remainders first, so that all are given; a part that is there
    gets a cell where there are enough."""
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    there = sum(part > 0 for part in parts)
    least = 1 if there <= cells else 0
    room = cells - there * least
    shares = [part / whole * room for part in parts]
    given = [math.floor(share) for share in shares]
    by_remainder = sorted(range(len(parts)), key=lambda n: (given[n] - shares[n], n))
    for place in by_remainder[: room - sum(given)]:
        given[place] += 1
    return [count + (least if part > 0 else 0) for count, part in zip(given, parts, strict=True)]


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """A run of a stage as a bar: ``cells`` wide, at least one, ``offset`` from the left."""

    span: StageSpan
    offset: int
    cells: int


def waterfall(spans: Sequence[StageSpan], *, total_s: float, cells: int) -> list[WaterfallRow]:
    """The runs over one axis from the question to the end."""
    axis_s = max([total_s, *(span.start_s + span.seconds for span in spans)], default=0.0)
    if axis_s <= 0 or cells < 1:
        return []
    rows = []
    for span in spans:
        offset = min(cells - 1, int(span.start_s / axis_s * cells))
        end = math.ceil((span.start_s + span.seconds) / axis_s * cells)
        rows.append(WaterfallRow(span, offset, max(1, min(cells, end) - offset)))
    return rows


def token_gaps_ms(token_ns: Sequence[int]) -> list[float]:
    """What each token but the first took."""
    return [(after - before) / 1e6 for before, after in pairwise(token_ns)]


def heat(gap_ms: float, median_ms: float) -> int:
    """0 to 4: how long a token took beside the others."""
    if median_ms <= 0:
        return 0
    return sum(gap_ms >= median_ms * limit for limit in _HEATS)


def heats(token_ns: Sequence[int]) -> list[int]:
    """One for each token but the first."""
    gaps = token_gaps_ms(token_ns)
    median_ms = statistics.median(gaps) if gaps else 0.0
    return [heat(gap, median_ms) for gap in gaps]


def quantile(values: Sequence[float], share: float) -> float:
    """By the nearest rank; of at least one value."""
    return sorted(values)[min(len(values) - 1, max(0, math.ceil(share * len(values)) - 1))]


@dataclass(frozen=True, slots=True)
class FlameCell:
    """A frame as a piece of its row."""

    frame: Frame
    offset: int
    cells: int


def flame_rows(frame: Frame, cells: int) -> list[list[FlameCell]]:
    """The frames by depth; what is in one lies below it. A frame too short for a cell is not there."""
    rows: list[list[FlameCell]] = [[] for _ in range(frame.depth)]

    def place(frame: Frame, depth: int, offset: int, cells: int) -> None:
        rows[depth].append(FlameCell(frame, offset, cells))
        rest = max(0.0, frame.seconds - sum(inner.seconds for inner in frame.inner))
        given = spread([*(inner.seconds for inner in frame.inner), rest], cells)
        for inner, width in zip(frame.inner, given, strict=False):
            if width:
                place(inner, depth + 1, offset, width)
                offset += width

    if frame.seconds > 0 and cells > 0:
        place(frame, 0, 0, cells)
    return [row for row in rows if row]
